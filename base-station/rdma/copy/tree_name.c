/* See tree_name.h. */
#include "tree_name.h"

#include <stdbool.h>
#include <string.h>

#include "bytes.h"

char *tree_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    const char *name = path + begin;
    size_t length = end - begin;
    bool contents = length == 0 || (length == 1 && name[0] == '.') ||
                    (length == 2 && name[0] == '.' && name[1] == '.');
    return allocated(strndup(name, contents ? 0 : length));
}

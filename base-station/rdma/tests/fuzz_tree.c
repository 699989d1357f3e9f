/* Fuzzes what rdcp's sink reads, and what a leash reads: no bytes lead astray. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../bytes.h"
#include "../leashline.h"
#include "../tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_tree(const uint8_t *data, size_t size)
{
    struct tree_record record = {0};
    const char *why = "";
    long length;
    for (size_t at = 0; at < size; at += (size_t)length) {
        length = tree_get(&record, data + at, size - at, &why);
        if (length <= 0)
            return;
        if ((size_t)length > size - at || strchr(record.name, '/') ||
            strcmp(record.name, "..") == 0)
            abort();
    }
}

static void read_lines(const uint8_t *data, size_t size)
{
    struct leash_work work = {0};
    struct bytes input = {0};
    const char *why = "";
    char *line;
    bytes_add(&input, data, size);
    while ((line = bytes_line(&input))) {
        int result = leash_take(&work, line, &why);
        free(line);
        if (result < 0)
            break;
    }
    leash_work_close(&work);
    bytes_close(&input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_tree(data, size);
    read_lines(data, size);
    return 0;
}

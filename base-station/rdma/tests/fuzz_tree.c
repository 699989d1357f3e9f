/* libFuzzer: what rdcp's sink reads, what a leash reads, and what rdpipe reads from a
 * leash: no bytes lead astray. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "leash_work.h"
#include "pipe_end.h"
#include "tree.h"

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

/* A field goes into a command line: it never begins with "-". */
static void hear_leash(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"port", "transports", "addresses"};
    struct pipe_end end = {.control_fd = -1, .answer_fd = -1};
    int ends[2];
    if (pipe(ends) < 0 || write(ends[1], data, size) != (ssize_t)size)
        abort();
    close(ends[1]);
    end.answer_fd = ends[0];
    while (!end.done)
        pipe_end_listen(&end, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *field = leash_field(end.announcement, names[i]);
        if (field && (!*field || *field == '-' || strchr(field, ' ')))
            abort();
        free(field);
    }
    free(end.announcement);
    free(end.note);
    pipe_end_close(&end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_tree(data, size);
    read_lines(data, size);
    hear_leash(data, size);
    return 0;
}

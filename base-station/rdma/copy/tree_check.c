/* rdcp --check: compare a tree with a list of SHA-256 checksums and paths in the format of
 * sha256sum(1): a newline or a backslash in a name is escaped as \n or \\, and its line starts with
 * a backslash. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_protocol.h"
#include "descriptors.h"
#include "tree_hash.h"
#include "tree.h"
#include "tree_part.h"
#include "tree_report.h"

enum { DIGITS = 2 * TREE_HASH_BYTES };

/* Open the folder that contains `path` and advance `*path` to its last component. Follow no link.
 * The caller closes the descriptor. Return -1 with errno on failure. */
static int open_above(int base, const char **path)
{
    int fd = fcntl(base, F_DUPFD_CLOEXEC, 0);
    for (const char *slash; fd >= 0 && (slash = strchr(*path, '/')); *path = slash + 1) {
        char *name = text_of("%.*s", (int)(slash - *path), *path);
        int below = open_below(fd, name, O_RDONLY | O_DIRECTORY, 0);
        free(name);
        shut(&fd);
        fd = below;
    }
    return fd;
}

/* Compute the checksum of the file at `path` in hex. Return NULL or the error. */
static const char *sum_path(struct tree_hash *hash, int base, const char *path, struct bytes *into)
{
    uint8_t sum[TREE_HASH_BYTES];
    struct stat state;
    int above = open_above(base, &path), fd = -1;
    const char *why = NULL;
    if (above >= 0)
        fd = open_below(above, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    shut(&above);
    if (fd >= 0)
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    tree_hash_begin(hash);
    if (fd < 0 || fstat(fd, &state) < 0)
        why = strerror(errno);
    else if (!S_ISREG(state.st_mode))
        why = "is not a regular file";
    else if (tree_hash_file(hash, fd, (uint64_t)state.st_size, NULL, NULL) < 0)
        why = strerror(errno);
    shut(&fd);
    tree_hash_end(hash, sum);
    into->length = 0;
    hex_add(into, sum, sizeof sum);
    return why;
}

/* Parse a line into "PATH", NUL, digits: this form can be sorted and searched by path. */
static char *read_line(const char *line)
{
    bool escaped = line[0] == '\\';
    const char *digits = line + escaped, *from = digits + DIGITS + 2;
    if (strspn(digits, "0123456789abcdef") != DIGITS || digits[DIGITS] != ' ' ||
        (digits[DIGITS + 1] != ' ' && digits[DIGITS + 1] != '*') || !*from)
        return NULL;
    from += strncmp(from, "./", 2) == 0 ? 2 : 0; /* find(1) */
    char *row = allocated(calloc(1, strlen(from) + DIGITS + 2)), *at = row;
    for (; *from; from++) {
        if (escaped && *from == '\\' && from[1])
            *at++ = *++from == 'n' ? '\n' : *from;
        else
            *at++ = *from;
    }
    memcpy(at + 1, digits, DIGITS);
    return row;
}

/* Read and sort the list. Return -1 if it is malformed. */
static int read_all(struct words *rows)
{
    char *line = NULL, *row = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stdin)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = '\0';
        if (!(row = read_line(line)))
            break;
        rows->word = allocated(reallocarray(rows->word, rows->count + 1, sizeof row));
        rows->word[rows->count++] = row;
    }
    free(line);
    if (length > 0)
        fprintf(stderr, "rdcp: the list: line %zu: not SUM, two spaces and a path\n",
                rows->count + 1);
    else if (rows->count)
        qsort(rows->word, rows->count, sizeof row, words_by_text);
    return length > 0 ? -1 : 0;
}

/* Report each file of the tree that the list lacks. */
static void find_more(const struct words *rows, char *top, uint64_t *errors)
{
    size_t skip = strlen(top);
    FTS *walk = fts_open((char *[]){top, NULL}, FTS_PHYSICAL | FTS_COMFOLLOW, NULL);
    FTSENT *entry;
    skip += top[skip - 1] != '/';
    while (walk && (entry = fts_read(walk))) {
        const char *path = entry->fts_path + skip;
        if (entry->fts_info == FTS_F && !part_is(entry->fts_name) &&
            !(rows->count &&
              bsearch(&path, rows->word, rows->count, sizeof path, words_by_text)))
            tree_error(errors, path, TREE_UNLISTED);
    }
    if (walk)
        fts_close(walk);
}

static void compare(const struct words *rows, int base, uint64_t *errors)
{
    struct tree_hash hash;
    struct bytes digits = {0};
    tree_hash_open(&hash, true);
    for (size_t i = 0; i < rows->count; i++) {
        const char *row = rows->word[i];
        const char *why = sum_path(&hash, base, row, &digits);
        if (!why && memcmp(digits.data, row + strlen(row) + 1, DIGITS) != 0)
            why = TREE_DIFFERS;
        if (why)
            tree_error(errors, row, why);
    }
    bytes_close(&digits);
    tree_hash_close(&hash);
}

int tree_check(const char *target, bool json)
{
    struct words rows = {0};
    uint64_t errors = 0;
    char *path = agent_work_file(target);
    int base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base < 0) {
        tree_error(&errors, target, strerror(errno));
    } else if (read_all(&rows) < 0) {
        errors++;
    } else {
        compare(&rows, base, &errors);
        find_more(&rows, path, &errors);
    }
    if (json)
        fprintf(stderr, "{\"checked\": %zu, \"errors\": %llu}\n", rows.count,
                (unsigned long long)errors);
    shut(&base);
    free(path);
    words_close(&rows);
    return errors ? 1 : 0;
}

/* The hash of a file's content, and lists of such: see tree_hash.h. In a list a name with a
 * newline or a backslash has these as \n and \\, and a backslash before its line. */
#include "tree_hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptors.h"
#include "hash.h"
#include "leash_work.h"
#include "quote.h"
#include "tree_io.h"
#include "tree_part.h"

enum { PIECE = 256 << 10, PAGE = 4096 };

void tree_hash_open(struct tree_hash *hash, bool sha256)
{
    *hash = (struct tree_hash){.fast = allocated(XXH3_createState()),
                               .slow = sha256 ? allocated(EVP_MD_CTX_new()) : NULL};
}

void tree_hash_close(struct tree_hash *hash)
{
    XXH3_freeState(hash->fast);
    EVP_MD_CTX_free(hash->slow);
    *hash = (struct tree_hash){0};
}

void tree_hash_begin(struct tree_hash *hash)
{
    hash->at = 0;
    if (hash->slow)
        EVP_DigestInit_ex(hash->slow, EVP_sha256(), NULL);
    else
        XXH3_128bits_reset(hash->fast);
}

void tree_hash_add(struct tree_hash *hash, const void *bytes, size_t length)
{
    hash->at += length;
    if (hash->slow)
        EVP_DigestUpdate(hash->slow, bytes, length);
    else
        XXH3_128bits_update(hash->fast, bytes, length);
}

void tree_hash_zeros(struct tree_hash *hash, uint64_t end)
{
    static const uint8_t zeros[PIECE];
    while (hash->at < end)
        tree_hash_add(hash, zeros,
                      end - hash->at < PIECE ? (size_t)(end - hash->at) : PIECE);
}

void tree_hash_end(struct tree_hash *hash, uint8_t into[TREE_HASH_BYTES])
{
    memset(into, 0, TREE_HASH_BYTES);
    if (hash->slow) {
        EVP_DigestFinal_ex(hash->slow, into, NULL);
        return;
    }
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(hash->fast));
    memcpy(into, digest.digest, sizeof digest.digest);
}

int tree_extent(int fd, uint64_t *at, uint64_t end, uint64_t *hole)
{
    *hole = end;
    if (*at >= end)
        return 0;
    if (end <= PAGE) /* it would not pay to ask */
        return 1;
    off_t data = lseek(fd, (off_t)*at, SEEK_DATA);
    if ((data < 0 && errno == ENXIO) || data >= (off_t)end)
        return 0;
    if (data >= 0)
        *at = (uint64_t)data; /* else a file system that knows no holes */
    off_t stop = lseek(fd, (off_t)*at, SEEK_HOLE);
    *hole = stop < 0 || (uint64_t)stop > end ? end : (uint64_t)stop;
    return 1;
}

int tree_hash_file(struct tree_hash *hash, int fd, uint64_t end)
{
    uint8_t *piece = allocated(malloc(PIECE));
    uint64_t at = hash->at, hole;
    int result = 0;
    while (result == 0 && tree_extent(fd, &at, end, &hole)) {
        tree_hash_zeros(hash, at);
        while (result == 0 && at < hole) {
            size_t want = hole - at < PIECE ? (size_t)(hole - at) : PIECE;
            ssize_t got = pread(fd, piece, want, (off_t)at);
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0) {
                errno = got == 0 ? EIO : errno;
                result = -1;
                break;
            }
            tree_hash_add(hash, piece, (size_t)got);
            at += (uint64_t)got;
        }
    }
    if (result == 0)
        tree_hash_zeros(hash, end);
    free(piece);
    return result;
}

enum { DIGITS = 2 * TREE_HASH_BYTES };

/* The sum in hex of the file at `path`. NULL, or what is wrong. */
static const char *sum_path(struct tree_hash *hash, int base, const char *path,
                            struct bytes *into)
{
    uint8_t sum[TREE_HASH_BYTES];
    struct stat state;
    int above = open_above(base, &path), fd = -1;
    const char *why = NULL;
    if (above >= 0)
        fd = open_below(above, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    shut(&above);
    into->length = 0;
    if (fd < 0 || fstat(fd, &state) < 0)
        why = strerror(errno);
    else if (!S_ISREG(state.st_mode))
        why = "is not a regular file";
    tree_hash_begin(hash);
    if (!why) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        if (tree_hash_file(hash, fd, (uint64_t)state.st_size) < 0)
            why = strerror(errno);
    }
    tree_hash_end(hash, sum);
    if (!why)
        hex_add(into, sum, sizeof sum);
    shut(&fd);
    return why;
}

static void print_line(const char *digits, const char *path)
{
    printf("%s%s  ", strpbrk(path, "\\\n") ? "\\" : "", digits);
    for (; *path; path++) {
        if (*path == '\n' || *path == '\\')
            putchar('\\');
        putchar(*path == '\n' ? 'n' : *path);
    }
    putchar('\n');
}

int tree_manifest_write(struct tree_manifest *manifest, int base, uint64_t *errors)
{
    struct tree_hash hash;
    struct bytes digits = {0};
    tree_hash_open(&hash, true);
    if (manifest->paths.count)
        qsort(manifest->paths.word, manifest->paths.count, sizeof(char *), words_by_text);
    for (size_t i = 0; i < manifest->paths.count; i++) {
        const char *path = manifest->paths.word[i];
        const char *why = sum_path(&hash, base, path, &digits);
        if (why)
            tree_error(errors, path, why);
        else
            print_line(digits.data, path + (manifest->skip ? manifest->skip + 1 : 0));
    }
    bytes_close(&digits);
    tree_hash_close(&hash);
    if (fflush(stdout) == 0)
        return 0;
    fprintf(stderr, "rdcp: the manifest: %m\n");
    return -1;
}

/* A line as "PATH", and its digits behind the NUL: so it can be sorted and found. */
static char *read_line(char *line)
{
    bool escaped = line[0] == '\\';
    char *digits = line + escaped, *from = digits + DIGITS + 2;
    if (strspn(digits, "0123456789abcdef") != DIGITS || digits[DIGITS] != ' ' ||
        (digits[DIGITS + 1] != ' ' && digits[DIGITS + 1] != '*') || !*from)
        return NULL;
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

static int read_all(struct words *rows)
{
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t length;
    int result = 0;
    while (result == 0 && (length = getline(&line, &room, stdin)) > 0) {
        number++;
        if (line[length - 1] == '\n')
            line[length - 1] = '\0';
        char *row = read_line(line);
        size_t count = rows->count + 2;
        rows->word = allocated(reallocarray(rows->word, count, sizeof row));
        rows->word[rows->count] = row;
        rows->count += row != NULL;
        result = row ? 0 : -1;
    }
    if (result < 0)
        fprintf(stderr, "rdcp: the manifest: line %zu: not SUM, two spaces and a path\n",
                number);
    free(line);
    return result;
}

/* Names each file below that the list does not have; closes `fd`. */
static void find_more(const struct words *rows, int fd, const char *above,
                      uint64_t *errors)
{
    DIR *entries = fdopendir(fd);
    struct dirent *entry;
    struct stat state;
    while (entries && (entry = readdir(entries))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || part_is(name) ||
            fstatat(fd, name, &state, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        char *path = text_of("%s%s%s", above, *above ? "/" : "", name);
        int below = S_ISDIR(state.st_mode)
                        ? open_below(fd, name, O_RDONLY | O_DIRECTORY, 0) : -1;
        if (below >= 0)
            find_more(rows, below, path, errors);
        else if (S_ISREG(state.st_mode) &&
                 !bsearch(&path, rows->word, rows->count, sizeof(char *), words_by_text))
            tree_error(errors, path, "is not in the manifest");
        free(path);
    }
    if (entries)
        closedir(entries);
    else
        close(fd);
}

int tree_manifest_check(const char *target)
{
    struct words rows = {0};
    struct tree_hash hash;
    struct bytes digits = {0};
    uint64_t errors = 0;
    char *path = leash_work_file(target);
    int base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = base < 0;
    if (status)
        tree_error(&errors, target, strerror(errno));
    else
        status = read_all(&rows) < 0;
    tree_hash_open(&hash, true);
    if (!status && rows.count)
        qsort(rows.word, rows.count, sizeof(char *), words_by_text);
    for (size_t i = 0; i < rows.count && !status; i++) {
        const char *row = rows.word[i];
        const char *why = sum_path(&hash, base, row, &digits);
        if (!why && memcmp(digits.data, row + strlen(row) + 1, DIGITS) != 0)
            why = "its content is not what the manifest says";
        if (why)
            tree_error(&errors, row, why);
    }
    if (!status)
        find_more(&rows, fcntl(base, F_DUPFD_CLOEXEC, 0), "", &errors);
    shut(&base);
    free(path);
    bytes_close(&digits);
    words_close(&rows);
    tree_hash_close(&hash);
    return status || errors ? 1 : 0;
}

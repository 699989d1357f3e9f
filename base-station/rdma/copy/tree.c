/* Records of a tree, and helpers of both sides: see tree.h. */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "descriptors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a head is sent as it is");
_Static_assert(offsetof(struct tree_record, attributes) == TREE_SUMMED, "see tree.h");
_Static_assert(offsetof(struct tree_record, bytes) == TREE_HEAD, "see tree.h");

/* Parts that may follow the head. */
enum { BYTES = 1, NAME = 2 };
static const uint8_t has[TREE_KINDS] = {
    [TREE_START] = BYTES, [TREE_ENTER] = NAME, [TREE_FILE] = NAME,
    [TREE_LINK] = BYTES | NAME, [TREE_DATA] = BYTES,
};

static uint32_t sum_of(const void *bytes, size_t length)
{
    return (uint32_t)XXH64(bytes, length, TREE_VERSION);
}

void tree_put(struct bytes *into, const struct tree_record *record)
{
    size_t name_length = strlen(record->name), begin = into->length;
    bytes_add(into, record, TREE_HEAD);
    if (record->kind != TREE_DATA)
        bytes_add(into, record->bytes, record->length);
    bytes_add(into, record->name, name_length);
    char *head = into->data + begin;
    uint32_t sum = sum_of(head + TREE_SUMMED, into->length - begin - TREE_SUMMED);
    memcpy(head + 2, &(uint16_t){(uint16_t)name_length}, 2);
    memcpy(head + 8, &sum, 4);
    sum = sum_of(head, 12);
    memcpy(head + 12, &sum, 4);
}

/* True if `name` is valid in a record: one component, not "." or "..". */
static bool is_name(const char *name, size_t length)
{
    return length > 0 && length <= TREE_NAME_MOST && !memchr(name, '/', length) &&
           !memchr(name, 0, length) && !(length == 1 && name[0] == '.') &&
           !(length == 2 && name[0] == '.' && name[1] == '.');
}

/* Return NULL, or the defect of a record whose checksums match. */
static const char *wrong(const struct tree_record *record)
{
    uint32_t length = record->length;
    bool data = record->kind == TREE_DATA;
    if (data && (!length || record->offset > (uint64_t)INT64_MAX - length))
        return "data beyond what a file can have";
    if (record->kind == TREE_LINK && (!length || length > 4095 || memchr(record->bytes, 0, length)))
        return "a symbolic link without a target";
    bool top = record->kind == TREE_ENTER && !record->name_length;
    if (has[record->kind] & NAME && !top && !is_name(record->name, record->name_length))
        return "a name that leads elsewhere";
    return NULL;
}

long tree_get(struct tree_record *record, const uint8_t *bytes, size_t length, const char **why)
{
    if (length < TREE_SUMMED)
        return 0;
    memcpy(record, bytes, TREE_SUMMED);
    *why = "a record that was damaged on its way, or is of another release";
    if (record->head_sum != sum_of(bytes, 12))
        return -1;
    *why = "a record of no known kind";
    if (record->kind < TREE_START || record->kind >= TREE_KINDS)
        return -1;
    *why = "a record of a wrong length";
    if (record->length > (has[record->kind] & BYTES ? TREE_DATA_MOST : 0) ||
        record->name_length > (has[record->kind] & NAME ? TREE_NAME_MOST : 0))
        return -1;
    size_t whole = (size_t)TREE_HEAD + record->length + record->name_length;
    if (length < whole)
        return 0;
    *why = "a record that was damaged on its way";
    size_t summed = record->kind == TREE_DATA ? TREE_HEAD : whole;
    if (record->sum != sum_of(bytes + TREE_SUMMED, summed - TREE_SUMMED))
        return -1;
    memcpy(record, bytes, TREE_HEAD);
    record->bytes = bytes + TREE_HEAD;
    memcpy(record->name, record->bytes + record->length, record->name_length);
    record->name[record->name_length] = '\0';
    *why = wrong(record);
    return *why ? -1 : (long)whole;
}

/* --- lines --- */

enum { TOGETHER = 256 << 10, INPUT_BYTES = 1 << 20 };

void tree_line_open(struct tree_line *line, int in, int out)
{
    *line = (struct tree_line){.in = in, .out = out, .most = INPUT_BYTES};
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

void tree_line_close(struct tree_line *line)
{
    fcntl(line->out, F_SETFL, fcntl(line->out, F_GETFL) & ~O_NONBLOCK);
    bytes_close(&line->input);
    bytes_close(&line->output);
}

/* Read the available input. Return 1, 0 at the end of the stream, or -1 with errno. */
static int fill(struct tree_line *line)
{
    bytes_drop(&line->input, line->used);
    line->used = 0;
    ssize_t got = bytes_read(&line->input, line->in, INPUT_BYTES);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN ? 1 : -1;
    line->ended = got == 0;
    return got > 0;
}

/* Send the queue, followed by these bytes. */
static void send_all(struct tree_line *line, const uint8_t *bytes, size_t length)
{
    size_t sent = 0, queued = line->output.length;
    while (sent < queued + length && !line->lost) {
        size_t of_queue = sent < queued ? sent : queued, of_bytes = sent - of_queue;
        struct iovec row[] = {
            {line->output.data + of_queue, queued - of_queue},
            {(uint8_t *)(uintptr_t)bytes + of_bytes, length - of_bytes},
        };
        ssize_t got = writev(line->out, row, 2);
        if (got >= 0) {
            sent += (size_t)got;
        } else if (errno == EAGAIN) {
            struct pollfd polled[] = {
                {line->out, POLLOUT, 0},
                {line->ended || line->input.length > line->most ? -1 : line->in, POLLIN, 0},
            };
            poll(polled, 2, -1);
            if (polled[1].revents)
                fill(line); /* the next read for a record reports errors */
        } else if (errno != EINTR) {
            if (errno != EPIPE) /* a peer that closed has printed the reason */
                fprintf(stderr, "rdcp: cannot pass the stream on: %m\n");
            line->lost = true;
        }
    }
    line->output.length = 0;
}

void tree_flush(struct tree_line *line)
{
    send_all(line, NULL, 0);
}

void tree_write(struct tree_line *line, const struct tree_record *record)
{
    bool data = record->kind == TREE_DATA, much = data && record->length >= TOGETHER / 4;
    tree_put(&line->output, record);
    if (data && !much)
        bytes_add(&line->output, record->bytes, record->length);
    if (much)
        send_all(line, record->bytes, record->length);
    else if (line->output.length >= TOGETHER && !line->held)
        tree_flush(line);
}

int tree_next(struct tree_line *line, struct tree_record *record, bool waits, const char **why)
{
    for (;;) {
        size_t left = line->input.length - line->used;
        long length = 0;
        if (left)
            length = tree_get(record, (const uint8_t *)line->input.data + line->used, left, why);
        if (length < 0)
            return -1;
        if (length > 0) {
            line->used += (size_t)length;
            return 1;
        }
        struct pollfd polled = {line->in, POLLIN, 0};
        bool there = !line->ended && poll(&polled, 1, 0) > 0;
        if (!there && !line->ended && !waits)
            return 0;
        *why = "the other side has left";
        if (!there && !line->held)
            tree_flush(line);
        if (line->lost)
            return -1;
        int got = line->ended ? 0 : fill(line);
        *why = got < 0 ? strerror(errno) : "it ends within a record";
        if (got <= 0)
            return got == 0 && !left ? 0 : -1;
    }
}

char *boot_id(void)
{
    char text[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0)
        text[strcspn(text, "\n")] = '\0';
    shut(&fd);
    return *text ? allocated(strdup(text)) : NULL;
}

int open_below(int folder, const char *name, int flags, mode_t mode)
{
    if (strcmp(name, "..") != 0)
        return openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    errno = EXDEV;
    return -1;
}

static size_t hash_of(uint64_t device, uint64_t inode)
{
    return (size_t)((inode ^ device << 32) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
}

/* Return the file's slot, or the free slot to insert it into. */
static struct tree_made_file *place_of(const struct tree_made *made, uint64_t device,
                                       uint64_t inode)
{
    size_t at = hash_of(device, inode);
    struct tree_made_file *file;
    do
        file = &made->file[at++ & (made->room - 1)];
    while (file->inode && (file->inode != inode || file->device != device));
    return file;
}

bool tree_made_find(const struct tree_made *made, const struct stat *state)
{
    return made->count && place_of(made, state->st_dev, state->st_ino)->inode;
}

void tree_made_prefetch(const struct tree_made *made, const struct stat *state)
{
    if (made->room)
        __builtin_prefetch(
            &made->file[hash_of(state->st_dev, state->st_ino) & (made->room - 1)]);
}

static void grow(struct tree_made *made)
{
    struct tree_made more = {.room = made->room ? made->room * 2 : 64};
    more.file = allocated(malloc(more.room * sizeof *more.file));
    /* calloc(3) pages are read before they are written: two page faults each. */
    memset(more.file, 0, more.room * sizeof *more.file);
    for (size_t i = 0; i < made->room; i++)
        if (made->file[i].inode)
            *place_of(&more, made->file[i].device, made->file[i].inode) = made->file[i];
    free(made->file);
    made->file = more.file;
    made->room = more.room;
}

void tree_made_add(struct tree_made *made, const struct stat *state)
{
    if (made->count >= made->room / 4 * 3)
        grow(made);
    struct tree_made_file *file = place_of(made, state->st_dev, state->st_ino);
    made->count += !file->inode;
    *file = (struct tree_made_file){state->st_dev, state->st_ino};
}

void tree_made_close(struct tree_made *made)
{
    free(made->file);
    *made = (struct tree_made){0};
}

char *tree_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    char *name = allocated(strndup(path + begin, end - begin));
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        *name = '\0';
    return name;
}

/* Clamp years outside the range of an int64_t to its limits, 1677 and 2262. */
static int64_t ns_of(const struct timespec *when)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)when->tv_sec, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, (int64_t)when->tv_nsec, &ns))
        return when->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

struct timespec timespec_of(int64_t ns)
{
    struct timespec when = {ns / 1000000000, ns % 1000000000};
    if (when.tv_nsec < 0) { /* before 1970 */
        when.tv_sec--;
        when.tv_nsec += 1000000000;
    }
    return when;
}

struct tree_attributes tree_attributes_of(const struct stat *state)
{
    return (struct tree_attributes){
        .mode = state->st_mode & 07777,
        .device = (uint32_t)state->st_dev,
        .inode = state->st_ino,
        .mtime_ns = ns_of(&state->st_mtim),
        .atime_ns = ns_of(&state->st_atim),
    };
}

struct tree_lost tree_keep(int fd, const struct tree_attributes *to)
{
    struct timespec times[2] = {timespec_of(to->atime_ns), timespec_of(to->mtime_ns)};
    mode_t mode = to->mode & 0777;
    struct tree_lost lost = {0};
    struct stat state;
    if ((fstat(fd, &state) < 0 || (state.st_mode & 07777) != mode) && fchmod(fd, mode) < 0)
        lost = (struct tree_lost){"mode", errno};
    if (futimens(fd, times) < 0)
        lost = (struct tree_lost){"time", errno};
    return lost;
}

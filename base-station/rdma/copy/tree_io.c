/* Records of a tree to and from descriptors: see tree_io.h. */
#include "tree_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "descriptors.h"
#include "quote.h"

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

int tree_next(struct tree_line *line, struct tree_record *record, bool waits,
              const char **why)
{
    for (;;) {
        size_t left = line->input.length - line->used;
        long length = 0;
        if (left)
            length = tree_get(record, (const uint8_t *)line->input.data + line->used, left,
                              why);
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

void tree_say(const char *what, const char *of)
{
    struct bytes line = {0};
    bytes_text(&line, "rdcp: ");
    quote_shown(&line, what);
    bytes_text(&line, ": ");
    quote_shown(&line, of);
    bytes_text(&line, "\n");
    fputs(line.data, stderr);
    bytes_close(&line);
}

static bool errors_json;

void tree_errors_json(bool json)
{
    errors_json = json;
}

static const char *code_of(const char *what)
{
    if (strcmp(what, TREE_DIFFERS) == 0)
        return "differs";
    if (strcmp(what, TREE_UNLISTED) == 0)
        return "unlisted";
    return strcmp(what, strerror(ENOENT)) == 0 ? "missing" : "failed";
}

/* Append a JSON string. Bytes outside ASCII are copied: a line is UTF-8 only if its names are. */
static void json_add(struct bytes *into, const char *text)
{
    bytes_text(into, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 32 || c == 127)
            bytes_format(into, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            bytes_format(into, "\\%c", c);
        else
            bytes_add(into, text, 1);
    }
    bytes_text(into, "\"");
}

static void print_json(const char *path, const char *what)
{
    struct bytes line = {0};
    bytes_text(&line, "{\"path\": ");
    json_add(&line, path);
    bytes_format(&line, ", \"code\": \"%s\", \"error\": ", code_of(what));
    json_add(&line, what);
    bytes_text(&line, "}\n");
    fputs(line.data, stderr);
    bytes_close(&line);
}

void tree_error(uint64_t *errors, const char *path, const char *what)
{
    if (errors_json)
        print_json(path, what);
    else
        tree_say(path, what);
    (*errors)++;
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

int open_above(int base, const char **path)
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

static int no_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

int tree_entries(int folder, struct dirent ***entries)
{
    return scandirat(folder, ".", entries, no_dots, by_name);
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

/* rdcp --serve-source: reads files and trees, writes them as one stream on stdout. What
 * the sink already has stands on stdin. See tree.h. */
#include "tree_sides.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leash_work.h"
#include "tree_name.h"
#include "tree_io.h"
#include "tree_part.h"
#include "tree_progress.h"

struct part {
    char *path;
    uint64_t size, inode, have, sum;
    int64_t mtime_ns;
};

struct source {
    const struct rdcp_options *options;
    struct tree_writer out;
    struct part *parts;
    size_t part_count;
    struct tree_target target;
    struct tree_progress progress;
    uint64_t errors, files, bytes;
    uint64_t passed; /* of bytes in files that were read, holes and the sink's included */
    uint8_t *piece;
    bool lost; /* the stream has no reader any more */
};

static void put(struct source *source, const struct tree_record *record)
{
    if (!source->lost && tree_write(&source->out, record) < 0)
        source->lost = true;
}

static void complain(struct source *source, const char *path, const char *what)
{
    tree_progress_clear(&source->progress);
    tree_error(&source->errors, path, what);
}

static int add_part(struct source *source, const struct tree_record *record)
{
    struct part *more =
        reallocarray(source->parts, source->part_count + 1, sizeof *more);
    if (!more)
        return -1;
    source->parts = more;
    more[source->part_count++] = (struct part){
        .path = strndup(record->path, record->length),
        .size = record->size,
        .inode = record->inode,
        .have = record->from,
        .sum = record->sum,
        .mtime_ns = record->attributes.mtime_ns,
    };
    return 0;
}

static void hear_target(struct source *source, const struct tree_record *record)
{
    char *id = boot_id();
    source->target.here = id && strcmp(id, record->name) == 0;
    source->target.device = record->device;
    source->target.inode = record->inode;
    free(id);
}

/* Reads on to the end of stdin: who leaves before it looks like one that failed. */
static int read_parts(struct source *source)
{
    struct tree_reader reader = {.fd = STDIN_FILENO};
    struct tree_record record;
    const char *why = NULL;
    bool started = false, whole = false;
    int got;
    while ((got = tree_next(&reader, &record, &why)) > 0) {
        if (!started && !tree_starts(&record)) {
            bytes_close(&reader.buffer);
            return -1;
        }
        started = true;
        whole |= record.kind == TREE_END;
        if (record.kind == TREE_TARGET)
            hear_target(source, &record);
        why = strerror(ENOMEM);
        if (record.kind == TREE_PART && add_part(source, &record) < 0)
            break;
    }
    whole &= got == 0;
    bytes_close(&reader.buffer);
    if (!whole)
        fprintf(stderr, "rdcp: the list of what is there already: %s\n",
                got == 0 ? "it ends before its end" : why);
    return whole ? 0 : -1;
}

/* How much of the file the sink has, compared byte for byte by a checksum. */
static uint64_t resumed(const struct source *source, int fd, const struct stat *state,
                        const char *path)
{
    struct tree_attributes attributes;
    tree_attributes_of(&attributes, state);
    for (size_t i = 0; i < source->part_count; i++) {
        const struct part *part = &source->parts[i];
        uint64_t sum;
        if (part->path && strcmp(part->path, path) == 0 &&
            part->size == (uint64_t)state->st_size && part->inode == state->st_ino &&
            part->mtime_ns == attributes.mtime_ns && part->have <= part->size &&
            sum_of(fd, part->have, &sum) == 0 && sum == part->sum)
            return part->have;
    }
    return 0;
}

/* Sends the data from `at` to `end`, without the holes. NULL, or what went wrong. */
static const char *send_data(struct source *source, int fd, off_t at, off_t end)
{
    while (at < end && !source->lost) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return NULL; /* a hole up to the end */
        if (data < 0)
            data = at; /* a file system that knows no holes */
        off_t hole = lseek(fd, data, SEEK_HOLE);
        hole = hole < 0 || hole > end ? end : hole;
        for (at = data; at < hole && !source->lost;) {
            size_t want = hole - at < TREE_DATA_MOST ? (size_t)(hole - at) : TREE_DATA_MOST;
            ssize_t got = pread(fd, source->piece, want, at);
            if (got < 0 && errno == EINTR)
                continue;
            if (got < 0)
                return strerror(errno);
            if (got == 0)
                return "it shrank while it was read";
            put(source, &(struct tree_record){.kind = TREE_DATA,
                                              .offset = (uint64_t)at,
                                              .data = source->piece,
                                              .length = (uint32_t)got});
            at += got;
            source->bytes += (uint64_t)got;
            tree_progress_at(&source->progress, source->passed + (uint64_t)at,
                             source->bytes);
        }
    }
    return NULL;
}

static bool unchanged(int fd, const struct stat *before)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_size == before->st_size &&
           now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec &&
           now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

static void send_file(struct source *source, int fd, const char *name, const char *path)
{
    struct stat state;
    if (fstat(fd, &state) < 0 || !S_ISREG(state.st_mode)) {
        complain(source, path, "it changed while it was opened");
        return;
    }
    struct tree_record record = {.kind = TREE_FILE, .size = (uint64_t)state.st_size};
    record.from = resumed(source, fd, &state, path);
    tree_attributes_of(&record.attributes, &state);
    snprintf(record.name, sizeof record.name, "%s", name);
    put(source, &record);
    const char *why = send_data(source, fd, (off_t)record.from, state.st_size);
    struct tree_record whole = {.kind = TREE_WHOLE};
    if (!why && source->options->verify &&
        sum_of(fd, (uint64_t)state.st_size, &whole.sum) < 0)
        why = strerror(errno);
    if (!why && !unchanged(fd, &state))
        why = "it changed while it was read";
    if (why)
        complain(source, path, why);
    whole.length = !why;
    put(source, &whole);
    source->files++;
    source->passed += (uint64_t)state.st_size;
    tree_progress_at(&source->progress, source->passed, source->bytes);
}

static void walk(struct source *source, int folder, const char *name, const char *as,
                 const char *path, bool follow);

static int by_name(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

static void send_folder(struct source *source, int fd, const struct stat *state,
                        const char *as, const char *path)
{
    struct tree_record record = {.kind = TREE_ENTER};
    tree_attributes_of(&record.attributes, state);
    snprintf(record.name, sizeof record.name, "%s", as);
    put(source, &record);
    struct dirent **entries = NULL;
    int count = scandirat(fd, ".", &entries, NULL, by_name);
    if (count < 0)
        complain(source, path, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        struct bytes below = {0};
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !source->lost &&
            bytes_format(&below, *path ? "%s/%s" : "%s%s", path, name) == 0) {
            if (part_is(name)) /* it would take the place of the sink's own */
                complain(source, below.data,
                           "skipped: what a copy that was cut has left");
            else
                walk(source, fd, name, name, below.data, false);
        }
        bytes_close(&below);
        free(entries[i]);
    }
    free(entries);
    put(source, &(struct tree_record){.kind = TREE_LEAVE});
}

static void send_link(struct source *source, int folder, const char *name,
                      const struct stat *state, const char *as, const char *path)
{
    struct tree_record record = {.kind = TREE_LINK};
    struct stat referent;
    ssize_t length = readlinkat(folder, name, record.target, sizeof record.target - 1);
    if (length <= 0) {
        complain(source, path, strerror(errno));
        return;
    }
    tree_attributes_of(&record.attributes, state);
    if (fstatat(folder, name, &referent, 0) == 0) {
        record.device = referent.st_dev;
        record.inode = referent.st_ino;
    }
    snprintf(record.name, sizeof record.name, "%s", as);
    put(source, &record);
    source->files++;
}

/* One name below `folder`, under which it is called `as` at the sink. */
static void walk(struct source *source, int folder, const char *name, const char *as,
                 const char *path, bool follow)
{
    struct stat state;
    const char *shown = *path ? path : name;
    if (fstatat(folder, name, &state, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
        complain(source, shown, strerror(errno));
        return;
    }
    if (S_ISLNK(state.st_mode)) {
        send_link(source, folder, name, &state, as, path);
        return;
    }
    if (!S_ISREG(state.st_mode) && !S_ISDIR(state.st_mode)) {
        complain(source, shown, "skipped: a device, a FIFO or a socket");
        return;
    }
    if (S_ISDIR(state.st_mode) && !source->options->recursive) {
        complain(source, shown, "a directory: give -r to copy it");
        return;
    }
    if (S_ISDIR(state.st_mode) && tree_target_is(&source->target, &state)) {
        complain(source, shown, "a directory cannot be copied into itself");
        return;
    }
    int kind = S_ISDIR(state.st_mode) ? O_DIRECTORY : 0;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | kind |
                                      (follow ? 0 : O_NOFOLLOW));
    if (fd < 0)
        complain(source, shown, strerror(errno));
    else if (kind)
        send_folder(source, fd, &state, as, path);
    else
        send_file(source, fd, as, path);
    if (fd >= 0)
        close(fd);
}

static void put_start(struct source *source)
{
    struct tree_record record = {.kind = TREE_START, .length = TREE_VERSION};
    char *id = boot_id();
    if (id)
        strncpy(record.name, id, TREE_NAME_MOST);
    free(id);
    put(source, &record);
}

int tree_source(const struct rdcp_options *options, char **names, size_t count)
{
    struct source source = {.options = options, .out = {.fd = STDOUT_FILENO}};
    source.piece = malloc(TREE_DATA_MOST);
    if (!source.piece)
        fputs("rdcp: out of memory\n", stderr);
    if (!source.piece || read_parts(&source) < 0)
        return 1;
    put_start(&source);
    if (options->progress)
        tree_progress_open(&source.progress, names, count, options->recursive,
                           &source.target);
    for (size_t i = 0; i < count; i++) {
        char *name = leash_work_file(names[i]);
        char *as = tree_name(names[i]);
        size_t length = strlen(names[i]);
        bool slash = length && names[i][length - 1] == '/';
        if (name && as)
            walk(&source, AT_FDCWD, name, as, as, !options->recursive || slash);
        free(as);
        free(name);
    }
    put(&source, &(struct tree_record){.kind = TREE_END,
                                       .errors = source.errors,
                                       .files = source.files,
                                       .bytes = source.bytes});
    if (!source.lost && tree_flush(&source.out) < 0)
        source.lost = true;
    tree_progress_close(&source.progress);
    bytes_close(&source.out.pending);
    for (size_t i = 0; i < source.part_count; i++)
        free(source.parts[i].path);
    free(source.parts);
    free(source.piece);
    return source.lost; /* what was skipped is the sink's to report: it has to see the end */
}

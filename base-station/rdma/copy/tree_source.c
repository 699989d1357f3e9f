/* rdcp --serve-source: walk files and trees, announce them on stdout, and send the bodies that the
 * sink requests on stdin. See tree.h. */
#include "tree_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_protocol.h"
#include "tree_part.h"

enum {
    LOOK_EACH = 64, /* files announced between two checks for answers */
    ANSWERS_MOST = TREE_WINDOW * (1 + TREE_TRIES) * TREE_HEAD, /* limit on unread answers */
    AHEAD_MOST = 16 << 20, /* limit on queued records before the target is known */
};

struct entry { /* a source or an entry below it */
    struct source_folder *folder; /* NULL: a source itself, which is announced as `as` */
    const char *name, *as;
    bool follow;
    int depth;
    struct stat state;
};

static struct tree_record record_of(enum tree_kind kind, const struct entry *entry)
{
    struct tree_record record = {.kind = kind,
                                 .attributes = tree_attributes_of(&entry->state)};
    snprintf(record.name, sizeof record.name, "%s", entry->as);
    return record;
}

static void put_file(struct source *source, const struct entry *entry)
{
    struct source_folder *folder = entry->folder;
    struct tree_record record = record_of(TREE_FILE, entry);
    while (source->next - source->oldest >= TREE_WINDOW && !source_stopped(source))
        source_serve(source, true);
    record.size = (uint64_t)entry->state.st_size;
    record.room = (uint64_t)entry->state.st_blocks * 512;
    source->jobs[source->next % TREE_WINDOW] = (struct source_job){
        .folder = folder, .name = allocated(strdup(entry->name)), .size = record.size,
        .inode = record.attributes.inode, .mtime_ns = record.attributes.mtime_ns};
    if (folder)
        folder->uses++;
    tree_write(&source->line, &record);
    source->progress.announced += record.size;
    if (++source->next % LOOK_EACH || !source_meet(source, false))
        return;
    /* With progress the walk comes first: then the total is known soon. */
    while (!tree_progress_wanted(source->options) && source_serve(source, false))
        ;
}

static void walk(struct source *source, struct entry *entry);

static int no_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* In the byte order of the names, whatever the locale. */
static int by_name(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

static void put_entries(struct source *source, struct source_folder *folder, int depth)
{
    struct dirent **names = NULL;
    int count = scandirat(folder->fd, ".", &names, no_dots, by_name);
    if (count < 0)
        source_complain(source, folder, ".", strerror(errno));
    for (int i = 0; i < count; i++) {
        struct entry entry = {.folder = folder, .name = names[i]->d_name,
                              .as = names[i]->d_name, .depth = depth};
        if (source_stopped(source))
            ;
        else if (part_is(entry.name)) /* it would replace the sink's own part file */
            source_complain(source, folder, entry.name,
                            "skipped: what a copy that was cut has left");
        else
            walk(source, &entry);
        free(names[i]);
    }
    free(names);
}

static void put_folder(struct source *source, const struct entry *entry)
{
    while (source->folders > (size_t)entry->depth + TREE_FOLDERS_MOST && !source_stopped(source))
        source_serve(source, true);
    int fd = source_open(entry->folder, entry->name, entry->follow, O_DIRECTORY);
    if (fd < 0) {
        source_complain(source, entry->folder, entry->name, strerror(errno));
        return;
    }
    struct source_folder *folder = allocated(malloc(sizeof *folder));
    *folder = (struct source_folder){fd, 1, entry->folder
                                                ? source_path(entry->folder, entry->name)
                                                : allocated(strdup(entry->as))};
    source->folders++;
    if (!source->met)
        tree_made_add(&source->ahead, &entry->state);
    struct tree_record record = record_of(TREE_ENTER, entry);
    tree_write(&source->line, &record);
    put_entries(source, folder, entry->depth + 1);
    tree_write(&source->line, &(struct tree_record){.kind = TREE_LEAVE});
    source_leave(source, folder);
}

static void put_link(struct source *source, const struct entry *entry)
{
    char target[4096];
    struct tree_record record = record_of(TREE_LINK, entry);
    struct stat referent;
    int above = source_fd(entry->folder);
    ssize_t length = readlinkat(above, entry->name, target, sizeof target - 1);
    if (length <= 0) {
        source_complain(source, entry->folder, entry->name, strerror(errno));
        return;
    }
    record.bytes = (uint8_t *)target;
    record.length = (uint32_t)length;
    if (fstatat(above, entry->name, &referent, 0) == 0) {
        record.device = (uint32_t)referent.st_dev;
        record.inode = referent.st_ino;
    }
    tree_write(&source->line, &record);
}

static void walk(struct source *source, struct entry *entry)
{
    const struct stat *state = &entry->state, *target = &source->target;
    const char *why = NULL;
    if (source->line.output.length > AHEAD_MOST)
        source_meet(source, true);
    if (fstatat(source_fd(entry->folder), entry->name, &entry->state,
                entry->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
        source_complain(source, entry->folder, entry->name, strerror(errno));
        return;
    }
    bool folder = S_ISDIR(state->st_mode);
    if (!folder && !S_ISREG(state->st_mode) && !S_ISLNK(state->st_mode))
        why = "skipped: a device, a FIFO or a socket";
    else if (folder && !source->options->recursive)
        why = "a directory: give -r to copy it";
    else if (folder && target->st_ino == state->st_ino && target->st_dev == state->st_dev)
        why = "a directory cannot be copied into itself";
    else if (folder && entry->depth >= TREE_DEPTH_MOST)
        why = "too deep, and so is all that is in it";
    if (why)
        source_complain(source, entry->folder, entry->name, why);
    else if (folder)
        put_folder(source, entry);
    else if (S_ISLNK(state->st_mode))
        put_link(source, entry);
    else
        put_file(source, entry);
}

static void greet(struct source *source)
{
    char *id = boot_id();
    struct tree_record record = {.kind = TREE_START, .bytes = (const uint8_t *)id,
                                 .length = id ? (uint32_t)strlen(id) : 0};
    record.version = TREE_VERSION;
    tree_write(&source->line, &record);
    tree_flush(&source->line);
    source->line.held = true;
    free(id);
}

static void walk_all(struct source *source, char **names, size_t count)
{
    for (size_t i = 0; i < count && !source_stopped(source); i++) {
        char *name = agent_work_file(names[i]), *as = tree_name(names[i]);
        struct entry entry = {.name = name, .as = as};
        entry.follow = !source->options->recursive || name[strlen(name) - 1] == '/';
        walk(source, &entry);
        free(as);
        free(name);
    }
    source_meet(source, true);
}

static void put_all(struct source *source, char **names, size_t count)
{
    walk_all(source, names, count);
    if (source->anew) {
        source_forget(source);
        source->line.output.length = 0;
        source->anew = false;
        walk_all(source, names, count);
    }
    source->progress.walked = true;
    while (source->oldest < source->next && !source->line.lost)
        source_serve(source, true);
    if (!source->line.lost)
        tree_progress_show(&source->progress, 0, true);
    tree_progress_clear(&source->progress);
    struct tree_record record = {.kind = TREE_END};
    const char *why;
    record.errors = source->errors;
    tree_write(&source->line, &record);
    if (source->line.lost || tree_next(&source->line, &record, true, &why) <= 0 ||
        record.kind != TREE_BYE)
        source->line.lost = true;
}

int tree_source(const struct rdcp_options *options, char **names, size_t count)
{
    struct source *source = allocated(calloc(1, sizeof *source));
    signal(SIGPIPE, SIG_IGN);
    tree_hash_open(&source->hash, options->sha256);
    source->options = options;
    tree_line_open(&source->line, STDIN_FILENO, STDOUT_FILENO);
    source->line.most = ANSWERS_MOST; /* otherwise the sink could block for ever */
    greet(source);
    put_all(source, names, count);
    int status = source->line.lost; /* the sink reports skipped files */
    source_forget(source);
    tree_made_close(&source->ahead);
    tree_hash_close(&source->hash);
    tree_line_close(&source->line);
    free(source);
    return status;
}

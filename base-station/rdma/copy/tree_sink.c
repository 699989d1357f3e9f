/* rdcp --serve-sink: makes files and trees below DST from the stream on stdin, and says
 * what it wants of them. Every name is opened in the folder that is open already, through
 * no symbolic link. See tree.h. */
#include "tree_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "tree_part.h"

/* A source that was asked for `notes` must not send `.bashrc`. */
static bool asked_for(struct sink *sink, const char *name)
{
    size_t left = sink->asked_count;
    for (; left; left--) {
        char *own = tree_name(sink->asked[sink->asked_at]);
        bool same = strcmp(own, name) == 0;
        free(own);
        if (same)
            return true;
        sink->asked_at = (sink->asked_at + 1) % sink->asked_count;
    }
    return sink->asked_count == 0;
}

static int take_enter(struct sink *sink, const struct tree_record *record)
{
    const char *name = tree_sink_name(sink, record), *why;
    struct stat state;
    if (++sink->depth > TREE_DEPTH_MOST + 1)
        return tree_sink_refuse("more folders within each other than this rdcp sends");
    if (!*name && sink->in != &sink->top)
        return tree_sink_refuse("a folder below DST without a name");
    struct tree_folder *folder =
        tree_folder_enter(sink->in, name, &record->attributes, sink->options, &why);
    folder->xattrs = sink->xattrs;
    sink->xattrs = NULL;
    if (!why && folder->fd >= 0 && fstat(folder->fd, &state) == 0 &&
        tree_sink_is_one(sink, record->attributes.device, record->attributes.inode,
                         &state)) {
        why = "source and target are the same directory";
        close(folder->fd);
        folder->fd = -1; /* what is in it is passed over */
    }
    if (why)
        tree_sink_complain(sink, sink->in, name, why);
    sink->in = folder;
    return 0;
}

static int take_leave(struct sink *sink)
{
    if (!sink->depth)
        return tree_sink_refuse("it leaves a folder that it did not enter");
    struct tree_folder *folder = sink->in;
    sink->in = folder->up;
    sink->depth--;
    tree_sink_leave(sink, folder);
    return 0;
}

static bool same_link(const struct tree_folder *folder, const char *name,
                      const char *target)
{
    char is[4096];
    ssize_t length = readlinkat(folder->fd, name, is, sizeof is);
    return length == (ssize_t)strlen(target) && memcmp(is, target, (size_t)length) == 0;
}

static void take_link(struct sink *sink, const struct tree_record *record)
{
    struct tree_folder *folder = sink->in;
    const char *name = tree_sink_name(sink, record);
    const struct tree_attributes *to = &record->attributes;
    struct timespec times[2] = {{0, UTIME_OMIT}, timespec_of(to->mtime_ns)};
    struct stat state;
    char *no_part = NULL, target[4096] = "";
    if (folder->fd < 0)
        return;
    memcpy(target, record->bytes, record->length);
    tree_sink_one_by_one(sink);
    const char *why = tree_sink_in_the_way(sink, folder, name, to, record, &state);
    bool there = !why && same_link(folder, name, target);
    if (sink->options->dry_run && !why)
        return;
    if (why || (!there && part_link(folder->fd, name, target, &no_part) < 0)) {
        tree_sink_complain(sink, folder, name, why ? why : no_part);
        free(no_part);
        return;
    }
    if (utimensat(folder->fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        tree_sink_not_kept(sink, folder, name, "time", errno);
    if (sink->options->archive &&
        fchownat(folder->fd, name, to->uid, to->gid, AT_SYMLINK_NOFOLLOW) < 0)
        tree_sink_not_kept(sink, folder, name, "owner", errno);
    if (fstatat(folder->fd, name, &state, AT_SYMLINK_NOFOLLOW) == 0)
        tree_sink_remember(sink, folder, name, &state);
    sink->files += !there;
    sink->had += there;
}

static int take_hard(struct sink *sink, const struct tree_record *record)
{
    struct tree_folder *folder = sink->in;
    const char *name = tree_sink_name(sink, record);
    struct stat state;
    static const struct tree_attributes nobody;
    if (folder->fd < 0)
        return 0;
    tree_sink_one_by_one(sink);
    const char *why = tree_sink_in_the_way(sink, folder, name, &nobody, NULL, &state);
    if (why && !tree_made_find(&sink->made, &state)) {
        tree_sink_complain(sink, folder, name, why);
        return 0;
    }
    if (sink->options->dry_run)
        return 0;
    if (tree_links_take(&sink->links, record->number, sink->base.fd, folder, name,
                        &sink->errors) < 0)
        return tree_sink_refuse("a hard link to a file that it did not announce");
    return 0;
}

static int take_start(struct sink *sink, const struct tree_record *record)
{
    char *id = boot_id();
    struct tree_record target = {.kind = TREE_TARGET};
    struct tree_base base;
    struct stat state;
    sink->started = tree_starts(record);
    sink->source_here = sink->started && id && record->length == strlen(id) &&
                        memcmp(id, record->bytes, record->length) == 0;
    target.bytes = (const uint8_t *)id;
    target.length = id ? (uint32_t)strlen(id) : 0;
    if (tree_base_open(&base, sink->target, !sink->options->many, true) == 0 &&
        fstat(base.fd, &state) == 0) {
        target.device = state.st_dev;
        target.inode = state.st_ino;
    }
    tree_base_close(&base);
    int result = sink->started ? tree_write(&sink->line, &target) : -1;
    free(id);
    return result;
}

static int find_base(struct sink *sink, bool folder)
{
    if (tree_base_open(&sink->base, sink->target, !sink->options->many, folder) < 0) {
        tree_sink_complain(sink, NULL, "", strerror(errno));
        return -1;
    }
    sink->top = (struct tree_folder){.fd = sink->base.fd, .uses = 1, .had_parts = true};
    if (sink->base.rename && folder) /* its paths are from DST, which is its copy */
        sink->manifest.skip = strlen(sink->base.rename);
    return 0;
}

/* Takes one record; -1, and has said why, if it has no place here. */
static int take(struct sink *sink, const struct tree_record *record)
{
    enum tree_kind kind = record->kind;
    bool first = kind == TREE_FILE || kind == TREE_ENTER || kind == TREE_LINK ||
                 kind == TREE_HARD;
    if (!sink->started)
        return take_start(sink, record);
    if (first && sink->in == &sink->top && !asked_for(sink, record->name)) {
        tree_sink_complain(sink, NULL, record->name,
                           "nobody asked for it: nothing more is taken");
        return -1;
    }
    if (first && sink->base.fd < 0 && find_base(sink, kind == TREE_ENTER) < 0)
        return -1;
    if ((sink->body != NULL) != (kind == TREE_DATA || kind == TREE_WHOLE))
        return tree_sink_refuse("a record where it does not belong");
    if (first && sink->options->delete && sink->in != &sink->top)
        bytes_add(&sink->in->seen, record->name, strlen(record->name) + 1);
    switch (kind) {
    case TREE_ENTER: return take_enter(sink, record);
    case TREE_LEAVE: return take_leave(sink);
    case TREE_FILE: return tree_file_take(sink, record);
    case TREE_LINK: take_link(sink, record); return 0;
    case TREE_HARD: return take_hard(sink, record);
    case TREE_XATTR: tree_xattr_take(&sink->xattrs, record); return 0;
    case TREE_SUM: return tree_file_sum(sink, record);
    case TREE_BODY: return tree_file_body(sink, record);
    case TREE_DATA: return tree_file_data(sink, record);
    case TREE_WHOLE: return tree_file_whole(sink, record);
    case TREE_END:
        if (sink->depth)
            return tree_sink_refuse("it ends within a folder");
        sink->errors += record->errors;
        sink->ended = true;
        return tree_file_written(sink, true);
    default: return tree_sink_refuse("a record of another kind of stream");
    }
}

static void take_all(struct sink *sink)
{
    struct tree_record record = {0};
    const char *why = "";
    int got = 0;
    while (!sink->ended) {
        got = tree_next(&sink->line, &record, false, &why);
        if (got == 0) {
            if ((!sink->body && tree_file_written(sink, true) < 0) ||
                tree_file_answers(sink) < 0)
                return;
            got = tree_next(&sink->line, &record, true, &why);
        }
        if (got <= 0 || take(sink, &record) < 0)
            break;
    }
    if (got <= 0)
        tree_sink_refuse(got < 0 ? why : "it ends before its end");
}

/* What the source does not have: removed if all else went well and --yes was given. */
static void delete_extra(struct sink *sink)
{
    bool may = sink->options->yes && !sink->errors && !sink->options->dry_run;
    for (size_t i = 0; i < sink->extra.count; i++) {
        const char *path = sink->extra.word[i];
        if (may && tree_remove(sink->base.fd, path) < 0)
            tree_sink_complain(sink, NULL, path, strerror(errno));
        else if (!may || sink->options->verbose)
            tree_say(may ? "deleted" : "would delete", path);
    }
    if (sink->extra.count && !may && !sink->options->dry_run) {
        fprintf(stderr, "rdcp: nothing was deleted: %s\n",
                sink->options->yes ? "not all was copied" : "give --yes to delete these");
        sink->errors++;
    }
}

static void conclude(struct sink *sink)
{
    const struct rdcp_options *options = sink->options;
    struct tree_record bye = {.kind = TREE_BYE}, record;
    const char *why = "";
    if (options->delete)
        delete_extra(sink);
    if (sink->base.fd >= 0 && !options->no_sync && !options->dry_run &&
        syncfs(sink->base.fd) < 0)
        tree_sink_complain(sink, NULL, "", strerror(errno));
    if (options->manifest &&
        tree_manifest_write(&sink->manifest, sink->base.fd, &sink->errors) < 0)
        sink->errors++;
    bye.errors = sink->errors;
    if (tree_file_answers(sink) < 0 || tree_write(&sink->line, &bye) < 0 ||
        tree_flush(&sink->line) < 0)
        sink->ended = false;
    if (options->back)
        close(sink->line.out);
    else
        close(STDOUT_FILENO);
    if (tree_next(&sink->line, &record, true, &why) != 0 && sink->ended) {
        tree_sink_refuse("it goes on after its end");
        sink->ended = false;
    }
}

int tree_sink(const struct rdcp_options *options, const char *target, char **names,
              size_t count)
{
    struct sink *sink = allocated(calloc(1, sizeof *sink));
    int out = options->back ? LEASH_BACK_FD : STDOUT_FILENO;
    signal(SIGPIPE, SIG_IGN);
    tree_hash_open(&sink->hash, options->sha256);
    sink->options = options;
    sink->target = target;
    sink->asked = names;
    sink->asked_count = count;
    sink->base.fd = -1;
    sink->in = &sink->top;
    umask(0);
    tree_more_files();
    tree_line_open(&sink->line, STDIN_FILENO, out);
    tree_crew_open(&sink->crew, options);
    if (options->verbose && !opens_below())
        fprintf(stderr, "rdcp: no openat2 in this kernel (Linux 5.6 has it): names are "
                        "opened one by one, through no symbolic link\n");
    take_all(sink);
    if (sink->ended)
        conclude(sink);
    sink->cut = !sink->ended;
    tree_file_drop(sink);
    while (sink->depth)
        take_leave(sink);
    tree_crew_close(&sink->crew);
    if (options->json || options->verbose)
        fprintf(stderr,
                options->json
                    ? "{\"files\": %llu, \"bytes\": %llu, \"there_already\": %llu, "
                      "\"errors\": %llu}\n"
                    : "rdcp: %llu files, %llu bytes, %llu there already\n",
                (unsigned long long)sink->files, (unsigned long long)sink->bytes,
                (unsigned long long)sink->had, (unsigned long long)sink->errors);
    int status = !sink->ended ? 1 : sink->errors ? TREE_SOME_FAILED : 0;
    tree_xattr_close(&sink->xattrs);
    tree_base_close(&sink->base);
    tree_made_close(&sink->made);
    tree_links_close(&sink->links);
    words_close(&sink->manifest.paths);
    words_close(&sink->extra);
    tree_hash_close(&sink->hash);
    bytes_close(&sink->line.input);
    bytes_close(&sink->line.output);
    free(sink);
    return status;
}

/* rdcp --serve-sink: create files and trees below DST from the stream on stdin, and request the
 * needed bodies. Every name is opened relative to an open folder, through no symbolic link. See
 * tree.h. */
#include "tree_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_protocol.h"
#include "descriptors.h"
#include "tree_part.h"

/* Reject unrequested names: a source asked for `notes` must not send `.bashrc`. */
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

static const char *take_enter(struct sink *sink, const struct tree_record *record)
{
    if (sink->depth > TREE_DEPTH_MOST)
        return "more folders within each other than this rdcp sends";
    if (!*tree_sink_name(sink, record) && sink->in != sink->top)
        return "a folder below DST without a name";
    tree_folder_enter(sink, record);
    sink->depth++;
    return NULL;
}

static const char *take_leave(struct sink *sink)
{
    if (!sink->depth)
        return "it leaves a folder that it did not enter";
    struct tree_folder *folder = sink->in;
    sink->in = folder->up;
    sink->depth--;
    tree_folder_leave(sink, folder);
    return NULL;
}

static bool same_link(const struct tree_folder *folder, const char *name, const char *target)
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
    const char *why = tree_in_the_way(sink, folder, name, to, record, &state);
    bool there = !why && same_link(folder, name, target);
    if (why || (!there && part_link(folder->fd, name, target, &no_part) < 0)) {
        tree_sink_complain(sink, folder, name, why ? why : no_part);
        free(no_part);
        return;
    }
    struct tree_lost lost = {0};
    if (utimensat(folder->fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        lost = (struct tree_lost){"time", errno};
    tree_sink_not_kept(sink, folder, name, lost, to);
    if (fstatat(folder->fd, name, &state, AT_SYMLINK_NOFOLLOW) == 0)
        tree_made_add(&sink->made, &state);
    sink->count += !there;
    sink->had += there;
}

static const char *take_start(struct sink *sink, const struct tree_record *record)
{
    struct tree_record target = {.kind = TREE_TARGET};
    struct stat state;
    if (record->kind != TREE_START)
        return "it does not say its version: install the same release on both machines";
    if (record->version != TREE_VERSION) {
        fprintf(stderr, "rdcp: the stream is version %u, this rdcp knows %d: install the "
                        "same release on both machines\n",
                (unsigned)record->version, TREE_VERSION);
        return "";
    }
    char *id = boot_id();
    sink->started = true;
    sink->source_here = id && record->length == strlen(id) &&
                        memcmp(id, record->bytes, record->length) == 0;
    free(id);
    tree_folder_top(sink);
    if (sink->source_here && sink->top->fd >= 0 && fstat(sink->top->fd, &state) == 0) {
        target.device = state.st_dev;
        target.inode = state.st_ino;
    }
    tree_write(&sink->line, &target);
    return NULL;
}

/* Check that the first name at the top can be created there. */
static const char *find_top(struct sink *sink, bool folder)
{
    int error = sink->no_top;
    if (sink->rename && !*sink->rename && !folder) { /* a file goes into DST */
        free(sink->rename);
        sink->rename = NULL;
    }
    if (!error && sink->slash && !folder)
        error = ENOTDIR;
    sink->found = true;
    if (error)
        tree_sink_complain(sink, NULL, "", strerror(error));
    return error ? "" : NULL;
}

/* Take a record with a name. */
static const char *take_named(struct sink *sink, const struct tree_record *record)
{
    const char *why = NULL;
    if (sink->in == sink->top && !asked_for(sink, record->name)) {
        tree_sink_complain(sink, NULL, record->name, "it was not requested: the copy stops here");
        return "";
    }
    if (!sink->found)
        why = find_top(sink, record->kind == TREE_ENTER);
    if (why)
        return why;
    switch (record->kind) {
    case TREE_ENTER: return take_enter(sink, record);
    case TREE_FILE: return tree_file_take(sink, record);
    default: take_link(sink, record); return NULL;
    }
}

/* Take one record. Return NULL, or the reason why it is invalid; "" if that was printed. */
static const char *take(struct sink *sink, const struct tree_record *record)
{
    if (!sink->started)
        return take_start(sink, record);
    bool of_body = record->kind >= TREE_DATA && record->kind <= TREE_BROKEN;
    if ((sink->body != NULL) != of_body)
        return "a record where it does not belong";
    switch (record->kind) {
    case TREE_ENTER:
    case TREE_FILE:
    case TREE_LINK: return take_named(sink, record);
    case TREE_LEAVE: return take_leave(sink);
    case TREE_BODY: return tree_file_body(sink, record);
    case TREE_DATA: return tree_file_data(sink, record);
    case TREE_WHOLE:
    case TREE_BROKEN: tree_file_whole(sink, record); return NULL;
    case TREE_END:
        if (sink->depth)
            return "it ends within a folder";
        tree_file_await(sink);
        if (sink->top->uses > 1)
            return "it ends before its last file";
        sink->errors += record->errors;
        sink->ended = true;
        return NULL;
    default: return "a record of another kind of stream";
    }
}

static void take_all(struct sink *sink)
{
    struct tree_record record = {0};
    const char *why = NULL;
    while (!sink->ended && !why && !sink->line.lost) {
        int got = tree_next(&sink->line, &record, false, &why);
        if (got == 0) {
            if (!sink->body)
                tree_file_await(sink);
            tree_file_answers(sink);
            got = tree_next(&sink->line, &record, true, &why);
        }
        if (got > 0)
            why = take(sink, &record);
        else if (got == 0)
            why = "it ends before its end";
    }
    if (why && *why)
        fprintf(stderr, "rdcp: the stream: %s\n", why);
    sink->refused = why && !*why;
    sink->ended &= !sink->line.lost;
}

static void conclude(struct sink *sink)
{
    const struct rdcp_options *options = sink->options;
    struct tree_record bye = {.kind = TREE_BYE}, record;
    const char *why;
    if (sink->found && !options->no_sync && syncfs(sink->top->fd) < 0)
        tree_sink_complain(sink, NULL, "", strerror(errno));
    bye.errors = sink->errors;
    tree_file_answers(sink);
    tree_write(&sink->line, &bye);
    tree_flush(&sink->line);
    sink->ended = !sink->line.lost;
    close(sink->line.out);
    if (tree_next(&sink->line, &record, true, &why) != 0 && sink->ended) {
        fprintf(stderr, "rdcp: the stream: it goes on after its end\n");
        sink->ended = false;
    }
}

static void sink_close(struct sink *sink)
{
    tree_crew_close(&sink->crew);
    if (sink->top)
        tree_folder_leave(sink, sink->top);
    if (sink->scratch.made)
        shut(&sink->scratch.fd);
    free(sink->rename);
    tree_made_close(&sink->made);
    tree_hash_close(&sink->hash);
    bytes_close(&sink->line.input);
    bytes_close(&sink->line.output);
    free(sink);
}

static void tell(const struct sink *sink)
{
    const char *text = sink->options->json
                           ? "{\"files\": %llu, \"bytes\": %llu, \"there_already\": %llu, "
                             "\"errors\": %llu}\n"
                           : "rdcp: %llu files, %llu bytes, %llu there already\n";
    if (sink->options->json || sink->options->verbose)
        fprintf(stderr, text, (unsigned long long)sink->count,
                (unsigned long long)sink->bytes, (unsigned long long)sink->had,
                (unsigned long long)sink->errors);
}

int tree_sink(const struct rdcp_options *options, const char *target, char **names, size_t count)
{
    struct sink *sink = allocated(calloc(1, sizeof *sink));
    signal(SIGPIPE, SIG_IGN);
    umask(0);
    tree_hash_open(&sink->hash, options->sha256);
    tree_line_open(&sink->line, STDIN_FILENO, options->back ? AGENT_BACK_FD : STDOUT_FILENO);
    sink->options = options;
    sink->target = target;
    sink->asked = names;
    sink->asked_count = count;
    sink->many = count > 1;
    if (tree_crew_open(&sink->crew) == 0)
        take_all(sink);
    else
        fprintf(stderr, "rdcp: cannot start a thread: %m\n");
    if (sink->ended)
        conclude(sink);
    sink->cut = !sink->ended;
    tree_file_drop_body(sink);
    tree_file_drop_all(sink);
    while (sink->depth)
        take_leave(sink);
    tell(sink);
    int status = sink->refused ? TREE_IN_VAIN : !sink->ended ? 1
                 : sink->errors ? TREE_SOME_FAILED : 0;
    sink_close(sink);
    return status;
}

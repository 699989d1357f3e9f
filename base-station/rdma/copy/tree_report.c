/* Lines of rdcp on stderr: see tree_report.h. */
#include "tree_report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

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

bool tree_progress_wanted(const struct rdcp_options *options)
{
    return options->progress || options->json;
}

void tree_progress_start(struct tree_progress *progress, const struct rdcp_options *options)
{
    progress->options = options;
    progress->start_us = progress->shown_us = now_us();
}

void tree_progress_show(struct tree_progress *progress, uint64_t more, bool last)
{
    if (!progress->options || !tree_progress_wanted(progress->options))
        return;
    int64_t now = now_us(), total = progress->walked ? (int64_t)progress->announced : -1;
    if (!last && now - progress->shown_us < STATS_EACH_MS * INT64_C(1000))
        return;
    progress->shown_us = now;
    if (!progress->options->json) {
        stats_show(progress->moved, progress->done + more, total, now - progress->start_us);
        return;
    }
    fprintf(stderr, "{\"moved\": %llu, \"done\": %llu", (unsigned long long)progress->moved,
            (unsigned long long)(progress->done + more));
    if (total >= 0)
        fprintf(stderr, ", \"total\": %lld", (long long)total);
    fputs("}\n", stderr);
}

void tree_progress_clear(const struct tree_progress *progress)
{
    if (progress->options && progress->options->progress && say_ready(0))
        fputs(STATS_CLEAR, stderr);
}

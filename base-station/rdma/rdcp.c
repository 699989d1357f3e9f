/* rdcp: files and trees between machines.
 *
 *   rdcp --serve-source  ->  rdcp --serve-sink --back
 *   (where the SRCs are)     (where DST is)
 *      ^                        |
 *      `------------------------'   through the sessions: see agent_protocol.h
 *
 * This is an rdpipe chain of two segments. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "pipe.h"
#include "signals.h"
#include "tree_report.h"
#include "error.h"

static const char usage[] =
    "usage: rdcp [-r] [OPTION...] [[USER@]HOST:]SRC... [[USER@]HOST:]DST\n"
    "       rdcp --check SUMS [[USER@]HOST:]TREE\n"
    "  -r          copy directories too; symbolic links stay links\n"
    "  --checksum  compare existing files by content, not by size and time\n"
    "  --hash xxh3|sha256   hash for each file (xxh3)\n"
    "  --verify    read each file again at its target\n"
    "  --retry TIME         dial again after an outage, for so long: 90s, 30m, 2h\n"
    "  --no-sync   do not wait until the files have reached the disk\n"
    "  --rate, --bwlimit BYTES   send at most so many a second; 10M is ten MiB\n"
    "  -v          print files, bytes and rate; --json  the same, for programs\n"
    "  --port LOW-HIGH      receive on a port that a firewall lets in, or --via-ssh\n"
    "  --ssh --remote-path --via --transport --device --encrypt --plain\n"
    "  --timeout --idle-timeout --connect-timeout   as in rdpipe(1)\n"
    "  --help  --version\n"
    "To go on after a cut, start it again.\n";

struct rdcp {
    struct pipe_settings settings;
    struct rdcp_options options; /* sent to both sides */
    const char *check, *hash, *retry, *limit;
    int64_t retry_ms;
    bool begun; /* the two sides have met at least once */
    int mode;   /* 0: the client */
};

enum { SERVE_SOURCE = 1, SERVE_SINK, SERVE_CHECK };
enum { NAP_MOST_S = 30, STEADY_MS = 60000 };

#define TO(field) offsetof(struct rdcp, field)
static const struct choice own[] = {
    {"recursive", 'r', CHOICE_FLAG, TO(options.recursive), 0},
    {"checksum", 0, CHOICE_FLAG, TO(options.checksum), 0},
    {"verify", 0, CHOICE_FLAG, TO(options.verify), 0},
    {"json", 0, CHOICE_FLAG, TO(options.json), 0},
    {"no-sync", 0, CHOICE_FLAG, TO(options.no_sync), 0},
    {"hash", 0, CHOICE_TEXT, TO(hash), 0},
    {"progress", 0, CHOICE_FLAG, TO(options.progress), 0}, /* internal, as --back */
    {"back", 0, CHOICE_FLAG, TO(options.back), 0},
    {"check", 0, CHOICE_TEXT, TO(check), 0}, /* from here on not sent to the sides */
    {"retry", 0, CHOICE_TEXT, TO(retry), 0},
    {"bwlimit", 0, CHOICE_TEXT, TO(limit), 0},
    {"serve-source", 0, CHOICE_VALUE, TO(mode), SERVE_SOURCE},
    {"serve-sink", 0, CHOICE_VALUE, TO(mode), SERVE_SINK},
    {"serve-check", 0, CHOICE_VALUE, TO(mode), SERVE_CHECK},
};
enum { OWN = sizeof own / sizeof *own, NOT_TOLD = 6 };

/* Add a path. A remote path may be empty (the home) and may begin with "~/"; a local path is taken
 * literally. */
static void add_path(struct words *words, const char *path, const char *host)
{
    words_add_text(words, text_of("%s%s", !host && path[0] == '~' ? "./" : "",
                                  host && !*path ? "." : path));
}

struct place {
    const char *text; /* the argument */
    char *host;       /* NULL = here */
    const char *path; /* within the argument */
};

static int place_open(struct place *place, const char *text)
{
    place->text = text;
    place->path = segment_split(text, &place->host);
    if (!place->path)
        return pipe_refuse("rdcp:", text, "a host name cannot begin with \"-\"");
    return place->host || *place->path ? 0 : pipe_refuse("rdcp:", text, "an empty name");
}

/* Copy the first `count` - 1 places into the last one. */
static int copy_once(const struct rdcp *rdcp, const struct place *places, size_t count, int *caught)
{
    const struct place *target = &places[count - 1];
    struct pipe_segment segments[2] = {
        {.host = places[0].host, .label = places[0].text, .middle = AGENT_RDCP},
        {.host = target->host, .label = target->text, .middle = AGENT_RDCP},
    };
    for (int to = 0; to < 2; to++) {
        struct words *words = &segments[to].words;
        words_add(words, to ? "--serve-sink" : "--serve-source");
        pipe_options_add(words, &rdcp->settings, own, OWN - NOT_TOLD);
        words_add(words, "--back");
        if (rdcp->settings.verbose)
            words_add(words, "-v");
        words_add(words, "--");
        if (to)
            add_path(words, target->path, target->host);
        for (size_t i = 0; i + 1 < count; i++)
            add_path(words, places[i].path, places[i].host);
    }
    int status = pipe_run(&rdcp->settings, segments, 2, caught);
    words_close(&segments[0].words);
    words_close(&segments[1].words);
    return status;
}

/* Sleep. Return -1 if a signal arrived and the run has to end. */
static int nap(unsigned seconds, int *caught)
{
    struct pollfd polled = {signals_watch(), POLLIN, 0};
    int64_t end_ms = now_ms() + seconds * INT64_C(1000), left_ms;
    while (!(*caught = signals_number(polled.fd)) && (left_ms = end_ms - now_ms()) > 0)
        poll(&polled, 1, (int)left_ms);
    shut(&polled.fd);
    return *caught ? -1 : 0;
}

/* Repeat a copy that was cut until it is complete, or until the retry time has passed without
 * progress. Before the two sides have met, ssh does not tell an outage from a wrong name or key, so
 * that failure is final; so are errors about single files and a refused DST. */
static int copy_again(const struct rdcp *rdcp, const struct place *places, size_t count,
                      int *caught)
{
    int64_t until_ms = 0; /* not set */
    for (unsigned nap_s = 1;; nap_s = nap_s * 2 < NAP_MOST_S ? nap_s * 2 : NAP_MOST_S) {
        int64_t began_ms = now_ms();
        int status = copy_once(rdcp, places, count, caught);
        int64_t now = now_ms();
        bool steady = now - began_ms > STEADY_MS; /* it made progress before it was cut */
        if (!until_ms || steady)
            until_ms = now + rdcp->retry_ms;
        nap_s = steady ? 1 : nap_s;
        bool final = !status || status == 2 || status == TREE_SOME_FAILED ||
                     status == TREE_IN_VAIN || !rdcp->begun;
        if (final || *caught || now >= until_ms)
            return status;
        fprintf(stderr, "rdcp: dials again in %u s, for %lld s at most\n", nap_s,
                (long long)(until_ms - now) / 1000);
        if (nap(nap_s, caught) < 0)
            return status;
    }
}

static int copy(struct rdcp *rdcp, char **texts, size_t count)
{
    struct place *places = allocated(calloc(count, sizeof *places));
    struct rdcp_options *options = &rdcp->options;
    int status = 0, caught = 0;
    options->progress = options->verbose && !options->json && isatty(STDERR_FILENO);
    if (options->progress) /* the source shows progress, because only it has the total */
        pipe_tell_hops(&rdcp->settings, TO_BOTH, "no-progress", NULL);
    for (size_t i = 0; i < count && !status; i++)
        status = place_open(&places[i], texts[i]) < 0 ? 2 : 0;
    for (size_t i = 1; i + 1 < count && !status; i++)
        if (!same_text(places[0].host, places[i].host))
            status = -2 * pipe_refuse("rdcp:", texts[i], "not on the machine of the first source: "
                                      "run rdcp once for each machine");
    if (!status)
        status = copy_again(rdcp, places, count, &caught);
    if (status && status != 2)
        status = caught ? 128 + caught : 1;
    for (size_t i = 0; i < count; i++)
        free(places[i].host);
    free(places);
    return status;
}

/* Parse "30m" to ms. Return -1 if it is invalid. */
static int64_t time_of(const char *text)
{
    static const int64_t ms[] = {1000, 60000, 3600000, 86400000};
    static const char units[] = "smhd";
    char *unit;
    long number = strtol(text, &unit, 10);
    const char *which = *unit ? strchr(units, *unit) : units;
    if (unit > text && number >= 0 && number <= 1000000 && which && (!*unit || !unit[1]))
        return number * ms[which - units];
    return pipe_refuse("rdcp: --retry", text, "not a time: 90s, 30m, 2h or 1d");
}

/* Derive settings from the options. Return -1 after printing why an option is rejected. */
static int judge(struct rdcp *rdcp)
{
    struct rdcp_options *options = &rdcp->options;
    options->verbose = rdcp->settings.verbose;
    options->sha256 = rdcp->hash && strcmp(rdcp->hash, "sha256") == 0;
    rdcp->retry_ms = rdcp->retry ? time_of(rdcp->retry) : 0;
    if (rdcp->limit)
        pipe_tell_hops(&rdcp->settings, TO_SENDER, "rate", rdcp->limit);
    if (!rdcp->hash || options->sha256 || strcmp(rdcp->hash, "xxh3") == 0)
        return rdcp->retry_ms < 0 ? -1 : 0;
    return pipe_refuse("rdcp: --hash", rdcp->hash, "not xxh3 or sha256");
}

/* Run --check: send the list to the machine of the tree. */
static int check(struct rdcp *rdcp, const char *text)
{
    struct place place;
    const char *list = rdcp->check;
    int caught, status = 1, fd = strcmp(list, "-") == 0 ? STDIN_FILENO
                                                        : open(list, O_RDONLY | O_CLOEXEC);
    if (place_open(&place, text) < 0)
        status = 2;
    else if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
        pipe_refuse("rdcp:", list, strerror(errno));
    else if (!place.host)
        status = tree_check(place.path, rdcp->options.json);
    else {
        struct pipe_segment segment = {.host = place.host, .label = text,
                                       .middle = AGENT_RDCP};
        rdcp->settings.own_stdin = true;
        rdcp->settings.back = false;
        words_add(&segment.words, "--serve-check");
        if (rdcp->options.json)
            words_add(&segment.words, "--json");
        words_add(&segment.words, "--");
        add_path(&segment.words, place.path, place.host);
        status = pipe_run(&rdcp->settings, &segment, 1, &caught);
        words_close(&segment.words);
    }
    free(place.host);
    return status;
}

/* Run the requested mode. */
static int act(struct rdcp *rdcp, char **rest, size_t count)
{
    if (judge(rdcp) < 0)
        return 2;
    tree_errors_json(rdcp->options.json);
    if (count < (rdcp->mode || rdcp->check ? 1 : 2)) {
        fputs(usage, stderr);
        return 2;
    }
    switch (rdcp->mode) {
    case SERVE_SOURCE: return tree_source(&rdcp->options, rest, count);
    case SERVE_SINK: return tree_sink(&rdcp->options, rest[0], rest + 1, count - 1);
    case SERVE_CHECK: return tree_check(rest[0], rdcp->options.json);
    default: return rdcp->check ? check(rdcp, rest[0]) : copy(rdcp, rest, count);
    }
}

int main(int argc, char **argv)
{
    standard_open();
    struct rdcp rdcp = {.settings = {.program = "rdcp", .usage = usage, .ssh = "ssh",
                                     .route = AGENT_STRAIGHT, .back = true,
                                     .says_why = TREE_IN_VAIN, .begun = &rdcp.begun}};
    /* Disable the stream's checksum: each file has its own hash and is resent if necessary, while a
     * stream that failed for one flipped bit would abort all other files. */
    pipe_tell_hops(&rdcp.settings, TO_BOTH, "checksum", "none");
    int status = pipe_options(&rdcp.settings, "rvh", own, OWN, argc, argv);
    if (status < 0)
        status = act(&rdcp, argv + optind, (size_t)(argc - optind));
    pipe_settings_close(&rdcp.settings);
    return status;
}

/* rdcp: files and trees between machines.
 *
 *   rdcp --serve-source  ->  rdcp --serve-sink --back
 *   (where the SRCs are)     (where DST is)
 *      ^                        |
 *      `------------------------'   through the sessions: see leash_work.h
 *
 * is a chain of rdpipe's, one for all sources on one machine, or for as many of them as
 * go into one command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "leash_work.h"
#include "options.h"
#include "pipe.h"
#include "quote.h"
#include "segment.h"
#include "signals.h"
#include "tee.h"
#include "tree_hash.h"
#include "tree_io.h"
#include "tree_sides.h"
#include "trouble.h"

static const char usage[] =
    "usage: rdcp [-r] [OPTION...] [[USER@]HOST:]SRC... [[USER@]HOST:]DST\n"
    "       DST may be several: 'HOST1:DST|HOST2:DST', each gets all of it\n"
    "       rdcp --check MANIFEST [[USER@]HOST:]TREE\n"
    "  -r          directories, with all that is in them; links stay links\n"
    "  --archive   owners and set-id bits too (and -r)\n"
    "  -H -X -A    hard links, extended attributes, access control lists too\n"
    "  --checksum  what is there is compared by content, not by size and time\n"
    "  --hash xxh3|sha256   by which each file is judged (xxh3)\n"
    "  --verify    reads each file again at its target\n"
    "  --manifest FILE      writes SHA256SUMS of what is at DST then; - is stdout\n"
    "  --exclude PATTERN    not these: a name, or a path below SRC if it has a /\n"
    "  --delete    what SRC does not have is listed; with --yes it is deleted\n"
    "  --dry-run   says what would be copied and deleted, and does nothing\n"
    "  --retry TIME         dials again after an outage, for so long: 90s, 30m, 2h\n"
    "  --no-sync   leaves it to the kernel when it reaches the disk\n"
    "  --rate, --bwlimit BYTES   a second, at most; 10M is ten MiB\n"
    "  -v          what was moved, how fast; --json  the same, for programs\n"
    "  --port LOW-HIGH      what a firewall lets in; without: --dial-back, --via-ssh\n"
    "  --ssh --remote-path --via --transport --encrypt --timeout ...\n"
    "              as in rdpipe(1)\n"
    "  --help  --version\n"
    "It goes on where it was cut: start it again.\n";

/* Options with a value, and modes; all others are flags. */
enum {
    HASH = 1, MANIFEST, EXCLUDE, RETRY, BWLIMIT, CHECK,
    SERVE_SOURCE, SERVE_SINK, SERVE_CHECK,
    FLAGS, /* and the row of the flag */
};

/* What both sides are told. */
#define TO(field) offsetof(struct rdcp_options, field)
static const struct {
    const char *name;
    size_t field; /* a bool */
    int letter;
} flags[] = {
    {"recursive", TO(recursive), 'r'},
    {"archive", TO(archive), 0},
    {"hard-links", TO(hard_links), 'H'},
    {"xattrs", TO(xattrs), 'X'},
    {"acls", TO(acls), 'A'},
    {"checksum", TO(checksum), 0},
    {"verify", TO(verify), 0},
    {"delete", TO(delete), 0},
    {"yes", TO(yes), 0},
    {"dry-run", TO(dry_run), 0},
    {"json", TO(json), 0},
    {"no-sync", TO(no_sync), 0},
    {"many", TO(many), 0},         /* this and what follows is for the sides only */
    {"progress", TO(progress), 0},
    {"back", TO(back), 0},
};
enum { FLAG_ROWS = sizeof flags / sizeof *flags };

enum { NAP_MOST_S = 30, STEADY_MS = 60000 };

struct asked { /* beside what both sides are told */
    const char *manifest, *check;
    int64_t retry_ms;
};

/* Of one chain: what a line to a leash takes, in hex, and execve(2). */
enum { WORDS_MOST = LEASH_WORDS - 64, NAMES_MOST = LEASH_LINE_BYTES / 32 * 15 };

/* A remote path may be empty (the home) and may begin with "~/"; a local one means what
 * it says. */
static void add_path(struct words *words, const char *path, const char *host)
{
    words_add_text(words, text_of("%s%s", !host && path[0] == '~' ? "./" : "",
                                  host && !*path ? "." : path));
}

static void add_mode(struct words *words, const struct rdcp_options *options,
                    const char *mode)
{
    const struct { bool wanted; const char *option; } others[] = {
        {options->verbose, "-v"},
        {options->sha256, "--hash=sha256"},
        {options->manifest, "--manifest=-"},
    };
    words_add(words, "rdcp");
    words_add(words, mode);
    for (size_t i = 0; i < FLAG_ROWS; i++)
        if (*((const bool *)options + flags[i].field))
            words_add_text(words, text_of("--%s", flags[i].name));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].wanted)
            words_add(words, others[i].option);
    for (size_t i = 0; i < options->exclude.count; i++) {
        words_add(words, "--exclude");
        words_add(words, options->exclude.word[i]);
    }
    words_add(words, "--");
}

struct place {
    const char *text; /* the argument */
    char *host;       /* NULL = here */
    const char *path; /* within the argument */
    char *name;       /* what a source is called at DST */
    size_t chain;     /* which one copies a source, from 1 */
};

/* Says on stderr why this argument, or these two, are refused. */
static int refuse(const char *text, const char *other, const char *why)
{
    struct bytes line = {0};
    bytes_text(&line, "rdcp: \"");
    quote_shown(&line, text);
    if (other) {
        bytes_text(&line, "\" and \"");
        quote_shown(&line, other);
    }
    bytes_format(&line, "\": %s\n", why);
    fputs(line.data, stderr);
    bytes_close(&line);
    return -1;
}

static int place_open(struct place *place, const char *text)
{
    int length = segment_host_length(text);
    bool here = !length && text[0] == ':'; /* as rdpipe has it */
    *place = (struct place){.text = text, .path = text + length + here};
    if (!length && segment_is_option(text))
        return refuse(text, NULL, "a host name cannot begin with \"-\"");
    if (!length && !*place->path)
        return refuse(text, NULL, "an empty name");
    place->name = tree_name(place->path);
    if (length)
        place->host = segment_host(text, length);
    return 0;
}

static void place_close(struct place *place)
{
    free(place->host);
    free(place->name);
}

/* Says of each source which chain copies it; returns how many chains there are. */
static size_t plan(struct place *places, size_t count)
{
    size_t chains = 0;
    for (size_t i = 0; i < count; i++) {
        if (places[i].chain)
            continue;
        size_t bytes = 0, words = 0;
        chains++;
        for (size_t j = i; j < count; j++) {
            if (places[j].chain || !same_text(places[i].host, places[j].host))
                continue;
            bytes += strlen(places[j].path) + 1;
            if (j > i && (bytes > NAMES_MOST || ++words > WORDS_MOST))
                break;
            places[j].chain = chains;
        }
    }
    return chains;
}

static int by_name(const void *one, const void *other)
{
    const struct place *const *first = one, *const *second = other;
    int result = strcmp((*first)->name, (*second)->name);
    if (result)
        return result;
    return ((*first)->chain > (*second)->chain) - ((*first)->chain < (*second)->chain);
}

/* A sink replaces nothing that it has made itself; of another chain's it knows not. */
static int refuse_twins(struct place *places, size_t count)
{
    struct place **sorted = allocated(calloc(count, sizeof *sorted));
    int result = 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &places[i];
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 1; i < count && result == 0; i++) {
        const struct place *one = sorted[i - 1], *other = sorted[i];
        if (*one->name && strcmp(one->name, other->name) == 0 &&
            one->chain != other->chain)
            result = refuse(one->text, other->text, "both would get the same name");
    }
    free(sorted);
    return result;
}

/* The sources of one chain, of which `first` is the first. */
static int copy_from(const struct pipe_settings *settings,
                     const struct rdcp_options *options, const struct place *places,
                     size_t count, size_t first, int *caught)
{
    const struct place *target = &places[count - 1];
    struct pipe_settings with = *settings;
    struct rdcp_options sink = *options;
    struct pipe_segment segments[2] = {
        {.host = places[first].host, .label = places[first].text, .middle = LEASH_EXEC},
        {.host = target->host, .label = target->text, .middle = LEASH_EXEC},
    };
    with.back = sink.back = true;
    add_mode(&segments[0].words, options, "--serve-source");
    add_mode(&segments[1].words, &sink, "--serve-sink");
    add_path(&segments[1].words, target->path, target->host);
    for (size_t i = first; i + 1 < count; i++)
        for (int to = 0; to < 2 && places[i].chain == places[first].chain; to++)
            add_path(&segments[to].words, places[i].path, places[i].host);
    int status = pipe_run(&with, segments, 2, caught);
    words_close(&segments[0].words);
    words_close(&segments[1].words);
    return status;
}

/* Sleeps. -1: a signal ended that, and is to end all. */
static int nap(unsigned seconds, int *caught)
{
    struct pollfd polled = {signals_watch(), POLLIN, 0};
    int64_t end_ms = now_ms() + seconds * INT64_C(1000), left_ms;
    while (!(*caught = signals_number(polled.fd)) && (left_ms = end_ms - now_ms()) > 0)
        poll(&polled, 1, (int)left_ms);
    shut(&polled.fd);
    return *caught ? -1 : 0;
}

/* What was cut is begun again until it is whole, or nothing was to be had for so long.
 * What a copy that ended has said of single files is final. */
static int copy_again(const struct pipe_settings *settings,
                      const struct rdcp_options *options, const struct asked *asked,
                      const struct place *places, size_t count, size_t first, int *caught)
{
    int64_t until_ms = 0; /* none yet */
    for (unsigned nap_s = 1;; nap_s = nap_s * 2 < NAP_MOST_S ? nap_s * 2 : NAP_MOST_S) {
        int64_t began_ms = now_ms();
        int status = copy_from(settings, options, places, count, first, caught);
        int64_t now = now_ms();
        bool steady = now - began_ms > STEADY_MS; /* it was at work before it was cut */
        if (!until_ms || steady)
            until_ms = now + asked->retry_ms;
        nap_s = steady ? 1 : nap_s;
        if (!status || status == 2 || status == TREE_SOME_FAILED || *caught ||
            now >= until_ms)
            return status;
        fprintf(stderr, "rdcp: dials again in %u s, for %lld s at most\n", nap_s,
                (long long)(until_ms - now) / 1000);
        if (nap(nap_s, caught) < 0)
            return status;
    }
}

static int copy(const struct pipe_settings *settings, const struct rdcp_options *options,
                const struct asked *asked, char **texts, size_t count)
{
    struct place *places = allocated(calloc(count, sizeof *places));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++)
        status = place_open(&places[i], texts[i]) < 0 ? 2 : 0;
    size_t chains = status ? 0 : plan(places, count - 1), begun = 0;
    bool refused = status || (chains > 1 && refuse_twins(places, count - 1) < 0);
    int caught = 0;
    status = refused ? 2 : 0;
    for (size_t i = 0; i + 1 < count && !refused && !caught; i++) {
        if (places[i].chain <= begun)
            continue;
        begun++;
        int one = copy_again(settings, options, asked, places, count, i, &caught);
        if (one)
            status = caught ? 128 + caught : one == 2 ? 2 : 1;
    }
    for (size_t i = 0; i < count; i++)
        place_close(&places[i]);
    free(places);
    return status;
}

/* Each file is judged by its own hash, and sent again if need be: a stream that failed
 * for one flipped bit would take all the others with it. */
static const char FILES_ARE_JUDGED[] = "--checksum=none";

/* The source knows how much there is to copy, and shows it; the hops know what went by. */
static const char SOURCE_SHOWS[] = "--no-progress";

static void tell_hops(struct pipe_settings *settings, const char *option)
{
    words_add(&settings->in_options, option);
    words_add(&settings->out_options, option);
}

/* "30m" in ms. -1: it is none. */
static int64_t time_of(const char *text)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    char *unit;
    long number = strtol(text, &unit, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (unit > text && number >= 0 && number <= 1000000 &&
            strcmp(unit, units[i].unit) == 0)
            return number * units[i].ms;
    fprintf(stderr, "rdcp: --retry \"%s\": not a time: 90s, 30m, 2h or 1d\n", text);
    return -1;
}

static const struct option own_options[] = {
    {"hash", required_argument, NULL, HASH},
    {"manifest", required_argument, NULL, MANIFEST},
    {"check", required_argument, NULL, CHECK},
    {"exclude", required_argument, NULL, EXCLUDE},
    {"retry", required_argument, NULL, RETRY},
    {"bwlimit", required_argument, NULL, BWLIMIT},
    {"serve-source", no_argument, NULL, SERVE_SOURCE},
    {"serve-sink", no_argument, NULL, SERVE_SINK},
    {"serve-check", no_argument, NULL, SERVE_CHECK},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
};

/* False: it is none of the flags. */
static bool take_flag(struct rdcp_options *options, int code)
{
    for (int i = 0; i < FLAG_ROWS; i++)
        if (code == FLAGS + i || (code == flags[i].letter && code)) {
            *((bool *)options + flags[i].field) = true;
            options->recursive |= options->archive;
            return true;
        }
    return false;
}

/* One option of rdcp's own. 1: taken; 0: not one of these; -1: refused, and said so. */
static int take_own(struct rdcp_options *options, struct asked *asked,
                    struct pipe_settings *settings, int code)
{
    if (take_flag(options, code) || (code >= SERVE_SOURCE && code <= SERVE_CHECK))
        return 1;
    switch (code) {
    case HASH:
        options->sha256 = strcmp(optarg, "sha256") == 0;
        if (options->sha256 || strcmp(optarg, "xxh3") == 0)
            return 1;
        fprintf(stderr, "rdcp: --hash \"%s\": not xxh3 or sha256\n", optarg);
        return -1;
    case EXCLUDE: words_add(&options->exclude, optarg); return 1;
    case MANIFEST: asked->manifest = optarg; options->manifest = true; return 1;
    case CHECK: asked->check = optarg; return 1;
    case RETRY: return (asked->retry_ms = time_of(optarg)) < 0 ? -1 : 1;
    case BWLIMIT:
        words_add_text(&settings->out_options, text_of("--rate=%s", optarg));
        return 1;
    default: return 0;
    }
}

/* Returns the mode, 0 = the copier, or -1 - an exit status. */
static int read_options(struct rdcp_options *options, struct asked *asked,
                        struct pipe_settings *settings, int argc, char **argv)
{
    enum { OWN = sizeof own_options / sizeof *own_options };
    struct option rows[PIPE_OPTIONS_MOST + OWN + FLAG_ROWS] = {{0}};
    memcpy(rows, own_options, sizeof own_options);
    for (int i = 0; i < FLAG_ROWS; i++)
        rows[OWN + i] = (struct option){flags[i].name, no_argument, NULL, FLAGS + i};
    pipe_options(rows + OWN + FLAG_ROWS);
    int code, mode = 0;
    while ((code = getopt_long(argc, argv, "rvhHXA", rows, NULL)) != -1) {
        options->verbose |= code == 'v';
        mode = code >= SERVE_SOURCE && code <= SERVE_CHECK ? code : mode;
        if (code == 'h' || code == 'V') {
            fputs(code == 'h' ? usage : "rdcp " RDPIPE_VERSION "\n", stdout);
            return -1;
        }
        int taken = take_own(options, asked, settings, code);
        if (taken < 0 || (!taken && pipe_option(settings, code, optarg) <= 0))
            return -3;
    }
    if (argc - optind >= (mode || asked->check ? 1 : 2))
        return mode;
    fputs(usage, stderr);
    return -3;
}

/* --check: the list goes to where the tree is. */
static int check(struct pipe_settings *settings, const char *manifest, const char *text)
{
    struct place place;
    int caught, status = 1, fd = strcmp(manifest, "-") == 0
                                     ? STDIN_FILENO : open(manifest, O_RDONLY | O_CLOEXEC);
    if (place_open(&place, text) < 0)
        status = 2;
    else if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
        refuse(manifest, NULL, strerror(errno));
    else if (!place.host)
        status = tree_manifest_check(place.path);
    else {
        struct pipe_segment segment = {.host = place.host, .label = text,
                                       .middle = LEASH_EXEC};
        static const struct rdcp_options none;
        settings->own_stdin = true;
        add_mode(&segment.words, &none, "--serve-check");
        add_path(&segment.words, place.path, place.host);
        status = pipe_run(settings, &segment, 1, &caught);
        words_close(&segment.words);
    }
    place_close(&place);
    return status;
}

/* The sink writes on its stdout, which comes to this one: FILE, when all is done. */
static int copy_with_manifest(struct pipe_settings *settings,
                              const struct rdcp_options *options,
                              const struct asked *asked, char **texts, size_t count)
{
    char *part = text_of("%s.rdcp-part", asked->manifest);
    bool file = strcmp(asked->manifest, "-") != 0;
    settings->own_stdout = true;
    int fd = file ? open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (file && (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)) {
        refuse(asked->manifest, NULL, strerror(errno));
        free(part);
        return 1;
    }
    int status = copy(settings, options, asked, texts, count);
    if (file && status == 0 && (fsync(fd) < 0 || rename(part, asked->manifest) < 0)) {
        refuse(asked->manifest, NULL, strerror(errno));
        status = 1;
    }
    if (file && status)
        unlink(part);
    free(part);
    return status;
}

struct copying { /* to one target of several */
    const struct pipe_settings *settings;
    const struct rdcp_options *options;
    const struct asked *asked;
    char **texts;
    size_t count;
};

static int copy_one(void *argument)
{
    const struct copying *one = argument;
    return copy(one->settings, one->options, one->asked, one->texts, one->count);
}

/* A process for each target: what the first one reads the others find in memory, and
 * none waits for another. */
static int copy_to_each(struct copying *copying, const struct words *targets)
{
    if (copying->asked->manifest)
        return refuse(copying->texts[copying->count - 1], NULL,
                      "--manifest is of one target");
    struct tee_target *each = allocated(calloc(targets->count, sizeof *each));
    char **target = &copying->texts[copying->count - 1], *all = *target;
    for (size_t i = 0; i < targets->count; i++) {
        *target = targets->word[i];
        each[i] = (struct tee_target){.label = *target, .fd = -1,
                                      .pid = tee_start(copy_one, copying)};
        if (each[i].pid < 0) {
            refuse(*target, NULL, strerror(errno));
            each[i].status = 1;
        }
    }
    *target = all;
    int status = tee_wait(each, targets->count);
    tee_tell("rdcp", each, targets->count);
    free(each);
    return status;
}

static int run(struct pipe_settings *settings, struct rdcp_options *options,
               const struct asked *asked, char **texts, size_t count)
{
    if (asked->check)
        return check(settings, asked->check, texts[0]);
    struct words targets = {0};
    struct copying copying = {settings, options, asked, texts, count};
    options->many |= count > 2;
    if (tee_split(&targets, texts[count - 1], false) > 1) {
        int status = copy_to_each(&copying, &targets);
        words_close(&targets);
        return status < 0 ? 2 : status;
    }
    words_close(&targets);
    options->progress = options->verbose && !options->json && isatty(STDERR_FILENO);
    if (options->progress)
        tell_hops(settings, SOURCE_SHOWS);
    return asked->manifest ? copy_with_manifest(settings, options, asked, texts, count)
                           : copy(settings, options, asked, texts, count);
}

int main(int argc, char **argv)
{
    leash_main(argc, argv);
    struct rdcp_options options = {0};
    struct asked asked = {0};
    struct pipe_settings settings;
    pipe_settings_open(&settings, "rdcp");
    settings.own_stdin = settings.own_stdout = false;
    settings.says_why = TREE_SOME_FAILED;
    tell_hops(&settings, FILES_ARE_JUDGED);
    int mode = read_options(&options, &asked, &settings, argc, argv);
    char **rest = argv + optind;
    size_t count = (size_t)(argc - optind);
    int status = -1 - mode;
    if (mode == SERVE_SOURCE)
        status = tree_source(&options, rest, count);
    else if (mode == SERVE_SINK)
        status = tree_sink(&options, rest[0], rest + 1, count - 1);
    else if (mode == SERVE_CHECK)
        status = tree_manifest_check(rest[0]);
    else if (mode == 0)
        status = run(&settings, &options, &asked, rest, count);
    words_close(&options.exclude);
    pipe_settings_close(&settings);
    return status;
}

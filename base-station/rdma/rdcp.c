/* rdcp: files and trees between machines.
 *
 *   rdcp --serve-parts  ->  rdcp --serve-source  ->  rdcp --serve-sink
 *   (where DST is)          (where the SRCs are)     (where DST is)
 *   DST SRC...              SRC...                   DST SRC...
 *
 * is a chain of rdpipe's, one for all sources on one machine, or for as many of them as
 * go into one command line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leash.h"
#include "options.h"
#include "pipe.h"
#include "pipe_options.h"
#include "quote.h"
#include "segment.h"
#include "standard.h"
#include "tree_name.h"
#include "tree_sides.h"

static const char usage[] =
    "usage: rdcp [-r] [OPTION...] [[USER@]HOST:]SRC... [[USER@]HOST:]DST\n"
    "  -r          directories, with all that is in them; links stay links\n"
    "  --archive   owners and set-id bits too (and -r)\n"
    "  --verify    reads each file again at its target\n"
    "  --no-sync   leaves it to the kernel when it reaches the disk\n"
    "  -v          what was moved, how fast\n"
    "  --ssh --remote-path --via --transport --encrypt --rate --timeout ...\n"
    "              as in rdpipe(1)\n"
    "  --help  --version\n";

enum {
    ARCHIVE = 1,
    VERIFY,
    NO_SYNC,
    MANY,
    PROGRESS,
    SERVE_PARTS,
    SERVE_SOURCE,
    SERVE_SINK,
};

/* Of one chain: what a line to a leash takes, in hex, and execve(2). */
enum { WORDS_MOST = LEASH_WORDS - 64, NAMES_MOST = LEASH_LINE_BYTES / 32 * 15 };

/* A remote path may be empty (the home) and may begin with "~/"; a local one means what
 * it says. */
static int add_path(struct words *words, const char *path, const char *host)
{
    char *text = NULL;
    int length = asprintf(&text, "%s%s", !host && path[0] == '~' ? "./" : "",
                          host && !*path ? "." : path);
    int result = length < 0 ? -1 : words_add(words, text);
    free(text);
    return result;
}

static int add_mode(struct words *words, const struct rdcp_options *options,
                    const char *mode)
{
    const struct {
        bool wanted;
        const char *option;
    } rows[] = {
        {true, "rdcp"},          {true, mode},
        {options->recursive, "-r"}, {options->archive, "--archive"},
        {options->verify, "--verify"}, {options->no_sync, "--no-sync"},
        {options->many, "--many"}, {options->verbose, "-v"},
        {options->progress, "--progress"}, {true, "--"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].wanted && words_add(words, rows[i].option) < 0)
            return -1;
    return 0;
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
    if (bytes_format(&line, "\": %s\n", why) == 0)
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
    return place->name && (place->host || !length) ? 0 : -1;
}

static void place_close(struct place *place)
{
    free(place->host);
    free(place->name);
}

static bool same_host(const struct place *one, const struct place *other)
{
    return one->host && other->host ? strcmp(one->host, other->host) == 0
                                    : one->host == other->host;
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
            if (places[j].chain || !same_host(&places[i], &places[j]))
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
    struct place **sorted = calloc(count, sizeof *sorted);
    int result = sorted ? 0 : -1;
    for (size_t i = 0; i < count && sorted; i++)
        sorted[i] = &places[i];
    if (sorted)
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
    static const char *const modes[] = {"--serve-parts", "--serve-source",
                                        "--serve-sink"};
    struct pipe_segment segments[3] = {
        {.host = target->host, .label = "what is there already"},
        {.host = places[first].host, .label = places[first].text},
        {.host = target->host, .label = target->text},
    };
    int result = 0;
    for (int i = 0; i < 3 && result == 0; i++) {
        segments[i].middle = LEASH_EXEC;
        result = add_mode(&segments[i].words, options, modes[i]);
        if (result == 0 && i != 1)
            result = add_path(&segments[i].words, target->path, target->host);
    }
    for (size_t i = first; i + 1 < count && result == 0; i++) {
        if (places[i].chain != places[first].chain)
            continue;
        for (int to = 0; to < 3 && result == 0; to++)
            result = add_path(&segments[to].words, places[i].path, places[i].host);
    }
    int status = result == 0 ? pipe_run(settings, segments, 3, caught) : 1;
    for (int i = 0; i < 3; i++)
        words_close(&segments[i].words);
    return status;
}

static int copy(const struct pipe_settings *settings, const struct rdcp_options *options,
                char **texts, size_t count)
{
    struct place *places = calloc(count, sizeof *places);
    int status = places ? 0 : 1;
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
        int one = copy_from(settings, options, places, count, i, &caught);
        if (one)
            status = caught ? 128 + caught : one == 2 ? 2 : 1;
    }
    for (size_t i = 0; i < count && places; i++)
        place_close(&places[i]);
    free(places);
    return status;
}

/* The source knows how much there is to copy, and shows it; the hops know what went by. */
static int show_once(struct pipe_settings *settings)
{
    return words_add(&settings->in_options, "--no-progress") < 0
               ? -1
               : words_add(&settings->out_options, "--no-progress");
}

/* Returns the mode, 0 = the copier, or -1 - an exit status. */
static int read_options(struct rdcp_options *options, struct pipe_settings *settings,
                        int argc, char **argv)
{
    static const struct option own[] = {
        {"recursive", no_argument, NULL, 'r'},
        {"archive", no_argument, NULL, ARCHIVE},
        {"verify", no_argument, NULL, VERIFY},
        {"no-sync", no_argument, NULL, NO_SYNC},
        {"many", no_argument, NULL, MANY},
        {"progress", no_argument, NULL, PROGRESS},
        {"serve-parts", no_argument, NULL, SERVE_PARTS},
        {"serve-source", no_argument, NULL, SERVE_SOURCE},
        {"serve-sink", no_argument, NULL, SERVE_SINK},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
    };
    struct option rows[PIPE_OPTIONS_MOST + sizeof own / sizeof *own] = {{0}};
    memcpy(rows, own, sizeof own);
    pipe_options(rows + sizeof own / sizeof *own);
    int code, mode = 0;
    while ((code = getopt_long(argc, argv, "rvh", rows, NULL)) != -1) {
        options->recursive |= code == 'r' || code == ARCHIVE;
        options->archive |= code == ARCHIVE;
        options->verify |= code == VERIFY;
        options->no_sync |= code == NO_SYNC;
        options->many |= code == MANY;
        options->progress |= code == PROGRESS;
        options->verbose |= code == 'v';
        mode = code >= SERVE_PARTS && code <= SERVE_SINK ? code : mode;
        if (code == 'h' || code == 'V') {
            fputs(code == 'h' ? usage : "rdcp " RDPIPE_VERSION "\n", stdout);
            return -1;
        }
        bool mine = code == 'r' || (code >= ARCHIVE && code <= SERVE_SINK);
        if (!mine && pipe_option(settings, code, optarg) <= 0)
            return -3;
    }
    if (argc - optind >= (mode == SERVE_SOURCE || mode == SERVE_SINK ? 1 : 2))
        return mode;
    fputs(usage, stderr);
    return -3;
}

int main(int argc, char **argv)
{
    standard_open();
    if (leash_asked(argc, argv))
        return leash_main(argc, argv);
    struct rdcp_options options = {0};
    struct pipe_settings settings;
    pipe_settings_open(&settings, "rdcp");
    settings.own_stdin = settings.own_stdout = false;
    settings.says_why = true;
    int mode = read_options(&options, &settings, argc, argv);
    char **rest = argv + optind;
    size_t count = (size_t)(argc - optind);
    int status = -1 - mode;
    if (mode == SERVE_PARTS)
        status = tree_parts(rest[0], rest + 1, count - 1);
    else if (mode == SERVE_SOURCE)
        status = tree_source(&options, rest, count);
    else if (mode == SERVE_SINK)
        status = tree_sink(&options, rest[0], rest + 1, count - 1);
    else if (mode == 0) {
        options.many |= count > 2;
        options.progress = options.verbose && isatty(STDERR_FILENO);
        bool fails = options.progress && show_once(&settings) < 0;
        status = fails ? 1 : copy(&settings, &options, rest, count);
    }
    pipe_settings_close(&settings);
    return status;
}

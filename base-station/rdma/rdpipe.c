/* rdpipe: a pipe between commands on different machines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leash.h"
#include "options.h"
#include "pipe.h"
#include "pipe_options.h"
#include "quote.h"
#include "segment.h"
#include "standard.h"

static const char usage[] =
    "usage: rdpipe [-v] [OPTION...] SEGMENT [SEGMENT...]\n"
    "  SEGMENT   [[USER@]HOST:]COMMAND, and a file as [HOST:]<FILE first,\n"
    "            [HOST:]>FILE or [HOST:]>>FILE last; a leading : makes it local\n"
    "  --ssh CMD            instead of ssh, options included\n"
    "  --remote-path DIR    where rdsend and rdrecv are on the other machines\n"
    "  --via HOST=ADDRESS   send to HOST's data at ADDRESS\n"
    "  --port LOW-HIGH      the data comes in on one of these, as a firewall lets it\n"
    "  --dial-back          who receives dials who sends (by itself if need be)\n"
    "  --via-ssh            no port at all, slower (by itself if need be)\n"
    "  -v                   each hop's transport, and why; its bandwidth\n"
    "  --sync               a file that is written is on disk when all is done\n"
    "  --transport --device --encrypt --sign --plain --checksum --chunk --credits\n"
    "  --timeout --idle-timeout --connect-timeout --finish-timeout --rate --json\n"
    "                       as in rdsend(1)\n"
    "  --help  --version\n";

static int refuse(const char *text, const char *why)
{
    struct bytes shown = {0};
    quote_shown(&shown, text);
    fprintf(stderr, "rdpipe: segment \"%s\": %s\n", shown.data ? shown.data : "", why);
    bytes_close(&shown);
    return -1;
}

static int read_segments(struct pipe_segment *segments, char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *why;
        if (segment_open(&segments[i], texts[i], &why) < 0)
            return refuse(texts[i], why);
        enum leash_middle middle = segments[i].middle;
        if (middle == LEASH_READ && i > 0)
            return refuse(texts[i], "only the first segment can read a file");
        if (middle != LEASH_EXEC && middle != LEASH_READ && i + 1 < count)
            return refuse(texts[i], "only the last segment can write a file");
    }
    return 0;
}

static int check_sync(const struct pipe_settings *settings, enum leash_middle last,
                      const char *text)
{
    if (!settings->sync || last == LEASH_WRITE || last == LEASH_APPEND)
        return 0;
    return refuse(text, "--sync needs a file that is written: >FILE or >>FILE last");
}

static int run(const struct pipe_settings *settings, char **texts, size_t count)
{
    struct pipe_segment *segments = calloc(count, sizeof *segments);
    int status = 2, caught;
    if (segments && read_segments(segments, texts, count) == 0 &&
        check_sync(settings, segments[count - 1].middle, texts[count - 1]) == 0)
        status = pipe_run(settings, segments, count, &caught);
    for (size_t i = 0; i < count && segments; i++)
        segment_close(&segments[i]);
    free(segments);
    return status;
}

/* 0: go on; otherwise an exit status + 1. */
static int read_options(struct pipe_settings *settings, int argc, char **argv)
{
    struct option rows[PIPE_OPTIONS_MOST] = {{0}};
    struct option *more = rows + pipe_options(rows);
    more[0] = (struct option){"help", no_argument, NULL, 'h'};
    more[1] = (struct option){"version", no_argument, NULL, 'V'};
    int code;
    while ((code = getopt_long(argc, argv, "+vh", rows, NULL)) != -1) {
        if (code == 'h' || code == 'V') {
            fputs(code == 'h' ? usage : "rdpipe " RDPIPE_VERSION "\n", stdout);
            return 1;
        }
        if (pipe_option(settings, code, optarg) <= 0) {
            if (code == '?')
                fputs("try rdpipe --help\n", stderr);
            return 3;
        }
    }
    if (optind < argc)
        return 0;
    fputs(usage, stderr);
    return 3;
}

int main(int argc, char **argv)
{
    standard_open();
    if (leash_asked(argc, argv))
        return leash_main(argc, argv);
    struct pipe_settings settings;
    pipe_settings_open(&settings, "rdpipe");
    int status = read_options(&settings, argc, argv) - 1;
    if (status < 0)
        status = run(&settings, argv + optind, (size_t)(argc - optind));
    pipe_settings_close(&settings);
    return status;
}

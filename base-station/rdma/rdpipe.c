/* rdpipe: a pipe between commands on different machines. */
#include <stdio.h>
#include <stdlib.h>

#include "leash_work.h"
#include "options.h"
#include "pipe.h"
#include "quote.h"
#include "segment.h"
#include "tee.h"

static const char usage[] =
    "usage: rdpipe [-v] [OPTION...] SEGMENT [SEGMENT...]\n"
    "  SEGMENT   [[USER@]HOST:]COMMAND, and a file as [HOST:]<FILE first,\n"
    "            [HOST:]>FILE or [HOST:]>>FILE last; a leading : makes it local\n"
    "  the last one may be more: 'HOST1:COMMAND|HOST2:COMMAND' both get all of it\n"
    "  --wait               these at the pace of the slowest, who is let go otherwise\n"
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
    fprintf(stderr, "rdpipe: segment \"%s\": %s\n", shown.data, why);
    bytes_close(&shown);
    return -1;
}

static int read_segments(struct pipe_segment *segments, char **texts, size_t before,
                         const struct words *targets)
{
    for (size_t i = 0; i < before + targets->count; i++) {
        const char *why, *text = i < before ? texts[i] : targets->word[i - before];
        if (segment_open(&segments[i], text, &why) < 0)
            return refuse(text, why);
        enum leash_middle middle = segments[i].middle;
        if (middle == LEASH_READ && (i > 0 || targets->count > 1))
            return refuse(text, "only the first segment can read a file");
        if (middle != LEASH_EXEC && middle != LEASH_READ && i < before)
            return refuse(text, "only the last segment can write a file");
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

/* `before`: segments before the last, or before those that all get its output. */
static int run(const struct pipe_settings *settings, char **texts, size_t before,
               const struct words *targets)
{
    size_t count = before + targets->count;
    struct pipe_segment *segments = allocated(calloc(count, sizeof *segments));
    int status = read_segments(segments, texts, before, targets), caught;
    for (size_t i = before; i < count && status == 0; i++)
        status = check_sync(settings, segments[i].middle, targets->word[i - before]);
    if (status < 0)
        status = 2;
    else if (targets->count == 1)
        status = pipe_run(settings, segments, count, &caught);
    else
        status = tee_run(settings, segments, before, segments + before, targets->count,
                         settings->waits);
    for (size_t i = 0; i < count; i++)
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
    more[2] = (struct option){"wait", no_argument, NULL, 'w'};
    int code;
    while ((code = getopt_long(argc, argv, "+vh", rows, NULL)) != -1) {
        if (code == 'h' || code == 'V') {
            fputs(code == 'h' ? usage : "rdpipe " RDPIPE_VERSION "\n", stdout);
            return 1;
        }
        if (code == 'w') {
            settings->waits = true;
        } else if (pipe_option(settings, code, optarg) <= 0) {
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
    leash_main(argc, argv);
    struct pipe_settings settings;
    pipe_settings_open(&settings, "rdpipe");
    struct words targets = {0};
    int status = read_options(&settings, argc, argv) - 1;
    if (status < 0) {
        tee_split(&targets, argv[argc - 1], true);
        status = run(&settings, argv + optind, (size_t)(argc - optind) - 1, &targets);
    }
    words_close(&targets);
    pipe_settings_close(&settings);
    return status;
}

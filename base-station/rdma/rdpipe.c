/* rdpipe: a pipe between commands on different machines. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "descriptors.h"
#include "options.h"
#include "pipe.h"
#include "quote.h"

static const char usage[] =
    "usage: rdpipe [-v] [OPTION...] SEGMENT [SEGMENT...]\n"
    "  SEGMENT   [[USER@]HOST:]COMMAND, and a file as [HOST:]<FILE first,\n"
    "            [HOST:]>FILE last; a leading : makes it local\n"
    "  --ssh CMD            instead of ssh, options included\n"
    "  --remote-path DIR    where these tools are on the other machines\n"
    "  --via HOST=ADDRESS   send to HOST's data at ADDRESS\n"
    "  --port LOW-HIGH      the data comes in on one of these, as a firewall lets it\n"
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

static int read_segments(const struct pipe_settings *settings, struct pipe_segment *segments,
                         char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *why;
        bool last = i + 1 == count;
        if (segment_open(&segments[i], texts[i], &why) < 0)
            return refuse(texts[i], why);
        bool writes = segments[i].middle == AGENT_WRITE;
        if (segments[i].middle == AGENT_READ && i > 0)
            return refuse(texts[i], "only the first segment can read a file");
        if (writes && !last)
            return refuse(texts[i], "only the last segment can write a file");
        if (settings->sync && last && !writes)
            return refuse(texts[i], "--sync needs a file that is written: >FILE last");
    }
    return 0;
}

static int run(const struct pipe_settings *settings, char **texts, size_t count)
{
    struct pipe_segment *segments = allocated(calloc(count, sizeof *segments));
    int caught, status = EXIT_USAGE;
    if (read_segments(settings, segments, texts, count) == 0)
        status = pipe_run(settings, segments, count, &caught);
    for (size_t i = 0; i < count; i++)
        segment_close(&segments[i]);
    free(segments);
    return status;
}

int main(int argc, char **argv)
{
    standard_open();
    agent_main(argc, argv);
    struct pipe_settings settings = {.program = "rdpipe", .usage = usage, .ssh = "ssh",
                                     .route = AGENT_STRAIGHT,
                                     .own_stdin = true, .own_stdout = true};
    int status = pipe_options(&settings, "+vh", NULL, 0, argc, argv);
    if (status < 0 && optind == argc) {
        fputs(usage, stderr);
        status = EXIT_USAGE;
    } else if (status < 0) {
        status = run(&settings, argv + optind, (size_t)(argc - optind));
    }
    pipe_settings_close(&settings);
    return status;
}

/* rdpipe: a pipe between commands on different machines. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "descriptors.h"
#include "agent.h"
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
    "  --remote-path DIR    where these tools are on the other machines\n"
    "  --via HOST=ADDRESS   send to HOST's data at ADDRESS\n"
    "  --port LOW-HIGH      the data comes in on one of these, as a firewall lets it\n"
    "  --dial-back          who receives dials who sends (by itself if need be)\n"
    "  --via-ssh            no port at all, slower (by itself if need be)\n"
    "  -v                   each hop's transport, and why; its bandwidth\n"
    "  --sync               a file that is written is on disk when all is done\n"
    "  --transport --device --encrypt --plain --checksum --chunk --credits\n"
    "  --timeout --idle-timeout --connect-timeout --finish-timeout --rate --json\n"
    "                       as in rdsend(1)\n"
    "  --help  --version\n";

struct rdpipe {
    struct pipe_settings settings;
    bool waits; /* for the slowest of several targets: see tee.h */
};

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
        enum agent_middle middle = segments[i].middle;
        if (middle == AGENT_READ && (i > 0 || targets->count > 1))
            return refuse(text, "only the first segment can read a file");
        if (agent_writes(middle) && i < before)
            return refuse(text, "only the last segment can write a file");
    }
    return 0;
}

static int check_sync(const struct pipe_settings *settings, enum agent_middle last,
                      const char *text)
{
    if (!settings->sync || agent_writes(last))
        return 0;
    return refuse(text, "--sync needs a file that is written: >FILE or >>FILE last");
}

/*
 * Run the chain. `before` is the number of segments before the last one, or before the parallel
 * targets.
 */
static int run(const struct rdpipe *rdpipe, char **texts, size_t before,
               const struct words *targets)
{
    const struct pipe_settings *settings = &rdpipe->settings;
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
                         rdpipe->waits);
    for (size_t i = 0; i < count; i++)
        segment_close(&segments[i]);
    free(segments);
    return status;
}

int main(int argc, char **argv)
{
    standard_open();
    agent_main(argc, argv);
    struct rdpipe rdpipe = {.settings = {.program = "rdpipe", .usage = usage, .ssh = "ssh",
                                         .route = AGENT_STRAIGHT,
                                         .own_stdin = true, .own_stdout = true}};
    static const struct choice own[] = {
        {"wait", 0, CHOICE_FLAG, offsetof(struct rdpipe, waits), 0},
    };
    struct words targets = {0};
    int status = pipe_options(&rdpipe.settings, "+vh", own, 1, argc, argv);
    if (status < 0 && optind == argc) {
        fputs(usage, stderr);
        status = EXIT_USAGE;
    } else if (status < 0) {
        tee_split(&targets, argv[argc - 1], true);
        status = run(&rdpipe, argv + optind, (size_t)(argc - optind) - 1, &targets);
    }
    words_close(&targets);
    pipe_settings_close(&rdpipe.settings);
    return status;
}

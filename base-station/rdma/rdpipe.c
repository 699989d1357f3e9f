/* rdpipe: a pipe between commands on different machines. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "descriptors.h"
#include "options.h"
#include "pipe.h"

static const char usage[] =
    "usage: rdpipe [-v] [OPTION...] SEGMENT [SEGMENT...]\n"
    "  SEGMENT   [[USER@]HOST:]COMMAND, and a file as [HOST:]<FILE first,\n"
    "            [HOST:]>FILE last; a leading : makes it local\n"
    "       rdpipe [OPTION...] --rsh [-l USER] HOST COMMAND...\n"
    "  --rsh                run COMMAND as rsh(1) does, for programs such as rsync -e\n"
    "  -l, --login USER     log in to HOST as USER, with --rsh\n"
    "  --ssh CMD            use this command instead of ssh, options included\n"
    "  --remote-path DIR    find these tools here on the other machines\n"
    "  --via HOST=ADDRESS   send the data for HOST to ADDRESS\n"
    "  --port LOW-HIGH      receive the data on a port that a firewall lets in\n"
    "  --via-ssh            send the data through SSH: slower, needs no port\n"
    "  -v                   print each hop's transport, its reason, the bandwidth\n"
    "  --sync               sync the written file to the disk before the end\n"
    "  --transport --device --encrypt --plain --checksum --chunk --credits\n"
    "  --timeout --idle-timeout --connect-timeout --finish-timeout --rate --json\n"
    "                       as in rdsend(1)\n"
    "  --help  --version\n";

struct rdpipe {
    struct pipe_settings settings;
    bool rsh;
    const char *login;
};

static const struct choice own[] = {
    {"rsh", 0, CHOICE_FLAG, offsetof(struct rdpipe, rsh), 0},
    {"login", 'l', CHOICE_TEXT, offsetof(struct rdpipe, login), 0},
};
enum { OWN = sizeof own / sizeof *own };

static int refuse(const char *text, const char *why)
{
    return pipe_refuse("rdpipe: segment", text, why);
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

/* Run HOST COMMAND..., as ssh(1) does. */
static int run_rsh(struct rdpipe *rdpipe, char **texts, size_t count)
{
    struct bytes command = {0};
    struct pipe_segment segment = {.label = texts[0], .middle = AGENT_SHELL};
    int caught, status = EXIT_USAGE;
    for (size_t i = 1; i < count; i++)
        bytes_format(&command, "%s%s", i > 1 ? " " : "", texts[i]);
    words_add_text(&segment.words, command.data);
    segment.host = text_of("%s%s%s", rdpipe->login ? rdpipe->login : "", rdpipe->login ? "@" : "",
                           texts[0]);
    rdpipe->settings.says_why = 255;
    pipe_tell_hops(&rdpipe->settings, TO_BOTH, "rsh", NULL);
    if (segment.host[0] == '-')
        refuse(segment.host, "a host name cannot begin with \"-\"");
    else
        status = pipe_run(&rdpipe->settings, &segment, 1, &caught);
    segment_close(&segment);
    return status;
}

int main(int argc, char **argv)
{
    standard_open();
    agent_main(argc, argv);
    struct rdpipe rdpipe = {.settings = {.program = "rdpipe", .usage = usage, .ssh = "ssh",
                                         .route = AGENT_STRAIGHT,
                                         .own_stdin = true, .own_stdout = true}};
    int status = pipe_options(&rdpipe.settings, "+vhl:", own, OWN, argc, argv);
    size_t count = (size_t)(argc - optind);
    if (status < 0 && (count < (rdpipe.rsh ? 2 : 1) || (rdpipe.login && !rdpipe.rsh))) {
        fputs(usage, stderr);
        status = EXIT_USAGE;
    } else if (status < 0) {
        status = rdpipe.rsh ? run_rsh(&rdpipe, argv + optind, count)
                            : run(&rdpipe.settings, argv + optind, count);
    }
    pipe_settings_close(&rdpipe.settings);
    return status;
}

/* The options that rdpipe and rdcp share: see pipe_options.h. */
#include "pipe_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

enum who { OWN, BOTH, SENDER, RECEIVER };

static const struct {
    const char *name;
    int argument;
    enum who who;
} table[] = {
    {"ssh", required_argument, OWN},
    {"remote-path", required_argument, OWN},
    {"via", required_argument, OWN},
    {"sync", no_argument, OWN},
    {"verbose", no_argument, BOTH},
    {"transport", required_argument, BOTH},
    {"device", required_argument, BOTH},
    {"encrypt", no_argument, BOTH},
    {"sign", no_argument, BOTH},
    {"plain", no_argument, BOTH},
    {"checksum", required_argument, BOTH},
    {"chunk", required_argument, BOTH},
    {"credits", required_argument, BOTH},
    {"timeout", required_argument, BOTH},
    {"idle-timeout", required_argument, BOTH},
    {"connect-timeout", required_argument, BOTH},
    {"json", no_argument, BOTH},
    {"rate", required_argument, SENDER},
    {"finish-timeout", required_argument, SENDER},
    {"port", required_argument, RECEIVER},
    {"dial-back", no_argument, OWN},
    {"via-ssh", no_argument, OWN},
};

enum { ROW_SSH, ROW_REMOTE_PATH, ROW_VIA, ROW_SYNC };
enum { ROWS = sizeof table / sizeof *table, ROW_VIA_SSH = ROWS - 1,
       ROW_DIAL_BACK = ROWS - 2, ROW_PORT = ROWS - 3 };

size_t pipe_options(struct option *rows)
{
    for (int i = 0; i < ROWS; i++)
        rows[i] =
            (struct option){table[i].name, table[i].argument, NULL, PIPE_OPTION_FIRST + i};
    return ROWS;
}

static int pass_on(struct pipe_settings *settings, int row, const char *value)
{
    char *word = value ? text_of("--%s=%s", table[row].name, value)
                       : text_of("--%s", table[row].name);
    if (table[row].who != RECEIVER)
        words_add(&settings->out_options, word);
    if (table[row].who != SENDER)
        words_add(&settings->in_options, word);
    free(word);
    return 1;
}

static int take_via(struct pipe_settings *settings, const char *value)
{
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ.:%,-_";
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1] || equals[1] == '-' ||
        equals[1 + strspn(equals + 1, plain)]) {
        fprintf(stderr, "%s: --via \"%s\": not HOST=ADDRESS\n", settings->program, value);
        return -1;
    }
    words_add(&settings->via, value);
    return 1;
}

static bool take_ports(struct pipe_settings *settings, const char *value)
{
    uint16_t least, most;
    settings->ports = value;
    if (net_ports(value, &least, &most) && least)
        return true;
    fprintf(stderr, "%s: --port \"%s\": not a port or two, as in 7471-7479\n",
            settings->program, value);
    return false;
}

int pipe_option(struct pipe_settings *settings, int code, const char *value)
{
    int row = (code == 'v' ? PIPE_OPTION_VERBOSE : code) - PIPE_OPTION_FIRST;
    if (row < 0 || row >= ROWS)
        return 0;
    if (row == ROW_PORT && !take_ports(settings, value))
        return -1;
    if (table[row].who != OWN)
        return pass_on(settings, row, value);
    switch (row) {
    case ROW_SSH:
        settings->ssh = value;
        return 1;
    case ROW_REMOTE_PATH:
        settings->remote_path = value;
        return 1;
    case ROW_DIAL_BACK:
        settings->way = LEASH_BACK;
        return 1;
    case ROW_VIA_SSH:
        settings->way = LEASH_THROUGH_SSH;
        return 1;
    case ROW_SYNC:
        settings->sync = true;
        return 1;
    default:
        return take_via(settings, value);
    }
}

void pipe_settings_open(struct pipe_settings *settings, const char *program)
{
    *settings = (struct pipe_settings){
        .program = program, .ssh = "ssh", .ports = "0", .own_stdin = true, .own_stdout = true};
}

void pipe_settings_close(struct pipe_settings *settings)
{
    words_close(&settings->out_options);
    words_close(&settings->in_options);
    words_close(&settings->via);
}

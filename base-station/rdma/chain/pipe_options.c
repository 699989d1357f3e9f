/* The options that rdpipe and rdcp share: see pipe.h. */
#include "pipe.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

enum who { OWN, BOTH, SENDER, RECEIVER };
#define TO(field) offsetof(struct pipe_settings, field)

static const struct {
    const char *name;
    int argument;
    enum who who;
    size_t field; /* OWN: a text, or an int that becomes `value` */
    int value;
} table[] = {
    {"verbose", no_argument, BOTH, 0, 0}, /* and -v */
    {"via", required_argument, OWN, TO(via), 0},
    {"port", required_argument, RECEIVER, TO(ports), 0},
    {"ssh", required_argument, OWN, TO(ssh), 0},
    {"remote-path", required_argument, OWN, TO(remote_path), 0},
    {"sync", no_argument, OWN, TO(sync), true},
    {"dial-back", no_argument, OWN, TO(way), LEASH_BACK},
    {"via-ssh", no_argument, OWN, TO(way), LEASH_THROUGH_SSH},
    {"transport", required_argument, BOTH, 0, 0},
    {"device", required_argument, BOTH, 0, 0},
    {"encrypt", no_argument, BOTH, 0, 0},
    {"sign", no_argument, BOTH, 0, 0},
    {"plain", no_argument, BOTH, 0, 0},
    {"checksum", required_argument, BOTH, 0, 0},
    {"chunk", required_argument, BOTH, 0, 0},
    {"credits", required_argument, BOTH, 0, 0},
    {"timeout", required_argument, BOTH, 0, 0},
    {"idle-timeout", required_argument, BOTH, 0, 0},
    {"connect-timeout", required_argument, BOTH, 0, 0},
    {"json", no_argument, BOTH, 0, 0},
    {"rate", required_argument, SENDER, 0, 0},
    {"finish-timeout", required_argument, SENDER, 0, 0},
};

enum { ROW_VERBOSE, ROW_VIA, ROW_PORT, ROWS = sizeof table / sizeof *table };

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
    int row = code == 'v' ? ROW_VERBOSE : code - PIPE_OPTION_FIRST;
    if (row < 0 || row >= ROWS)
        return 0;
    void *into = (char *)settings + table[row].field;
    if (row == ROW_VIA)
        return take_via(settings, value);
    if (row == ROW_PORT && !take_ports(settings, value))
        return -1;
    if (table[row].who != OWN)
        return pass_on(settings, row, value);
    if (value)
        *(const char **)into = value;
    else
        *(int *)into = table[row].value;
    return 1;
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

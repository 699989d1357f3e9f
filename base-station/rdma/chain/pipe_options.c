/* Arguments of rdpipe and rdcp: segments and shared options. See pipe.h. */
#include "pipe.h"

#include <getopt.h>
#include <regex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "options.h"

/* --- segments --- */

static const char host_pattern[] =
    "^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?"
    "([A-Za-z0-9_][A-Za-z0-9_.-]*|\\[[0-9A-Fa-f:.%]+\\]):";

static int host_length(const char *text)
{
    regex_t pattern;
    regmatch_t found;
    if (regcomp(&pattern, host_pattern, REG_EXTENDED) != 0)
        abort(); /* the expression is a constant */
    int result = regexec(&pattern, text, 1, &found, 0);
    regfree(&pattern);
    return result == 0 ? (int)found.rm_eo : 0;
}

static char *host_of(const char *text, int length)
{
    char *host = allocated(calloc(1, (size_t)length + 1)), *into = host;
    for (int i = 0; i < length - 1; i++) /* without the ":" */
        if (text[i] != '[' && text[i] != ']')
            *into++ = text[i];
    return host;
}

static bool is_option(const char *text)
{
    size_t length = strcspn(text, ": \t\n/");
    if (text[length] != ':' || length == 0)
        return false;
    const char *at = memchr(text, '@', length);
    return text[0] == '-' || (at && at[1] == '-');
}

const char *segment_split(const char *text, char **host)
{
    int length = host_length(text);
    *host = length ? host_of(text, length) : NULL;
    if (!length && is_option(text))
        return NULL;
    return text + length + (!length && text[0] == ':');
}

int pipe_refuse(const char *what, const char *text, const char *why)
{
    struct bytes shown = {0};
    quote_shown(&shown, text);
    fprintf(stderr, "%s \"%s\": %s\n", what, shown.data, why);
    bytes_close(&shown);
    return -1;
}

int segment_open(struct pipe_segment *segment, const char *text, const char **why)
{
    char *host;
    const char *rest = segment_split(text, &host);
    *segment = (struct pipe_segment){.host = host, .label = text, .middle = AGENT_SHELL};
    *why = "a host name cannot begin with \"-\" (a leading \":\" makes it local)";
    if (!rest)
        return -1;
    bool file = rest[0] == '<' || rest[0] == '>';
    if (file)
        segment->middle = rest[0] == '<' ? AGENT_READ : AGENT_WRITE;
    *why = file ? "no file name in it" : "no command in it";
    if (!rest[file])
        return -1;
    *why = "to append to a file, give the command cat >>FILE";
    if (rest[0] == '>' && rest[1] == '>')
        return -1;
    words_add(&segment->words, rest + file);
    return 0;
}

void segment_close(struct pipe_segment *segment)
{
    words_close(&segment->words);
    free((char *)segment->host);
}

/* --- options --- */

#define TO(field) offsetof(struct pipe_settings, field)

static const struct choice shared[] = {
    {"help", 'h', CHOICE_FLAG, TO(help), 0},
    {"version", 0, CHOICE_FLAG, TO(version), 0},
    {"verbose", 'v', CHOICE_FLAG, TO(verbose), 0},
    {"via", 0, CHOICE_LIST, TO(via), 0},
    {"port", 0, CHOICE_TEXT, TO(ports), 0},
    {"timeout", 0, CHOICE_TEXT, TO(timeout), 0},
    {"ssh", 0, CHOICE_TEXT, TO(ssh), 0},
    {"remote-path", 0, CHOICE_TEXT, TO(remote_path), 0},
    {"sync", 0, CHOICE_FLAG, TO(sync), 0},
    {"via-ssh", 0, CHOICE_VALUE, TO(route), AGENT_THROUGH_SSH},
    {"transport", 0, CHOICE_HOPS, TO_BOTH, 1},
    {"device", 0, CHOICE_HOPS, TO_BOTH, 1},
    {"encrypt", 0, CHOICE_HOPS, TO_BOTH, 0},
    {"plain", 0, CHOICE_HOPS, TO_BOTH, 0},
    {"checksum", 0, CHOICE_HOPS, TO_BOTH, 1},
    {"chunk", 0, CHOICE_HOPS, TO_BOTH, 1},
    {"credits", 0, CHOICE_HOPS, TO_BOTH, 1},
    {"idle-timeout", 0, CHOICE_HOPS, TO_BOTH, 1},
    {"connect-timeout", 0, CHOICE_HOPS, TO_BOTH, 1},
    {"json", 0, CHOICE_HOPS, TO_BOTH, 0},
    {"rate", 0, CHOICE_HOPS, TO_SENDER, 1},
    {"finish-timeout", 0, CHOICE_HOPS, TO_SENDER, 1},
};

enum { SHARED = sizeof shared / sizeof *shared, ROW_FIRST = 256, ROWS_MOST = 64 };

static bool has_value(const struct choice *row)
{
    return row->kind == CHOICE_TEXT || row->kind == CHOICE_LIST ||
           (row->kind == CHOICE_HOPS && row->value);
}

void pipe_tell_hops(struct pipe_settings *settings, enum to_whom who, const char *option,
                    const char *value)
{
    char *word = text_of("--%s%s%s", option, value ? "=" : "", value ? value : "");
    if (who & TO_SENDER)
        words_add(&settings->out_options, word);
    if (who & TO_RECEIVER)
        words_add(&settings->in_options, word);
    free(word);
}

static void take(struct pipe_settings *settings, const struct choice *row)
{
    void *into = (char *)settings + row->field;
    switch (row->kind) {
    case CHOICE_FLAG: *(bool *)into = true; break;
    case CHOICE_VALUE: *(int *)into = row->value; break;
    case CHOICE_TEXT: *(const char **)into = optarg; break;
    case CHOICE_LIST: words_add(into, optarg); break;
    case CHOICE_HOPS:
        pipe_tell_hops(settings, (enum to_whom)row->field, row->name, optarg);
    }
}

static bool check_via(const char *value)
{
    const char *equals = strchr(value, '=');
    return equals && equals > value && equals[1] && equals[1] != '-' &&
           !equals[1 + agent_plain(equals + 1)];
}

static int refuse(const struct pipe_settings *settings, const char *option,
                  const char *value, const char *why)
{
    char what[40];
    snprintf(what, sizeof what, "%s: --%s", settings->program, option);
    return pipe_refuse(what, value, why);
}

static bool take_timeout(struct pipe_settings *settings)
{
    char *rest;
    double ms = strtod(settings->timeout, &rest) * 1000;
    if (rest == settings->timeout || *rest || !(ms >= 0 && ms < INT_MAX))
        return false;
    settings->silence_ms = !ms ? 0 : ms > AGENT_SILENCE_LEAST_MS ? (int)ms : AGENT_SILENCE_LEAST_MS;
    pipe_tell_hops(settings, TO_BOTH, "timeout", settings->timeout);
    return true;
}

static int check(struct pipe_settings *settings)
{
    uint16_t least, most;
    for (size_t i = 0; i < settings->via.count; i++)
        if (!check_via(settings->via.word[i]))
            return refuse(settings, "via", settings->via.word[i], "not HOST=ADDRESS");
    if (settings->ports && (!net_ports(settings->ports, &least, &most) || !least))
        return refuse(settings, "port", settings->ports, "not a port or two, as in 7471-7479");
    if (settings->timeout && !take_timeout(settings))
        return refuse(settings, "timeout", settings->timeout, "not a number of seconds");
    if (settings->ports)
        pipe_tell_hops(settings, TO_RECEIVER, "port", settings->ports);
    if (settings->verbose)
        pipe_tell_hops(settings, TO_BOTH, "verbose", NULL);
    return 0;
}

int pipe_options(struct pipe_settings *settings, const char *letters,
                 const struct choice *own, size_t count, int argc, char **argv)
{
    const struct choice *all[ROWS_MOST];
    struct option rows[ROWS_MOST + 1] = {{0}};
    int code;
    settings->silence_ms = AGENT_SILENCE_MS;
    for (size_t i = 0; i < count + SHARED; i++) {
        all[i] = i < count ? &own[i] : &shared[i - count];
        rows[i] = (struct option){all[i]->name,
                                  has_value(all[i]) ? required_argument : no_argument, NULL,
                                  all[i]->letter ? all[i]->letter : ROW_FIRST + (int)i};
    }
    while ((code = getopt_long(argc, argv, letters, rows, NULL)) != -1) {
        size_t which = 0;
        while (which < count + SHARED && rows[which].val != code)
            which++;
        if (which == count + SHARED) {
            fprintf(stderr, "try %s --help (this is release " RDPIPE_VERSION
                            "; all machines need the same one)\n", settings->program);
            return EXIT_USAGE;
        }
        take(settings, all[which]);
    }
    if (settings->help || settings->version) {
        printf("%s%s", settings->help ? settings->usage : settings->program,
               settings->help ? "" : " " RDPIPE_VERSION "\n");
        return 0;
    }
    return check(settings) < 0 ? EXIT_USAGE : -1;
}

void pipe_options_add(struct words *into, const struct pipe_settings *settings,
                      const struct choice *own, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const void *from = (const char *)settings + own[i].field;
        const struct words *list = from;
        if (own[i].kind == CHOICE_FLAG && *(const bool *)from)
            words_add_text(into, text_of("--%s", own[i].name));
        else if (own[i].kind == CHOICE_TEXT && *(char *const *)from)
            words_add_text(into, text_of("--%s=%s", own[i].name, *(char *const *)from));
        for (size_t j = 0; own[i].kind == CHOICE_LIST && j < list->count; j++)
            words_add_text(into, text_of("--%s=%s", own[i].name, list->word[j]));
    }
}

void pipe_settings_close(struct pipe_settings *settings)
{
    words_close(&settings->out_options);
    words_close(&settings->in_options);
    words_close(&settings->via);
}

/* One argument of rdpipe: where it runs and what it is. */
#include "segment.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

static const char host_pattern[] =
    "^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?"
    "([A-Za-z0-9_][A-Za-z0-9_.-]*|\\[[0-9A-Fa-f:.%]+\\]):";

int segment_host_length(const char *text)
{
    regex_t pattern;
    regmatch_t found;
    if (regcomp(&pattern, host_pattern, REG_EXTENDED) != 0)
        abort(); /* the expression is a constant */
    int result = regexec(&pattern, text, 1, &found, 0);
    regfree(&pattern);
    return result == 0 ? (int)found.rm_eo : 0;
}

char *segment_host(const char *text, int length)
{
    char *host = calloc(1, (size_t)length + 1);
    if (!host)
        return NULL;
    char *into = host;
    for (int i = 0; i < length - 1; i++) /* without the ":" */
        if (text[i] != '[' && text[i] != ']')
            *into++ = text[i];
    return host;
}

int segment_is_option(const char *text)
{
    size_t length = strcspn(text, ": \t\n/");
    if (text[length] != ':' || length == 0)
        return 0;
    const char *at = memchr(text, '@', length);
    return text[0] == '-' || (at && at[1] == '-');
}

static const char *segment_kind(struct segment *segment, const char *rest)
{
    segment->kind = SEGMENT_COMMAND;
    if (rest[0] == '<') {
        segment->kind = SEGMENT_READ;
        return rest + 1;
    }
    if (rest[0] != '>')
        return rest;
    segment->kind = rest[1] == '>' ? SEGMENT_APPEND : SEGMENT_WRITE;
    return rest + (segment->kind == SEGMENT_APPEND ? 2 : 1);
}

int segment_open(struct segment *segment, const char *text, const char **why)
{
    *segment = (struct segment){0};
    *why = "out of memory";
    const char *rest = text;
    int length = segment_host_length(text);
    if (length > 0) {
        segment->host = segment_host(text, length);
        if (!segment->host)
            return -1;
        rest += length;
    } else if (text[0] == ':') {
        rest++;
    } else if (segment_is_option(text)) {
        *why = "a host name cannot begin with \"-\" (a leading \":\" makes it local)";
        return -1;
    }
    segment->text = strdup(segment_kind(segment, rest));
    if (!segment->text)
        return -1;
    *why = segment->kind == SEGMENT_COMMAND ? "no command in it" : "no file name in it";
    return segment->text[0] ? 0 : -1;
}

void segment_close(struct segment *segment)
{
    free(segment->text);
    free(segment->host);
    *segment = (struct segment){0};
}

/* One argument of rdpipe, the host and the command or file: see pipe.h. */
#include "pipe.h"

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
    char *host = allocated(calloc(1, (size_t)length + 1)), *into = host;
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

int segment_open(struct pipe_segment *segment, const char *text, const char **why)
{
    int length = segment_host_length(text);
    const char *rest = text + length + (!length && text[0] == ':');
    *segment = (struct pipe_segment){.label = text, .middle = AGENT_SHELL};
    if (rest == text && segment_is_option(text)) {
        *why = "a host name cannot begin with \"-\" (a leading \":\" makes it local)";
        return -1;
    }
    bool file = rest[0] == '<' || rest[0] == '>';
    if (file)
        segment->middle = rest[0] == '<' ? AGENT_READ : AGENT_WRITE;
    *why = file ? "no file name in it" : "no command in it";
    if (!rest[file])
        return -1;
    *why = "to append to a file, give the command cat >>FILE";
    if (rest[0] == '>' && rest[1] == '>')
        return -1;
    segment->host = length ? segment_host(text, length) : NULL;
    words_add(&segment->words, rest + file);
    return 0;
}

void segment_close(struct pipe_segment *segment)
{
    words_close(&segment->words);
    free((char *)segment->host);
}

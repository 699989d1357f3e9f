/* Text made safe for a shell or for display. */
#include "quote.h"

#include <string.h>

/* In single quotes fish interprets a backslash and csh "!": quote both separately. */
static void quote_one(struct bytes *into, char c)
{
    switch (c) {
    case '\'': bytes_text(into, "'\\''"); return;
    case '\\': bytes_text(into, "'\\\\'"); return;
    case '!': bytes_text(into, "'\\!'"); return;
    default: bytes_add(into, &c, 1);
    }
}

void quote_word(struct bytes *into, const char *text, bool home)
{
    bool outside = home && strncmp(text, "~/", 2) == 0;
    bytes_text(into, outside ? "~/'" : "'");
    for (text += outside ? 2 : 0; *text; text++)
        quote_one(into, *text);
    bytes_text(into, "'");
}

void quote_shown(struct bytes *into, const char *text)
{
    bytes_reserve(into, strlen(text)); /* allocate even for an empty text */
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\n' || c == '\t')
            bytes_text(into, c == '\n' ? "\\n" : "\\t");
        else if (c < 32 || c == 127)
            bytes_format(into, "\\x%02x", c);
        else
            bytes_add(into, text, 1);
    }
}

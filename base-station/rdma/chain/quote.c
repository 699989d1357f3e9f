/* Text made safe for a shell, and bytes as hexadecimal words. */
#include "quote.h"

#include <string.h>
#include <sys/random.h>

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

static const char hex_digits[] = "0123456789abcdef";

void hex_add(struct bytes *into, const void *data, size_t length)
{
    const unsigned char *from = data;
    for (size_t i = 0; i < length; i++) {
        const char pair[] = {hex_digits[from[i] >> 4], hex_digits[from[i] & 15]};
        bytes_add(into, pair, sizeof pair);
    }
}

int hex_random(char *into, size_t digits)
{
    if (getrandom(into, digits, 0) != (ssize_t)digits)
        return -1;
    for (size_t i = 0; i < digits; i++)
        into[i] = hex_digits[into[i] & 15];
    into[digits] = '\0';
    return 0;
}

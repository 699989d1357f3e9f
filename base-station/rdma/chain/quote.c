/* Text made safe for a shell, and bytes as hexadecimal words. */
#include "quote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Inside single quotes a backslash still means something to fish and "!" to csh: both
 * stand outside. */
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
    bytes_reserve(into, strlen(text)); /* something stands there, of an empty one too */
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

void hex_add(struct bytes *into, const void *data, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = data;
    bytes_reserve(into, 2 * length);
    for (size_t i = 0; i < length; i++) {
        char pair[2] = {digits[from[i] >> 4], digits[from[i] & 15]};
        bytes_add(into, pair, 2);
    }
}

int hex_random(char into[2 * HEX_RANDOM + 1])
{
    unsigned char random[HEX_RANDOM];
    struct bytes text = {0};
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return -1;
    hex_add(&text, random, sizeof random);
    memcpy(into, text.data, text.length + 1);
    bytes_close(&text);
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

int hex_read(const char *digits, void *data, size_t length)
{
    unsigned char *into = data;
    if (strlen(digits) != 2 * length)
        return -1;
    for (size_t i = 0; i < length; i++) {
        int high = hex_digit(digits[2 * i]), low = hex_digit(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return -1;
        into[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}

char *hex_text(const char *digits)
{
    size_t length = strlen(digits) / 2;
    char *text = allocated(calloc(1, length + 1));
    if (hex_read(digits, text, length) < 0 || memchr(text, 0, length)) {
        free(text);
        return NULL;
    }
    return text;
}

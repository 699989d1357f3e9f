/* Text made safe for a shell, and bytes as hexadecimal words. */
#include "quote.h"

#include <stdlib.h>
#include <string.h>

/* Inside single quotes a backslash still means something to fish and "!" to csh: both
 * stand outside. */
static int quote_one(struct bytes *into, char c)
{
    switch (c) {
    case '\'':
        return bytes_text(into, "'\\''");
    case '\\':
        return bytes_text(into, "'\\\\'");
    case '!':
        return bytes_text(into, "'\\!'");
    default:
        return bytes_add(into, &c, 1);
    }
}

int quote_word(struct bytes *into, const char *text, bool home)
{
    if (home && strncmp(text, "~/", 2) == 0) {
        if (bytes_text(into, "~/") < 0)
            return -1;
        text += 2;
    }
    if (bytes_text(into, "'") < 0)
        return -1;
    for (; *text; text++)
        if (quote_one(into, *text) < 0)
            return -1;
    return bytes_text(into, "'");
}

int quote_shown(struct bytes *into, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        int result = c == '\n'  ? bytes_text(into, "\\n")
                     : c == '\t' ? bytes_text(into, "\\t")
                     : c < 32 || c == 127
                         ? bytes_format(into, "\\x%02x", c)
                         : bytes_add(into, text, 1);
        if (result < 0)
            return -1;
    }
    return 0;
}

int hex_add(struct bytes *into, const void *data, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = data;
    if (bytes_reserve(into, 2 * length) < 0)
        return -1;
    for (size_t i = 0; i < length; i++) {
        char pair[2] = {digits[from[i] >> 4], digits[from[i] & 15]};
        bytes_add(into, pair, 2);
    }
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
    char *text = calloc(1, length + 1);
    if (!text || hex_read(digits, text, length) < 0 || memchr(text, 0, length)) {
        free(text);
        return NULL;
    }
    return text;
}

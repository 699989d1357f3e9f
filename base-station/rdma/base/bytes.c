/* Growable byte buffer, and quoted text: see bytes.h. */
#include "bytes.h"

#include <err.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void *allocated(void *memory)
{
    if (!memory)
        errx(1, "out of memory");
    return memory;
}

void bytes_reserve(struct bytes *bytes, size_t more)
{
    size_t need, room = bytes->room ? bytes->room : 256;
    if (__builtin_add_overflow(bytes->length + 1, more, &need) || need > SIZE_MAX / 2)
        allocated(NULL);
    if (need <= bytes->room)
        return;
    while (room < need)
        room *= 2;
    if (bytes->secret) { /* realloc(3) would leave a copy */
        struct bytes old = *bytes;
        bytes->data = allocated(malloc(room));
        if (old.length)
            memcpy(bytes->data, old.data, old.length);
        bytes_close(&old);
    } else {
        bytes->data = allocated(realloc(bytes->data, room));
    }
    bytes->room = room;
    bytes->data[bytes->length] = '\0';
}

void bytes_add(struct bytes *bytes, const void *data, size_t length)
{
    bytes_reserve(bytes, length);
    if (length)
        memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    bytes->data[bytes->length] = '\0';
}

void bytes_text(struct bytes *bytes, const char *text)
{
    bytes_add(bytes, text, strlen(text));
}

ssize_t bytes_read(struct bytes *bytes, int fd, size_t most)
{
    bytes_reserve(bytes, most);
    ssize_t got = read(fd, bytes->data + bytes->length, most);
    bytes->length += got > 0 ? (size_t)got : 0;
    bytes->data[bytes->length] = '\0';
    return got;
}

static char *format_text(const char *format, va_list arguments)
{
    char *text = NULL;
    return vasprintf(&text, format, arguments) < 0 ? allocated(NULL) : text;
}

void bytes_format(struct bytes *bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(format, arguments);
    va_end(arguments);
    bytes_text(bytes, text);
    free(text);
}

char *text_of(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(format, arguments);
    va_end(arguments);
    return text;
}

bool same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

void bytes_drop(struct bytes *bytes, size_t length)
{
    if (!length)
        return;
    bytes->length -= length;
    memmove(bytes->data, bytes->data + length, bytes->length + 1);
    if (bytes->secret)
        explicit_bzero(bytes->data + bytes->length, length);
}

char *bytes_line(struct bytes *bytes)
{
    char *end = bytes->length ? memchr(bytes->data, '\n', bytes->length) : NULL;
    if (!end)
        return NULL;
    size_t length = (size_t)(end - bytes->data);
    char *line = allocated(strndup(bytes->data, length));
    bytes_drop(bytes, length + 1);
    return line;
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

void bytes_close(struct bytes *bytes)
{
    if (bytes->secret && bytes->data)
        explicit_bzero(bytes->data, bytes->room);
    free(bytes->data);
    *bytes = (struct bytes){.secret = bytes->secret};
}

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
    quote_shown_bytes(into, text, strlen(text));
}

void quote_shown_bytes(struct bytes *into, const char *text, size_t length)
{
    bytes_reserve(into, length); /* allocate even for an empty text */
    for (const char *end = text + length; text < end; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\n' || c == '\t')
            bytes_text(into, c == '\n' ? "\\n" : "\\t");
        else if (c < 32 || c == 127)
            bytes_format(into, "\\x%02x", c);
        else
            bytes_add(into, text, 1);
    }
}

/* A growable row of bytes, always ended by a NUL beyond its length. */
#include "bytes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bytes_reserve(struct bytes *bytes, size_t more)
{
    size_t need = bytes->length + more + 1;
    if (need < more) {
        errno = ENOMEM;
        return -1;
    }
    if (need <= bytes->room)
        return 0;
    size_t room = bytes->room ? bytes->room : 256;
    while (room < need)
        room *= 2;
    char *data = realloc(bytes->data, room);
    if (!data)
        return -1;
    bytes->data = data;
    bytes->room = room;
    bytes->data[bytes->length] = '\0';
    return 0;
}

int bytes_add(struct bytes *bytes, const void *data, size_t length)
{
    if (bytes_reserve(bytes, length) < 0)
        return -1;
    if (length)
        memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    bytes->data[bytes->length] = '\0';
    return 0;
}

int bytes_text(struct bytes *bytes, const char *text)
{
    return bytes_add(bytes, text, strlen(text));
}

int bytes_format(struct bytes *bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return -1;
    int result = bytes_add(bytes, text, (size_t)length);
    free(text);
    return result;
}

void bytes_drop(struct bytes *bytes, size_t length)
{
    if (!length)
        return;
    bytes->length -= length;
    memmove(bytes->data, bytes->data + length, bytes->length + 1);
}

char *bytes_line(struct bytes *bytes)
{
    char *end = bytes->length ? memchr(bytes->data, '\n', bytes->length) : NULL;
    if (!end)
        return NULL;
    size_t length = (size_t)(end - bytes->data);
    char *line = strndup(bytes->data, length);
    if (line)
        bytes_drop(bytes, length + 1);
    return line;
}

void bytes_close(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

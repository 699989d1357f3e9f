/* The shared secret: see key.h. */
#include "key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int key_read(struct key *key, int fd, const char *what, struct trouble *trouble)
{
    unsigned char more;
    for (;;) {
        size_t room = sizeof key->bytes - key->length;
        ssize_t got = read(fd, room ? key->bytes + key->length : &more, room ? room : 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return troubled(trouble, EXIT_USAGE, "cannot read the key from %s: %m", what);
        if (got == 0)
            return 0;
        if (!room)
            return troubled(trouble, EXIT_USAGE,
                           "the key in %s has more than %d bytes: is it the right file?",
                           what, KEY_MOST);
        key->length += (size_t)got;
    }
}

static int key_from_environment(struct key *key, const char *text,
                                struct trouble *trouble)
{
    if (!text)
        return troubled(trouble, EXIT_USAGE,
                       "no key: give --key-file FILE, --key-fd N or RDPIPE_KEY "
                       "(rdrecv --new-key FILE makes one)");
    size_t length = strlen(text);
    if (length > KEY_MOST)
        return troubled(trouble, EXIT_USAGE, "RDPIPE_KEY has %zu bytes, more than %d",
                       length, KEY_MOST);
    memcpy(key->bytes, text, length);
    key->length = length;
    return 0;
}

/* No command of ours is to see it, used or not. */
static void forget(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    unsetenv("RDPIPE_KEY");
}

int key_open(struct key *key, const char *file, int fd, struct trouble *trouble)
{
    char what[100] = "RDPIPE_KEY", *given = getenv(what);
    int result;
    *key = (struct key){.length = 0};
    if (file) {
        visible(what, sizeof what, file);
        int opened = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (opened < 0)
            return troubled(trouble, EXIT_USAGE, "cannot open the key file %s: %m", what);
        result = key_read(key, opened, what, trouble);
        close(opened);
    } else if (fd >= 0) {
        snprintf(what, sizeof what, "descriptor %d", fd);
        result = key_read(key, fd, what, trouble);
        if (fd > STDERR_FILENO)
            close(fd);
    } else {
        result = key_from_environment(key, given, trouble);
    }
    forget(given);
    if (result < 0)
        return -1;
    if (key->length && key->bytes[key->length - 1] == '\n')
        key->length--;
    if (key->length < KEY_LEAST)
        return troubled(trouble, EXIT_USAGE,
                       "the key from %s has %zu bytes, fewer than %d", what, key->length,
                       KEY_LEAST);
    return 0;
}

int key_make(const char *file, struct trouble *trouble)
{
    unsigned char bytes[32];
    char digits[2 * sizeof bytes + 2], what[100];
    visible(what, sizeof what, file);
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return troubled(trouble, EXIT_FAULT, "no random bytes: %m");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    memcpy(digits + 2 * sizeof bytes, "\n", 2);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return troubled(trouble, EXIT_FAULT, "cannot make the key file %s: %m", what);
    size_t length = sizeof digits - 1;
    bool whole = write(fd, digits, length) == (ssize_t)length && fsync(fd) == 0;
    int error = errno;
    close(fd);
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(digits, sizeof digits);
    if (whole)
        return 0;
    unlink(file);
    return troubled(trouble, EXIT_FAULT, "cannot write the key file %s: %s", what,
                   strerror(error));
}

void key_close(struct key *key)
{
    explicit_bzero(key, sizeof *key);
}

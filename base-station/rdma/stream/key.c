/* Shared secret: see key.h. */
#include "key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"

/* Read all of `fd`, but no more than proves the key too long. */
static int key_read(struct key *key, int fd, const char *what, struct error *error)
{
    size_t room;
    while ((room = sizeof key->bytes - key->length)) {
        ssize_t got = read(fd, key->bytes + key->length, room);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return fault_status(error, EXIT_USAGE, "cannot read the key from %s: %m", what);
        key->length += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* Refuse a key file that another user can read or change. */
static int check_file(int fd, const char *name, struct error *error)
{
    struct stat state;
    if (fstat(fd, &state) < 0)
        return fault_status(error, EXIT_USAGE, "cannot use the key file %s: %m", name);
    if (state.st_uid != geteuid() && state.st_uid != 0)
        return fault_status(error, EXIT_USAGE,
                            "the key file %s belongs to user %u: make one of your own with "
                            "rdrecv --new-key FILE", name, (unsigned)state.st_uid);
    if (state.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH))
        return fault_status(error, EXIT_USAGE,
                            "the key file %s has mode %04o, so other users can read or change it: "
                            "chmod 600 %s, or make a new one with rdrecv --new-key FILE", name,
                            (unsigned)state.st_mode & 07777, name);
    return 0;
}

/* Return true for a key with few different bytes, or a repeated short pattern. A random key is
 * refused by mistake once in 10^19 (64 hex digits) or 10^12 times (16 bytes). */
static bool is_guessable(const struct key *key)
{
    bool seen[256] = {false};
    int different = 0;
    for (size_t i = 0; i < key->length; i++) {
        different += !seen[key->bytes[i]];
        seen[key->bytes[i]] = true;
    }
    for (size_t period = 1; period <= key->length / 2 && period < KEY_LEAST; period++)
        if (memcmp(key->bytes, key->bytes + period, key->length - period) == 0)
            return true;
    return different < KEY_DIFFERENT;
}

/* Erase the key from the environment, used or not, so that no command inherits it. */
static void forget(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    unsetenv("RDPIPE_KEY");
}

int key_open(struct key *key, const char *file, int fd, struct error *error)
{
    char what[100] = "RDPIPE_KEY", *given = getenv(what);
    *key = (struct key){.length = 0};
    if (file) {
        visible(what, sizeof what, file);
        fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
            fault_status(error, EXIT_USAGE, "cannot open the key file %s: %m", what);
    } else if (fd >= 0) {
        snprintf(what, sizeof what, "descriptor %d", fd);
    } else if (given) {
        key->length = strnlen(given, sizeof key->bytes);
        memcpy(key->bytes, given, key->length);
    } else {
        fault_status(error, EXIT_USAGE,
                 "no key: give --key-file FILE, --key-fd N or RDPIPE_KEY "
                 "(rdrecv --new-key FILE makes one)");
    }
    if (fd >= 0 && (!file || check_file(fd, what, error) == 0))
        key_read(key, fd, what, error);
    if (fd > STDERR_FILENO)
        close(fd);
    forget(given);
    if (error->status)
        return -1;
    if (key->length > KEY_MOST)
        return fault_status(error, EXIT_USAGE,
                        "the key in %s has more than %d bytes: is it the right %s?", what,
                        KEY_MOST, fd < 0 ? "one" : "file");
    if (key->length && key->bytes[key->length - 1] == '\n')
        key->length--;
    if (key->length < KEY_LEAST)
        return fault_status(error, EXIT_USAGE, "the key from %s has %zu bytes, fewer than %d", what,
                            key->length, KEY_LEAST);
    if (is_guessable(key))
        return fault_status(error, EXIT_USAGE,
                            "the key from %s is easy to guess: it needs %d different "
                            "characters and no repeated pattern (rdrecv --new-key FILE makes "
                            "a good one)", what, KEY_DIFFERENT);
    return 0;
}

int key_make(const char *file, struct error *error)
{
    enum { DIGITS = 64 };
    char digits[DIGITS + 1], what[100];
    visible(what, sizeof what, file);
    if (hex_random(digits, DIGITS) < 0)
        return fault(error, "no random bytes: %m");
    digits[DIGITS] = '\n';
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fault(error, "cannot make the key file %s: %m", what);
    bool whole = write(fd, digits, sizeof digits) == sizeof digits && fsync(fd) == 0;
    if (!whole) {
        fault(error, "cannot write the key file %s: %m", what);
        unlink(file);
    }
    close(fd);
    explicit_bzero(digits, sizeof digits);
    return whole ? 0 : -1;
}

void key_close(struct key *key)
{
    explicit_bzero(key, sizeof *key);
}

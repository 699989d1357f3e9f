/* The command line that runs one segment: see leash_work.h. */
#include "leash_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *leash_work_file(const char *name)
{
    char *path = NULL;
    const char *home = getenv("HOME");
    int result;
    if (strncmp(name, "~/", 2) == 0 && home && *home)
        result = asprintf(&path, "%s/%s", home, name + 2);
    else
        result = asprintf(&path, "%s%s", name[0] == '/' ? "" : "./", name);
    return result < 0 ? NULL : path;
}

int leash_work_self(char into[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", into, PATH_MAX - 1);
    if (length < 0)
        return -1;
    into[length] = '\0';
    return 0;
}

int leash_work_tools(const struct leash_work *work)
{
    return work->has_in + work->has_out;
}

static int add_sibling(struct words *words, const char *self, const char *name)
{
    const char *slash = strrchr(self, '/');
    char *path = NULL;
    int folder = slash ? (int)(slash - self) + 1 : 0;
    if (asprintf(&path, "%.*s%s", folder, self, name) < 0)
        return -1;
    int result = words_add(words, path);
    free(path);
    return result;
}

static int add_all(struct words *words, const struct words *more)
{
    for (size_t i = 0; i < more->count; i++)
        if (words_add(words, more->word[i]) < 0)
            return -1;
    return 0;
}

static int add_number(struct words *words, const char *option, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    return words_add(words, option) < 0 ? -1 : words_add(words, text);
}

static int add_receiver(struct words *words, const struct leash_work *work,
                        const char *self)
{
    if (add_sibling(words, self, "rdrecv") < 0 || words_add(words, "--hop") < 0 ||
        add_all(words, &work->in_options) < 0 ||
        add_number(words, "--key-fd", LEASH_KEY_IN_FD) < 0 ||
        add_number(words, "--announce-fd", LEASH_ANNOUNCE_FD) < 0)
        return -1;
    return words_add(words, "0");
}

static int add_sender(struct words *words, const struct leash_work *work,
                      const char *self)
{
    if (add_sibling(words, self, "rdsend") < 0 || words_add(words, "--hop") < 0 ||
        add_all(words, &work->out_options) < 0 ||
        add_number(words, "--key-fd", LEASH_KEY_OUT_FD) < 0 ||
        words_add(words, work->addresses) < 0)
        return -1;
    return words_add(words, work->port);
}

static int add_command(struct words *words, const struct leash_work *work,
                       const char *self)
{
    const struct words *command = &work->middle_words;
    if (leash_work_tools(work) > 0 && words_add(words, "--") < 0)
        return -1;
    if (words_add(words, self) < 0 ||
        add_number(words, "--leash-run", LEASH_STATUS_FD) < 0)
        return -1;
    if (strcmp(command->word[0], "rdcp") != 0)
        return add_all(words, command);
    if (add_sibling(words, self, "rdcp") < 0)
        return -1;
    for (size_t i = 1; i < command->count; i++)
        if (words_add(words, command->word[i]) < 0)
            return -1;
    return 0;
}

int leash_work_open(struct words *words, const struct leash_work *work, const char *self)
{
    *words = (struct words){0};
    if (work->has_in && add_receiver(words, work, self) < 0)
        return -1;
    if (work->has_out) {
        if (work->has_in && words_add(words, "--") < 0)
            return -1;
        if (add_sender(words, work, self) < 0)
            return -1;
    }
    if (work->middle == LEASH_EXEC)
        return add_command(words, work, self);
    if (work->middle != LEASH_READ && work->middle != LEASH_WRITE)
        return 0;
    char *path = leash_work_file(work->middle_words.word[0]);
    int result = path ? words_add(words, path) : -1;
    free(path);
    return result;
}

/* What a leash is told, and the command line that it makes of it: see leash_work.h. */
#include "leash_work.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quote.h"

void words_add(struct words *words, const char *text)
{
    size_t count = words->count + 2;
    words->word = allocated(reallocarray(words->word, count, sizeof *words->word));
    words->word[words->count++] = allocated(strdup(text));
    words->word[words->count] = NULL;
}

void words_close(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->word[i]);
    free(words->word);
    *words = (struct words){0};
}

void words_add_text(struct words *words, char *text)
{
    words_add(words, text);
    free(text);
}

int words_by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

const char *const leash_hops[] = {"in", "out", "back"};
const char *const leash_middles[] = {NULL, "exec", "read", "write", "append", "pass"};

static int take_key(const char *word, char *key, bool *has)
{
    *has = word && strcmp(word, "-") != 0;
    if (!word || (*has && (strlen(word) != LEASH_KEY || !hex_is(word))))
        return -1;
    if (*has)
        memcpy(key, word, LEASH_KEY);
    return 0;
}

static int take_greeting(struct leash_work *work, char **rest)
{
    const char *version = strsep(rest, " ");
    if (!version || strcmp(version, "4") != 0)
        return -1;
    if (take_key(strsep(rest, " "), work->key_in, &work->has_in) < 0 ||
        take_key(strsep(rest, " "), work->key_out, &work->has_out) < 0 || *rest)
        return -1;
    work->greeted = true;
    return 0;
}

static int take_words(struct words *words, char **rest, size_t most)
{
    char *digits;
    while ((digits = strsep(rest, " "))) {
        char *text = words->count < most ? hex_text(digits) : NULL;
        if (!text)
            return -1;
        words_add_text(words, text);
    }
    return words->count ? 0 : -1;
}

static int take_middle(struct leash_work *work, enum leash_middle middle, char **rest)
{
    if (work->middle != LEASH_NOTHING)
        return -1;
    work->middle = middle;
    if (middle == LEASH_PASS)
        return *rest ? -1 : 0;
    return take_words(&work->middle_words, rest, middle == LEASH_EXEC ? LEASH_WORDS : 1);
}

/* The words of a command for the login shell, as sshd has it run. */
static int take_shell(struct leash_work *work, char **rest)
{
    const struct passwd *user = getpwuid(getuid());
    const char *shell = user && access(user->pw_shell, X_OK) == 0 ? user->pw_shell
                                                                  : "/bin/sh";
    struct words *words = &work->middle_words;
    if (work->middle != LEASH_NOTHING)
        return -1;
    words_add(words, shell);
    words_add(words, "-c");
    work->middle = LEASH_EXEC;
    return take_words(words, rest, 3) == 0 && words->count == 3 ? 0 : -1;
}

static char *take_field(char **rest)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.:%,-_";
    const char *word = strsep(rest, " ");
    if (!word || !*word || word[0] == '-' || word[strspn(word, plain)])
        return NULL;
    return allocated(strdup(word));
}

/* So many fields, and nothing behind them. */
static int take_fields(char **rest, size_t count, char **const into[])
{
    for (size_t i = 0; i < count; i++)
        if (!(*into[i] = take_field(rest)))
            return -1;
    return *rest ? -1 : 0;
}

static int take_to(struct leash_work *work, char **rest)
{
    char **const into[] = {&work->port, &work->transports, &work->addresses};
    return work->port ? -1 : take_fields(rest, 3, into);
}

static int take_way(struct leash_work *work, char **rest)
{
    const char *way = strsep(rest, " ");
    work->way = LEASH_STRAIGHT;
    if (way && strcmp(way, "ssh") == 0)
        work->way = LEASH_THROUGH_SSH;
    else if (way && strcmp(way, "back") == 0)
        work->way = LEASH_BACK;
    else if (way)
        return -1;
    if (work->way == LEASH_BACK && !work->token) {
        work->token = take_field(rest);
        work->ports = take_field(rest);
    }
    return *rest || (work->way == LEASH_BACK &&
                     (!work->token || strlen(work->token) != LEASH_TOKEN || !work->ports))
               ? -1 : 0;
}

/* Of the hop into a segment that waits for it. */
static int take_in(struct leash_work *work, const char *verb, char **rest)
{
    struct leash_dial *dial = &work->dial;
    char **const into[] = {&dial->token, &dial->port, &dial->addresses};
    char **const tunnel[] = {&work->tunnel};
    if (!work->has_in || dial->token || work->tunnel)
        return -1;
    if (strcmp(verb, "tunnel") == 0)
        return take_fields(rest, 1, tunnel);
    return take_fields(rest, 3, into) == 0 && strlen(dial->token) == LEASH_TOKEN ? 0 : -1;
}

/* Is the segment one that can be run with the hops it has? */
static bool fits(const struct leash_work *work)
{
    enum leash_middle middle = work->middle;
    bool writes = middle == LEASH_WRITE || middle == LEASH_APPEND;
    if (middle == LEASH_NOTHING || work->has_out != (work->port != NULL))
        return false;
    return middle == LEASH_EXEC || (work->has_in != work->has_out &&
                                    (middle == LEASH_PASS || work->has_in == writes));
}

int leash_take(struct leash_work *work, char *line, const char **why)
{
    char *rest = line;
    const char *verb = strsep(&rest, " ");
    *why = "a line that this version does not know";
    if (strcmp(verb, "beat") == 0)
        return rest ? -1 : 0;
    if (work->complete && (strcmp(verb, "dial") == 0 || strcmp(verb, "tunnel") == 0))
        return take_in(work, verb, &rest);
    if (work->complete && strcmp(verb, "run") != 0)
        return -1;
    if (strcmp(verb, "leash") == 0) {
        *why = "a greeting of another version";
        return work->greeted ? -1 : take_greeting(work, &rest);
    }
    if (!work->greeted)
        return -1;
    *why = "a line that cannot be read";
    if (strcmp(verb, "in") == 0)
        return take_words(&work->in_options, &rest, LEASH_WORDS);
    if (strcmp(verb, "out") == 0)
        return take_words(&work->out_options, &rest, LEASH_WORDS);
    if (strcmp(verb, "shell") == 0)
        return take_shell(work, &rest);
    if (strcmp(verb, "back") == 0) {
        work->back = true;
        return rest ? -1 : 0;
    }
    if (strcmp(verb, "to") == 0)
        return take_to(work, &rest);
    for (enum leash_middle middle = LEASH_EXEC; middle <= LEASH_PASS; middle++)
        if (strcmp(verb, leash_middles[middle]) == 0)
            return take_middle(work, middle, &rest);
    *why = "a segment that does not fit its hops";
    work->complete = strcmp(verb, "run") == 0 && fits(work) && take_way(work, &rest) == 0;
    return work->complete ? 0 : -1;
}

void leash_dial_close(struct leash_dial *dial)
{
    free(dial->addresses);
    free(dial->port);
    free(dial->token);
    *dial = (struct leash_dial){0};
}

void leash_work_close(struct leash_work *work)
{
    leash_dial_close(&work->dial);
    free(work->tunnel);
    free(work->ports);
    free(work->token);
    free(work->addresses);
    free(work->transports);
    free(work->port);
    words_close(&work->middle_words);
    words_close(&work->out_options);
    words_close(&work->in_options);
    explicit_bzero(work, sizeof *work);
}

/* Is at the beginning of `input` a frame? */
static bool is_frame(const struct bytes *input, struct leash_said *frame)
{
    char text[32] = "", verb[5], hop[5], end;
    const char *newline = input->length
                              ? memchr(input->data, '\n', input->length < sizeof text
                                                              ? input->length : sizeof text)
                              : NULL;
    if (!newline)
        return false;
    memcpy(text, input->data, (size_t)(newline - input->data));
    if (sscanf(text, "%4s %4s %9zu%c", verb, hop, &frame->length, &end) != 3)
        return false;
    frame->took = strcmp(verb, "took") == 0;
    while (frame->hop < LEASH_HOPS && strcmp(hop, leash_hops[frame->hop]) != 0)
        frame->hop++;
    if ((!frame->took && strcmp(verb, "flow") != 0) || frame->hop == LEASH_HOPS ||
        frame->length > (frame->took ? LEASH_WINDOW : LEASH_FRAME))
        return false;
    frame->bytes = newline + 1;
    size_t line = (size_t)(newline + 1 - input->data);
    frame->whole = line + (frame->took ? 0 : frame->length);
    return true;
}

bool leash_next(struct bytes *input, struct leash_said *said)
{
    *said = (struct leash_said){0};
    if (is_frame(input, said))
        return input->length >= said->whole;
    said->whole = 0;
    return (said->line = bytes_line(input));
}

void leash_heard(struct bytes *input, struct leash_said *said)
{
    bytes_drop(input, said->whole);
    free(said->line);
}

void leash_say(const struct bytes *text)
{
    size_t said = 0;
    ssize_t put;
    while (said < text->length &&
           ((put = write(STDOUT_FILENO, text->data + said, text->length - said)) >= 0 ||
            errno == EINTR))
        said += put > 0 ? (size_t)put : 0;
}

char *leash_field(const char *line, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = line; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        const char *begin = at + length + 1;
        char *value = allocated(strndup(begin, strcspn(begin, " \n"))), *rest = value;
        char *field = take_field(&rest);
        free(value);
        return field;
    }
    return NULL;
}

char *leash_work_file(const char *name)
{
    const char *home = getenv("HOME");
    if (strncmp(name, "~/", 2) == 0 && home && *home)
        return text_of("%s/%s", home, name + 2);
    return text_of("%s%s", name[0] == '/' ? "" : "./", name);
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

static void add_sibling(struct words *words, const char *self, const char *name)
{
    const char *slash = strrchr(self, '/');
    words_add_text(words, text_of("%.*s%s", slash ? (int)(slash - self) + 1 : 0, self, name));
}

static void add_all(struct words *words, const struct words *more, size_t from)
{
    for (size_t i = from; i < more->count; i++)
        words_add(words, more->word[i]);
}

static void add_number(struct words *words, const char *option, int number)
{
    words_add(words, option);
    words_add_text(words, text_of("%d", number));
}

static void add_receiver(struct words *words, const struct leash_work *work,
                         const char *self)
{
    add_sibling(words, self, "rdrecv");
    add_all(words, &work->in_options, 0);
    add_number(words, "--key-fd", LEASH_KEY_IN_FD);
    add_number(words, "--announce-fd", LEASH_ANNOUNCE_FD);
    add_number(words, "--guests-fd", LEASH_GUESTS_FD);
    words_add(words, "0");
}

static void add_sender(struct words *words, const struct leash_work *work,
                       const char *self)
{
    add_sibling(words, self, "rdsend");
    add_all(words, &work->out_options, 0);
    add_number(words, "--key-fd", LEASH_KEY_OUT_FD);
    if (work->way != LEASH_STRAIGHT)
        add_number(words, "--socket-fd", LEASH_SOCKET_FD);
    words_add(words, work->addresses);
    words_add(words, work->port);
}

static void add_command(struct words *words, const struct leash_work *work,
                        const char *self)
{
    const struct words *command = &work->middle_words;
    bool own = strcmp(command->word[0], "rdcp") == 0;
    if (leash_work_tools(work) > 0)
        words_add(words, "--");
    words_add(words, self);
    add_number(words, "--leash-run", LEASH_STATUS_FD);
    if (own)
        add_sibling(words, self, "rdcp");
    add_all(words, command, own);
}

void leash_work_open(struct words *words, const struct leash_work *work, const char *self)
{
    *words = (struct words){0};
    if (work->has_in)
        add_receiver(words, work, self);
    if (work->has_in && work->has_out)
        words_add(words, "--");
    if (work->has_out)
        add_sender(words, work, self);
    if (work->middle == LEASH_EXEC)
        add_command(words, work, self);
    if (work->middle == LEASH_READ || work->middle == LEASH_WRITE)
        words_add_text(words, leash_work_file(work->middle_words.word[0]));
}

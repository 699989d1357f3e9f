/* Messages between rdpipe and an agent, and the resulting command line: see agent_protocol.h. */
#include "agent_protocol.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

enum { HEAD = 8 };
static const char hops[] = "iob";

void agent_frame_add(struct bytes *into, enum agent_verb verb, enum agent_hop hop,
                     const void *body, size_t length)
{
    bytes_format(into, "%c%c%06zx", (char)verb, hops[hop], length);
    bytes_add(into, body, length);
}

void agent_frame_add_text(struct bytes *into, enum agent_verb verb, enum agent_hop hop,
                          const char *text)
{
    agent_frame_add(into, verb, hop, text, text ? strlen(text) + 1 : 0);
}

int agent_frame_next(const struct bytes *input, struct agent_frame *frame)
{
    char head[HEAD + 1] = "", verb, hop, digits[HEAD];
    if (input->length < HEAD)
        return 0;
    memcpy(head, input->data, HEAD);
    if (sscanf(head, "%c%c%6[0-9a-f]", &verb, &hop, digits) != 3 || strlen(digits) != 6 ||
        !hop || !strchr(hops, hop))
        return -1;
    *frame = (struct agent_frame){(enum agent_verb)verb, (enum agent_hop)(strchr(hops, hop) - hops),
                                  input->data + HEAD, strtoul(digits, NULL, 16)};
    if (frame->length > (verb == AGENT_FLOW ? AGENT_FLOW_BYTES : AGENT_BODY))
        return -1;
    if (input->length < HEAD + frame->length)
        return 0;
    return verb != AGENT_FLOW && frame->length && frame->body[frame->length - 1] ? -1 : 1;
}

void agent_frame_drop(struct bytes *input, const struct agent_frame *frame)
{
    bytes_drop(input, HEAD + frame->length);
}

void agent_send(enum agent_verb verb, enum agent_hop hop, const void *body, size_t length)
{
    struct bytes frame = {0};
    agent_frame_add(&frame, verb, hop, body, length);
    for (ssize_t put; frame.length; bytes_drop(&frame, put > 0 ? (size_t)put : 0))
        if ((put = write(STDOUT_FILENO, frame.data, frame.length)) < 0 && errno != EINTR)
            break;
    bytes_close(&frame);
}

size_t agent_frame_number(const struct agent_frame *frame, size_t most)
{
    char *rest;
    const char *text = frame->length ? frame->body : "";
    unsigned long number = strtoul(text, &rest, 10);
    return *text >= '0' && *text <= '9' && !*rest && number < most ? number : most;
}

size_t agent_plain(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:%,-_");
}

char *agent_field(const char *line, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = line; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        const char *value = at + length + 1;
        size_t all = strcspn(value, " \n");
        if (!all || *value == '-' || agent_plain(value) < all)
            return NULL;
        return allocated(strndup(value, all));
    }
    return NULL;
}

bool agent_is_command(enum agent_middle middle)
{
    return middle <= AGENT_SHELL;
}

/* Layout of `run`: a first text with numbers, then texts in the order of their fields, then all
 * words. */
enum { NUMBERS = 5, FIELDS = 4 };

static void add_text(struct bytes *into, const char *text)
{
    bytes_add(into, text, strlen(text) + 1);
}

static void add_words(struct bytes *into, const struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        add_text(into, words->word[i]);
}

void agent_work_add(struct bytes *into, const struct agent_work *work)
{
    const char *const fields[FIELDS] = {work->key_in, work->key_out, work->port,
                                        work->addresses};
    struct bytes body = {.secret = true};
    bytes_format(&body, "%d %d %d %zu %zu", work->middle, work->back, work->route,
                 work->in.count, work->out.count);
    bytes_add(&body, "", 1);
    for (size_t i = 0; i < FIELDS; i++)
        add_text(&body, fields[i]);
    add_words(&body, &work->in);
    add_words(&body, &work->out);
    add_words(&body, &work->words);
    agent_frame_add(into, AGENT_RUN, AGENT_HOP_BACK, body.data, body.length);
    bytes_close(&body);
}

bool agent_work_ahead(const struct agent_work *work)
{
    return work->middle == AGENT_RDCP && !*work->key_in && *work->key_out &&
           !*work->port && !*work->addresses;
}

/* True if the segment matches its hops. */
static bool fits(const struct agent_work *work)
{
    bool in = *work->key_in, out = *work->key_out;
    if ((out != (*work->port && *work->addresses) && !agent_work_ahead(work)) ||
        (in && strlen(work->key_in) != AGENT_KEY) || (out && strlen(work->key_out) != AGENT_KEY))
        return false;
    if (work->middle == AGENT_RDCP)
        return work->words.count;
    if (work->words.count != (work->middle != AGENT_PASS))
        return false;
    return work->middle == AGENT_SHELL ||
           (in != out && (work->middle == AGENT_PASS || in == (work->middle == AGENT_WRITE)));
}

/* Split a frame into its texts. */
static void split_texts(struct words *into, const struct agent_frame *frame)
{
    for (const char *at = frame->body; at < frame->body + frame->length; at += strlen(at) + 1)
        words_add(into, at);
}

int agent_work_take(struct agent_work *work, const struct agent_frame *frame)
{
    unsigned middle, back, route;
    size_t in, out;
    agent_work_close(work);
    split_texts(&work->texts, frame);
    struct words texts = work->texts;
    size_t left = texts.count > FIELDS ? texts.count - FIELDS - 1 : 0;
    if (texts.count <= FIELDS ||
        sscanf(texts.word[0], "%u %u %u %zu %zu", &middle, &back, &route, &in, &out) !=
            NUMBERS ||
        middle > AGENT_PASS || route > AGENT_THROUGH_SSH || in > left || out > left - in)
        return -1;
    char **text = texts.word + 1, **word = text + FIELDS;
    *work = (struct agent_work){
        .middle = middle, .back = back, .route = route,
        .key_in = text[0], .key_out = text[1], .port = text[2], .addresses = text[3],
        .in = {word, in}, .out = {word + in, out},
        .words = {word + in + out, left - in - out}, .texts = texts,
    };
    return fits(work) ? 0 : -1;
}

void agent_work_close(struct agent_work *work)
{
    for (size_t i = 0; i < work->texts.count; i++)
        explicit_bzero(work->texts.word[i], strlen(work->texts.word[i]));
    words_close(&work->texts);
    *work = (struct agent_work){.key_in = "", .key_out = ""};
}

char *agent_work_file(const char *name)
{
    const char *home = getenv("HOME");
    if (strncmp(name, "~/", 2) == 0 && home && *home)
        return text_of("%s/%s", home, name + 2);
    return text_of("%s%s", name[0] == '/' ? "" : "./", name);
}

char *agent_work_tool(const char *name)
{
    char self[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = length > 0 ? strrchr(self, '/') : NULL;
    return text_of("%.*s%s", slash ? (int)(slash - self) + 1 : 0, self, name);
}

int agent_work_tools(const struct agent_work *work)
{
    return !!*work->key_in + !!*work->key_out;
}

static void add_number(struct words *words, const char *option, int number)
{
    words_add(words, option);
    words_add_text(words, text_of("%d", number));
}

static void add_all(struct words *words, const struct words *more)
{
    for (size_t i = 0; i < more->count; i++)
        words_add(words, more->word[i]);
}

static void add_receiver(struct words *words, const struct agent_work *work)
{
    words_add_text(words, agent_work_tool("rdrecv"));
    add_all(words, &work->in);
    add_number(words, "--key-fd", AGENT_KEY_IN_FD);
    add_number(words, "--announce-fd", AGENT_ANNOUNCE_FD);
    add_number(words, "--connections-fd", AGENT_PEERS_FD);
    if (!*work->key_out)
        add_number(words, "--status-fd", AGENT_STATUS_FD);
    words_add(words, "0");
}

static void add_sender(struct words *words, const struct agent_work *work)
{
    words_add_text(words, agent_work_tool("rdsend"));
    add_all(words, &work->out);
    add_number(words, "--key-fd", AGENT_KEY_OUT_FD);
    add_number(words, "--status-fd", AGENT_STATUS_FD);
    add_number(words, "--address-fd", AGENT_WHERE_FD);
    words_add(words, "-"); /* HOST and PORT, replaced by those from the descriptor */
    words_add(words, "1");
}

/* Return the user's login shell, the one sshd would use to run a command. */
static const char *login_shell(void)
{
    const struct passwd *user = getpwuid(getuid());
    return user && access(user->pw_shell, X_OK) == 0 ? user->pw_shell : "/bin/sh";
}

void agent_work_open(struct words *words, const struct agent_work *work)
{
    bool in = *work->key_in, out = *work->key_out;
    bool command = agent_is_command(work->middle);
    *words = (struct words){0};
    if (in)
        add_receiver(words, work);
    if (in && (out || command))
        words_add(words, "--");
    if (out)
        add_sender(words, work);
    if (out && command)
        words_add(words, "--");
    if (work->middle == AGENT_RDCP) {
        words_add_text(words, agent_work_tool("rdcp"));
    } else if (work->middle == AGENT_SHELL) {
        words_add(words, login_shell());
        words_add(words, "-c");
    }
    if (command)
        add_all(words, &work->words);
    if (work->middle == AGENT_READ || work->middle == AGENT_WRITE)
        words_add_text(words, agent_work_file(work->words.word[0]));
}

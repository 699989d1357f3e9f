/* Command lines of rdsend and rdrecv, and their hello: see options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handshake.h"
#include "records.h"

#define COMMON_USAGE                                                                   \
    "  --key-file FILE, --key-fd N   the shared secret (or RDPIPE_KEY)\n"              \
    "  --transport auto|rdma|tcp     --device DEV[:PORTNUM]\n"                         \
    "  --bind ADDR                   this machine's address to use\n"                  \
    "  --encrypt, --plain            default: --encrypt beyond loopback; one end that\n"  \
    "                                asks for it is enough\n"                         \
    "  --checksum xxh3|none          --chunk BYTES  --credits N\n"                     \
    "  --timeout S (10)              longest silence of the other end, 0 = no limit\n" \
    "  --idle-timeout S (0)          longest time without data, 0 = no limit\n"        \
    "  -v, --verbose  --json         print steps, bytes and bandwidth\n"               \
    "  --no-progress                 show no progress with -v\n"                       \
    "  --help  --version\n"

static const char usage_send[] =
    "usage: rdsend [options] HOST PORT [FILE | -- CMD...]\n"
    "Sends stdin, a file or a command's output to an rdrecv.\n"
    "  --rate BYTES                  send at most so many a second\n"
    "  --finish-timeout S (3600)     longest wait for the confirmation\n"
    "  --connect-timeout S (10)      longest wait for the receiver, 0 = no limit\n"
    COMMON_USAGE;

static const char usage_receive[] =
    "usage: rdrecv [options] PORT [FILE | -- CMD...]\n"
    "       rdrecv --new-key FILE\n"
    "Receives a stream from an rdsend: to stdout, a file or a command.\n"
    "  --sync                        sync the file and its folder\n"
    "  --announce-fd N               write port, transports and addresses there\n"
    "  --port LOW-HIGH               take a free port of these, for PORT 0\n"
    "  --connect-timeout S (0)       longest wait for a sender, 0 = no limit\n"
    COMMON_USAGE;

enum kind {
    SET,
    COUNT, /* SET, and the number of times */
    TEXT,
    WORD, /* index into `words` */
    BYTES,
    NUMBER,
    SECONDS, /* 0, or the limits in ms */
};

enum { LIMIT_MOST_MS = 1000000000 };
#define TO(field) offsetof(struct options, field)

static const struct row {
    const char *name;
    enum kind kind;
    size_t field;
    int64_t least, most; /* for SET and COUNT: the value to set */
    const char *only;    /* the only tool with this option; NULL = both */
    const char *words;
} table[] = {
    {"verbose", SET, TO(verbose), true, 0, NULL, NULL}, /* also -v */
    {"help", SET, TO(help), true, 0, NULL, NULL},
    {"version", SET, TO(version), true, 0, NULL, NULL},
    {"json", SET, TO(json), true, 0, NULL, NULL},
    {"no-progress", SET, TO(progress), false, 0, NULL, NULL},
    {"encrypt", SET, TO(protection), PROTECT_ENCRYPT, 0, NULL, NULL},
    {"plain", COUNT, TO(protection), PROTECT_NOT, 0, NULL, NULL},
    {"transport", WORD, TO(transport), 0, 2, NULL, "auto|rdma|tcp"},
    {"checksum", WORD, TO(checksum), 0, 1, NULL, "none|xxh3"},
    {"device", TEXT, TO(device), 0, 0, NULL, NULL},
    {"bind", TEXT, TO(bind_to), 0, 0, NULL, NULL},
    /* this and the following: given by an agent */
    {"hop", TEXT, TO(hop), 0, 0, NULL, NULL},
    {"connections-fd", NUMBER, TO(connections_fd), 0, 65535, "rdrecv", NULL},
    {"address-fd", NUMBER, TO(address_fd), 0, 65535, "rdsend", NULL},
    {"rsh", SET, TO(rsh), true, 0, NULL, NULL},
    {"status-fd", NUMBER, TO(status_fd), 0, 65535, NULL, NULL},
    {"key-file", TEXT, TO(key_file), 0, 0, NULL, NULL},
    {"key-fd", NUMBER, TO(key_fd), 0, 65535, NULL, NULL},
    {"chunk", BYTES, TO(chunk), CHUNK_LEAST, CHUNK_MOST, NULL, NULL},
    {"credits", NUMBER, TO(credits), 1, CREDITS_MOST, NULL, NULL},
    /* A heartbeat comes every second. */
    {"timeout", SECONDS, TO(timeout_ms), 1500, LIMIT_MOST_MS, NULL, NULL},
    {"idle-timeout", SECONDS, TO(idle_ms), 1, LIMIT_MOST_MS, NULL, NULL},
    {"connect-timeout", SECONDS, TO(connect_ms), 1, LIMIT_MOST_MS, NULL, NULL},
    {"finish-timeout", SECONDS, TO(finish_ms), 1, LIMIT_MOST_MS, NULL, NULL},
    {"rate", BYTES, TO(rate), 1, INT64_MAX, "rdsend", NULL},
    {"sync", SET, TO(sync), true, 0, "rdrecv", NULL},
    {"new-key", TEXT, TO(new_key), 0, 0, "rdrecv", NULL},
    {"announce-fd", NUMBER, TO(announce_fd), 0, 65535, "rdrecv", NULL},
    {"port", TEXT, TO(ports), 0, 0, "rdrecv", NULL},
};

enum { ROWS = sizeof table / sizeof *table, ROW_FIRST = 256 };

int64_t options_bytes(const char *text)
{
    static const char units[] = {'K', 'M', 'G', 'T'};
    char *rest;
    errno = 0;
    double value = strtod(text, &rest);
    if (rest == text || errno || !(value >= 0))
        return -1;
    const char *unit = *rest ? memchr(units, *rest & ~0x20, sizeof units) : NULL;
    if (*rest && (!unit || rest[1]))
        return -1;
    for (int i = 0; unit && i <= unit - units; i++)
        value *= 1024;
    return value < 9e18 ? (int64_t)value : -1;
}

/* Parse digits only. Return -1 for any other text. */
static int64_t digits(const char *text)
{
    char *rest;
    errno = 0;
    long long value = strtoll(text, &rest, 10);
    return text[0] >= '0' && text[0] <= '9' && !*rest && !errno ? value : -1;
}

static int64_t milliseconds(const char *text)
{
    char *rest;
    double ms = strtod(text, &rest) * 1000;
    bool good = rest != text && !*rest && (ms == 0 || (ms >= 1 && ms < 9e18));
    return good ? (int64_t)ms : -1;
}

static int64_t word(const char *words, const char *text)
{
    for (int64_t number = 0; *words; number++) {
        size_t length = strcspn(words, "|");
        if (strlen(text) == length && strncmp(text, words, length) == 0)
            return number;
        words += length + (words[length] == '|');
    }
    return -1;
}

static int refuse(struct error *error, const char *what, const char *text, const char *expected)
{
    char safe[80];
    shown(safe, sizeof safe, text, (uint32_t)strlen(text));
    return fault_status(error, EXIT_USAGE, "%s \"%s\": expected %s", what, safe, expected);
}

static int take_value(struct options *options, const struct row *row, const char *text,
                      struct error *error)
{
    char what[40], expected[80];
    bool seconds = row->kind == SECONDS;
    int64_t value = seconds                ? milliseconds(text)
                    : row->kind == WORD  ? word(row->words, text)
                    : row->kind == BYTES ? options_bytes(text)
                                         : digits(text);
    if ((value >= row->least && value <= row->most) || (seconds && value == 0)) {
        *(int64_t *)((char *)options + row->field) = value;
        return 0;
    }
    snprintf(expected, sizeof expected,
             seconds ? "0, or at least %g, at most %.0f s" : "%.0f to %.0f",
             (double)row->least / (seconds ? 1000 : 1), (double)row->most / (seconds ? 1000 : 1));
    snprintf(what, sizeof what, "--%s", row->name);
    return refuse(error, what, text, row->words ? row->words : expected);
}

static int take_option(struct options *options, const struct row *row, const char *text,
                       struct error *error)
{
    void *into = (char *)options + row->field;
    const char *tool = options->sends ? "rdsend" : "rdrecv";
    if (row->only && strcmp(row->only, tool) != 0)
        return fault_status(error, EXIT_USAGE, "--%s is an option of %s", row->name, row->only);
    if (row->kind > TEXT)
        return take_value(options, row, text, error);
    if (row->kind == TEXT)
        *(const char **)into = text;
    else
        *(int *)into = (int)row->least;
    options->plain += row->kind == COUNT;
    return 0;
}

static int take_options(struct options *options, int argc, char **argv, struct error *error)
{
    struct option rows[ROWS + 1] = {{0}};
    for (int i = 0; i < ROWS; i++)
        rows[i] = (struct option){table[i].name,
                                  table[i].kind > COUNT ? required_argument : no_argument,
                                  NULL, ROW_FIRST + i};
    int option;
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "+:v", rows, NULL)) >= 0) {
        const char *last = argv[optind - 1];
        const char letter[] = {'-', (char)optopt, '\0'};
        if (option == ':')
            return refuse(error, "option", last, "a value after it");
        if (option == '?')
            return refuse(error, "option", optopt > 0 && optopt < 256 ? letter : last,
                          "one that --help names (a file name that begins with \"-\" "
                          "is written ./-name)");
        const struct row *row = &table[option == 'v' ? 0 : option - ROW_FIRST];
        if (take_option(options, row, optarg, error) < 0)
            return -1;
    }
    return 0;
}

static int take_rest(struct options *options, char **rest, struct error *error)
{
    if (options->sends && !(options->host = *rest ? *rest++ : NULL))
        return fault_status(error, EXIT_USAGE, "no HOST: rdsend HOST PORT (see --help)");
    options->port = *rest ? *rest++ : NULL;
    if (!options->port)
        return fault_status(error, EXIT_USAGE, "no PORT (see --help)");
    int64_t port = digits(options->port);
    if (port < (options->sends ? 1 : 0) || port > 65535)
        return refuse(error, "PORT", options->port, "a number up to 65535");
    if (!*rest)
        return 0;
    if (strcmp(*rest, "--") == 0) {
        options->command = rest + 1;
        if (!rest[1])
            return fault_status(error, EXIT_USAGE, "no command after --");
        return 0;
    }
    if (rest[0][0] == '-' && rest[0][1])
        return refuse(error, "FILE", *rest,
                      "options before PORT, and a file name that begins with \"-\" "
                      "written ./-name");
    if (rest[1])
        return refuse(error, "argument", rest[1],
                      "nothing after FILE (options go first; a command goes after --)");
    if (strcmp(*rest, "-") != 0)
        options->file = *rest;
    return 0;
}

int options_read(struct options *options, bool sends, int argc, char **argv, struct error *error)
{
    *options = (struct options){
        .sends = sends,
        .key_fd = -1,
        .announce_fd = -1,
        .connections_fd = -1,
        .socket_fd = -1,
        .address_fd = -1,
        .status_fd = -1,
        .protection = PROTECT_DEFAULT,
        .checksum = true,
        .progress = true,
        .timeout_ms = 10000,
        .connect_ms = sends ? 10000 : 0,
        .finish_ms = 3600000,
    };
    if (take_options(options, argc, argv, error) < 0)
        return -1;
    if (options->hop && options->verbose)
        say_where(options->hop);
    if (options->help || options->version || options->new_key)
        return 0;
    return take_rest(options, argv + optind, error);
}

int options_main(bool sends, int argc, char **argv, int (*run)(const struct options *))
{
    struct options options;
    struct error error = {0};
    if (options_read(&options, sends, argc, argv, &error) == 0) {
        if (options.help)
            fputs(sends ? usage_send : usage_receive, stdout);
        else if (options.version)
            printf("%s " RDPIPE_VERSION "\n", sends ? "rdsend" : "rdrecv");
        else if (!options.new_key)
            return run(&options);
        else
            key_make(options.new_key, &error);
    }
    if (error.status)
        say("%s", error.text);
    return error.status;
}

/* TCP: data in a core's cache is fast, and sent data has left its buffer. So the sender needs few
 * buffers, and more if a socket that was full accepts much at once. RDMA: few large messages. */
enum {
    TCP_CHUNK = 256 << 10,
    TCP_CREDITS = 32,
    TCP_BUFFERS = 6,
    RDMA_CHUNK = 1 << 20,
    RDMA_CREDITS = 16,
};

enum {
    SPARE_RECEIVES = 8,
    CREDITS_GOOD = 4,
    CHUNK_GOOD = 128 << 10, /* smaller chunks cost more than fewer credits */
    OTHERS = 24 << 10,      /* small records, door bells, short queues */
    EACH = 256,             /* per credit, in the queues */
};

uint64_t pinned_limit(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0}};
    struct rlimit limit;
    bool all = syscall(SYS_capget, &header, sets) == 0 && sets[0].effective & 1u << CAP_IPC_LOCK;
    return all || getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY
               ? UINT64_MAX : limit.rlim_cur;
}

uint64_t pinned_need(const struct hello *hello)
{
    uint64_t spare = hello->role == ROLE_RECEIVER ? SPARE_RECEIVES : 0;
    uint64_t credits = hello->credits;
    return ring_slot_bytes(hello->chunk) * (credits + spare) + credits * EACH + OTHERS;
}

int pinned_fit(struct hello *hello, uint64_t limit_bytes)
{
    struct hello wanted = *hello;
    while (pinned_need(hello) > limit_bytes) {
        bool large = hello->chunk > CHUNK_GOOD, many = hello->credits > CREDITS_GOOD;
        uint32_t half = hello->chunk / 2, least = large ? CHUNK_GOOD : CHUNK_LEAST;
        if (large || (!many && hello->chunk > CHUNK_LEAST))
            hello->chunk = MAX(half, least);
        else if (hello->credits > 1)
            hello->credits--;
        else
            return -1;
    }
    return wanted.chunk != hello->chunk || wanted.credits != hello->credits;
}

int hello_of_options(struct hello *mine, const struct options *options, int transport,
                     struct error *error)
{
    bool tcp = transport == TRANSPORT_TCP;
    uint32_t tcp_credits = options->sends ? TCP_BUFFERS : TCP_CREDITS;
    *mine = (struct hello){
        .version = RECORDS_VERSION,
        .role = options->sends ? ROLE_SENDER : ROLE_RECEIVER,
        .transport = (uint8_t)transport,
        .protection = PROTECT_ENCRYPT,
        .aes = seal_has_aes(),
        .checksum = (uint8_t)options->checksum,
        .chunk = options->chunk ? options->chunk : tcp ? TCP_CHUNK : RDMA_CHUNK,
        .credits = options->credits ? options->credits : tcp ? tcp_credits : RDMA_CREDITS,
    };
    uint64_t limit = tcp ? UINT64_MAX : pinned_limit();
    int less = pinned_fit(mine, limit);
    if (less < 0)
        fault(error, "this user may pin %llu KiB (ulimit -l), and RDMA needs %llu at least",
              (unsigned long long)limit >> 10,
              (unsigned long long)(pinned_need(mine) + 1023) >> 10);
    return less;
}

/* The command lines of rdsend and rdrecv: see options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_LEAST_S 1.5
#define LIMIT_LEAST_S 0.001

#define COMMON_USAGE                                                                   \
    "  --key-file FILE, --key-fd N   the shared secret (or RDPIPE_KEY)\n"              \
    "  --transport auto|rdma|tcp     --device DEV[:PORTNUM]\n"                         \
    "  --bind ADDR                   this machine's address to use\n"                  \
    "  --encrypt, --sign, --plain    protect the data; without, as --encrypt beyond\n"   \
    "                                loopback; the safer of both ends' holds\n"        \
    "  --checksum xxh64|none         --chunk BYTES  --credits N\n"                     \
    "  --timeout S (10)              the other end's silence, 0 = no limit\n"          \
    "  --idle-timeout S (0)          the data's silence\n"                             \
    "  --connect-timeout S           \n"                                               \
    "  -v, --verbose  --json         what was moved, how fast\n"                       \
    "  --no-progress                 -v without it on a terminal\n"                    \
    "  --help  --version\n"

const char options_usage_send[] =
    "usage: rdsend [options] HOST PORT [FILE | -- CMD...]\n"
    "Sends stdin, a file or a command's output to an rdrecv.\n"
    "  --rate BYTES                  a second, at most\n"
    "  --finish-timeout S (3600)     from the end of the data to its confirmation\n"
    COMMON_USAGE;

const char options_usage_receive[] =
    "usage: rdrecv [options] PORT [FILE | -- CMD...]\n"
    "       rdrecv --new-key FILE\n"
    "Receives a stream from an rdsend: to stdout, a file or a command.\n"
    "  --sync                        sync the file and its folder\n"
    "  --announce-fd N               where to say port, transports, addresses\n"
    COMMON_USAGE;

enum {
    OPTION_KEY_FILE = 256,
    OPTION_KEY_FD,
    OPTION_NEW_KEY,
    OPTION_TRANSPORT,
    OPTION_DEVICE,
    OPTION_BIND,
    OPTION_ENCRYPT,
    OPTION_SIGN,
    OPTION_PLAIN,
    OPTION_CHECKSUM,
    OPTION_CHUNK,
    OPTION_CREDITS,
    OPTION_TIMEOUT,
    OPTION_IDLE,
    OPTION_CONNECT,
    OPTION_FINISH,
    OPTION_RATE,
    OPTION_SYNC,
    OPTION_ANNOUNCE,
    OPTION_JSON,
    OPTION_NO_PROGRESS,
    OPTION_HOP,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct option table[] = {
    {"key-file", required_argument, NULL, OPTION_KEY_FILE},
    {"key-fd", required_argument, NULL, OPTION_KEY_FD},
    {"new-key", required_argument, NULL, OPTION_NEW_KEY},
    {"transport", required_argument, NULL, OPTION_TRANSPORT},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"bind", required_argument, NULL, OPTION_BIND},
    {"encrypt", no_argument, NULL, OPTION_ENCRYPT},
    {"sign", no_argument, NULL, OPTION_SIGN},
    {"plain", no_argument, NULL, OPTION_PLAIN},
    {"checksum", required_argument, NULL, OPTION_CHECKSUM},
    {"chunk", required_argument, NULL, OPTION_CHUNK},
    {"credits", required_argument, NULL, OPTION_CREDITS},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"idle-timeout", required_argument, NULL, OPTION_IDLE},
    {"connect-timeout", required_argument, NULL, OPTION_CONNECT},
    {"finish-timeout", required_argument, NULL, OPTION_FINISH},
    {"rate", required_argument, NULL, OPTION_RATE},
    {"sync", no_argument, NULL, OPTION_SYNC},
    {"announce-fd", required_argument, NULL, OPTION_ANNOUNCE},
    {"verbose", no_argument, NULL, 'v'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"no-progress", no_argument, NULL, OPTION_NO_PROGRESS},
    {"hop", required_argument, NULL, OPTION_HOP}, /* a leash gives it */
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

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

static int refuse(struct trouble *trouble, const char *what, const char *text,
                  const char *expected)
{
    char safe[80];
    shown(safe, sizeof safe, text, (uint32_t)strlen(text));
    return troubled(trouble, EXIT_USAGE, "%s \"%s\": expected %s", what, safe, expected);
}

/* Digits and nothing else; -1: it is no such number. */
static int64_t digits(const char *text)
{
    char *rest;
    errno = 0;
    long long value = strtoll(text, &rest, 10);
    return text[0] >= '0' && text[0] <= '9' && !*rest && !errno ? value : -1;
}

static int check_number(const char *name, const char *text, int64_t value, int64_t least,
                        int64_t most, struct trouble *trouble)
{
    if (value >= least && value <= most)
        return 0;
    char safe[80];
    shown(safe, sizeof safe, text, (uint32_t)strlen(text));
    return troubled(trouble, EXIT_USAGE, "--%s \"%s\": expected %lld to %lld", name, safe,
                    (long long)least, (long long)most);
}

static int take_seconds(const char *name, const char *text, double least,
                        int64_t *into_ms, struct trouble *trouble)
{
    char *rest, what[40] = "--";
    double value = strtod(text, &rest);
    strncat(what, name, sizeof what - 3);
    if (rest == text || *rest || !(value >= 0 && value <= 1e6))
        return refuse(trouble, what, text, "seconds, at most 1000000");
    if (value > 0 && value < least)
        return refuse(trouble, what, text,
                      least == TIMEOUT_LEAST_S
                          ? "0, or at least 1.5: a heartbeat comes every second"
                          : "0, or at least 0.001");
    *into_ms = (int64_t)(value * 1000);
    return 0;
}

static int take_transport(struct options *options, const char *text,
                          struct trouble *trouble)
{
    static const char *const names[] = {"auto", "rdma", "tcp"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            options->transport = (enum wanted_transport)i;
            return 0;
        }
    return refuse(trouble, "--transport", text, "auto, rdma or tcp");
}

static int take_checksum(struct options *options, const char *text,
                         struct trouble *trouble)
{
    options->checksum = strcmp(text, "xxh64") == 0;
    if (options->checksum || strcmp(text, "none") == 0)
        return 0;
    return refuse(trouble, "--checksum", text, "xxh64 or none");
}

static int take_size(struct options *options, int option, const char *name,
                     struct trouble *trouble)
{
    bool bytes = option == OPTION_CHUNK || option == OPTION_RATE;
    int64_t value = bytes ? options_bytes(optarg) : digits(optarg);
    int64_t least = 0, most = 65535;
    if (option == OPTION_CHUNK) {
        least = CHUNK_LEAST;
        most = CHUNK_MOST;
    } else if (option == OPTION_CREDITS) {
        least = 1;
        most = CREDITS_MOST;
    } else if (option == OPTION_RATE) {
        least = 1;
        most = INT64_MAX;
    }
    if (check_number(name, optarg, value, least, most, trouble) < 0)
        return -1;
    switch (option) {
    case OPTION_CHUNK: options->chunk = (uint32_t)value; break;
    case OPTION_CREDITS: options->credits = (uint32_t)value; break;
    case OPTION_RATE: options->rate = (uint64_t)value; break;
    case OPTION_KEY_FD: options->key_fd = (int)value; break;
    default: options->announce_fd = (int)value; break;
    }
    return 0;
}

static int take_option(struct options *options, int option, const char *name,
                       struct trouble *trouble)
{
    switch (option) {
    case OPTION_KEY_FILE: options->key_file = optarg; return 0;
    case OPTION_NEW_KEY: options->new_key = optarg; return 0;
    case OPTION_DEVICE: options->device = optarg; return 0;
    case OPTION_BIND: options->bind_to = optarg; return 0;
    case OPTION_ENCRYPT: options->protection = PROTECT_ENCRYPT; return 0;
    case OPTION_SIGN: options->protection = PROTECT_SIGN; return 0;
    case OPTION_PLAIN:
        options->protection = PROTECT_NOT;
        options->plain++;
        return 0;
    case OPTION_SYNC: options->sync = true; return 0;
    case OPTION_JSON: options->json = true; return 0;
    case OPTION_NO_PROGRESS: options->progress = false; return 0;
    case OPTION_HOP: options->hop = optarg; return 0;
    case OPTION_HELP: options->help = true; return 0;
    case OPTION_VERSION: options->version = true; return 0;
    case 'v': options->verbose = true; return 0;
    case OPTION_TRANSPORT: return take_transport(options, optarg, trouble);
    case OPTION_CHECKSUM: return take_checksum(options, optarg, trouble);
    case OPTION_TIMEOUT:
        return take_seconds(name, optarg, TIMEOUT_LEAST_S, &options->timeout_ms, trouble);
    case OPTION_IDLE:
        return take_seconds(name, optarg, LIMIT_LEAST_S, &options->idle_ms, trouble);
    case OPTION_FINISH:
        return take_seconds(name, optarg, LIMIT_LEAST_S, &options->finish_ms, trouble);
    case OPTION_CONNECT:
        return take_seconds(name, optarg, LIMIT_LEAST_S, &options->connect_ms, trouble);
    default: return take_size(options, option, name, trouble);
    }
}

static int take_options(struct options *options, int argc, char **argv,
                        struct trouble *trouble)
{
    int option, index = 0;
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "+:v", table, &index)) >= 0) {
        const char *last = argv[optind - 1];
        const char letter[] = {'-', (char)optopt, '\0'};
        if (option == ':')
            return refuse(trouble, "option", last, "a value after it");
        if (option == '?')
            return refuse(trouble, "option", optopt > 0 && optopt < 256 ? letter : last,
                          "one that --help names (a file name that begins with \"-\" "
                          "is written ./-name)");
        const char *name = option == 'v' ? "verbose" : table[index].name;
        if (take_option(options, option, name, trouble) < 0)
            return -1;
    }
    bool receives = options->sync || options->new_key || options->announce_fd >= 0;
    if (options->sends && receives)
        return troubled(trouble, EXIT_USAGE,
                        "--sync, --new-key and --announce-fd are rdrecv's options");
    if (!options->sends && options->rate)
        return troubled(trouble, EXIT_USAGE, "--rate is an option of rdsend");
    return 0;
}

static int take_rest(struct options *options, char **rest, struct trouble *trouble)
{
    if (options->sends && !(options->host = *rest ? *rest++ : NULL))
        return troubled(trouble, EXIT_USAGE, "no HOST: rdsend HOST PORT (see --help)");
    options->port = *rest ? *rest++ : NULL;
    if (!options->port)
        return troubled(trouble, EXIT_USAGE, "no PORT (see --help)");
    int64_t port = digits(options->port);
    if (port < (options->sends ? 1 : 0) || port > 65535)
        return refuse(trouble, "PORT", options->port, "a number up to 65535");
    if (!*rest)
        return 0;
    if (strcmp(*rest, "--") == 0) {
        options->command = rest + 1;
        if (!rest[1])
            return troubled(trouble, EXIT_USAGE, "no command after --");
        return 0;
    }
    if (rest[0][0] == '-' && rest[0][1])
        return refuse(trouble, "FILE", *rest,
                      "options before PORT, and a file name that begins with \"-\" "
                      "written ./-name");
    if (rest[1])
        return refuse(trouble, "argument", rest[1],
                      "nothing after FILE (options go first; a command goes after --)");
    if (strcmp(*rest, "-") != 0)
        options->file = *rest;
    return 0;
}

int options_read(struct options *options, bool sends, int argc, char **argv,
                 struct trouble *trouble)
{
    *options = (struct options){
        .sends = sends,
        .key_fd = -1,
        .announce_fd = -1,
        .protection = PROTECT_DEFAULT,
        .checksum = true,
        .progress = true,
        .timeout_ms = 10000,
        .connect_ms = sends ? 10000 : 0,
        .finish_ms = 3600000,
    };
    if (take_options(options, argc, argv, trouble) < 0)
        return -1;
    if (options->hop && options->verbose)
        say_where(options->hop);
    if (options->help || options->version || options->new_key)
        return 0;
    return take_rest(options, argv + optind, trouble);
}

/* Names, addresses and listening sockets: see net.h. */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bytes.h"
#include "descriptors.h"
#include "signals.h"

enum { BIND_LIMIT_MS = 10000 };

uint16_t net_port(const struct sockaddr *address)
{
    return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static void set_port(struct sockaddr *address, uint16_t port)
{
    /* same offset as sin6_port */
    ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
}

socklen_t net_length(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

void net_name(const struct sockaddr *address, char *into, size_t room)
{
    char host[64];
    if (getnameinfo(address, net_length(address), host, sizeof host, NULL, 0, NI_NUMERICHOST))
        snprintf(host, sizeof host, "?");
    const char *shorter = strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
    bool six = strchr(shorter, ':') != NULL;
    uint16_t port = net_port(address);
    if (!port)
        snprintf(into, room, "%s", shorter);
    else
        snprintf(into, room, six ? "[%s]:%u" : "%s:%u", shorter, (unsigned)port);
}

const char *net_advice(int code)
{
    switch (code) {
    case ECONNREFUSED:
        return "connection refused: is rdrecv running there, on this port?";
    case ETIMEDOUT:
        return "no answer: is the machine up, and does a firewall drop the port?";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "no route to it: check the address and this machine's network";
    case EADDRNOTAVAIL:
        return "not an address of this machine: check --bind";
    default:
        return strerror(code);
    }
}

/* Map an IPv4 address to ::ffff:0:0/96. */
static struct in6_addr six_of(const struct sockaddr *address)
{
    struct in6_addr six = {.s6_addr = {[10] = 0xff, 0xff}};
    if (address->sa_family == AF_INET6)
        return ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    memcpy(six.s6_addr + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    return six;
}

/* Return true if the address is in the network with these leading bits. */
static bool is_in(const struct sockaddr *address, const char *net, int bits)
{
    struct in6_addr six = six_of(address), wanted;
    inet_pton(AF_INET6, net, &wanted);
    int whole = bits / 8, rest = bits % 8;
    return memcmp(&six, &wanted, (size_t)whole) == 0 &&
           (!rest || !((six.s6_addr[whole] ^ wanted.s6_addr[whole]) >> (8 - rest)));
}

static bool is_any(const struct sockaddr *address)
{
    return is_in(address, "::", 128) || is_in(address, "::ffff:0.0.0.0", 128);
}

bool net_is_loopback(const struct sockaddr *address)
{
    return is_in(address, "::1", 128) || is_in(address, "::ffff:127.0.0.0", 104);
}

bool net_is_foreign(const struct sockaddr *address)
{
    static const struct { const char *net; int bits; } homes[] = {
        {"fe80::", 10},             {"fc00::", 7},
        {"::ffff:10.0.0.0", 104},   {"::ffff:172.16.0.0", 108},
        {"::ffff:192.168.0.0", 112}, {"::ffff:169.254.0.0", 112},
        {"::ffff:100.64.0.0", 106},
    };
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
        if (is_in(address, homes[i].net, homes[i].bits))
            return false;
    return !net_is_loopback(address);
}

/* Name lookup in its own thread. The signals that end the tool are blocked there, too. A lookup
 * cannot be cancelled: on a time-out it is abandoned, and the thread owns the question from then
 * on. */
struct question {
    char host[256], port[16];
    int answered_fd, code;
    struct addrinfo *found;
};

static int look_up(struct question *question, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | flags};
    return getaddrinfo(question->host, question->port, &hints, &question->found);
}

static void *ask(void *argument)
{
    struct question *question = argument;
    question->code = look_up(question, 0);
    eventfd_write(question->answered_fd, 1);
    return NULL;
}

/* Return 0, an EAI_ error, or 1: no answer in time, or a signal, reported as an error. */
static int await(struct question *question, int64_t limit_ms, struct error *error)
{
    pthread_t thread;
    struct pollfd polled = {question->answered_fd = eventfd(0, EFD_CLOEXEC), POLLIN, 0};
    int code = polled.fd < 0 || pthread_create(&thread, NULL, ask, question);
    if (!code && signals_wait(&polled, 1, now_ms() + limit_ms, error) <= 0) {
        pthread_detach(thread);
        return 1;
    }
    if (!code)
        pthread_join(thread, NULL);
    shut(&polled.fd);
    return code ? EAI_MEMORY : question->code;
}

struct addrinfo *net_resolve(const char *host, const char *port, int64_t limit_ms,
                             struct error *error)
{
    char name[128];
    struct question *question = allocated(calloc(1, sizeof *question));
    size_t length = strlen(host);
    bool brackets = length > 2 && host[0] == '[' && host[length - 1] == ']';
    snprintf(question->host, sizeof question->host, "%.*s",
             (int)(brackets ? length - 2 : length), brackets ? host + 1 : host);
    snprintf(question->port, sizeof question->port, "%s", port);
    shown(name, sizeof name, host, (uint32_t)length);
    int code = look_up(question, AI_NUMERICHOST);
    if (code == EAI_NONAME)
        code = await(question, limit_ms, error);
    if (code == 1) {
        fault(error, "no name server says within %g s where \"%s\" is: check the name and "
              "/etc/resolv.conf (--connect-timeout)", (double)limit_ms / 1000, name);
        return NULL;
    }
    struct addrinfo *found = code ? NULL : question->found;
    if (code)
        fault(error, "unknown host \"%s\": %s", name, gai_strerror(code));
    free(question);
    return found;
}

static int listen_on(const struct sockaddr *address)
{
    int one = 1, zero = 0;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, address, net_length(address)) < 0 || listen(fd, 64) < 0)
        shut(&fd);
    return fd;
}

bool net_ports(const char *text, uint16_t *least, uint16_t *most)
{
    int first = -1, last, length = 0;
    if (sscanf(text, "%5d%n-%5d%n", &first, &length, &last, &length) < 2)
        last = first;
    if (text[strspn(text, "0123456789-")] || text[length] || first < 0 || last < first ||
        last > UINT16_MAX)
        return false;
    *least = (uint16_t)first;
    *most = (uint16_t)last;
    return true;
}

static int listen_at(const struct addrinfo *at, uint16_t port)
{
    struct sockaddr_storage any = {.ss_family = AF_INET6};
    struct sockaddr *address = at ? at->ai_addr : (struct sockaddr *)&any;
    set_port(address, port);
    int fd = listen_on(address);
    if (fd < 0 && !at && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
        any.ss_family = AF_INET; /* with its port at the same offset */
        fd = listen_on(address);
    }
    return fd;
}

int net_listen(const char *bind_to, const char *ports, struct sockaddr_storage *bound,
               socklen_t *bound_length, struct error *error)
{
    struct addrinfo *at = NULL;
    uint16_t port, last;
    int fd = -1;
    if (!net_ports(ports, &port, &last))
        return fault_status(error, EXIT_USAGE, "port \"%s\": expected one or two up to 65535, as "
                        "in 7471-7479", ports);
    if (bind_to && !(at = net_resolve(bind_to, "0", BIND_LIMIT_MS, error)))
        return -1;
    while ((fd = listen_at(at, port)) < 0 && errno == EADDRINUSE && port < last)
        port++;
    if (at)
        freeaddrinfo(at);
    *bound_length = sizeof *bound;
    if (fd >= 0 && getsockname(fd, (struct sockaddr *)bound, bound_length) == 0)
        return fd;
    const char *why = strerror(errno);
    if (errno == EADDRINUSE)
        why = "it is taken: end the other program, or give 0 for any free port";
    else if (errno == EACCES)
        why = "not allowed: ports below 1024 are root's";
    else if (errno == EADDRNOTAVAIL)
        why = net_advice(errno);
    fault(error, "cannot listen on port %s: %s", ports, why);
    shut(&fd);
    return -1;
}

static void add_address(struct bytes *list, const struct sockaddr *address)
{
    char name[80];
    struct sockaddr_storage bare = {0};
    memcpy(&bare, address, net_length(address));
    set_port((struct sockaddr *)&bare, 0);
    net_name((struct sockaddr *)&bare, name, sizeof name);
    bytes_format(list, "%s%s", list->length ? "," : "", name);
}

enum { RANK_PREFERRED, RANK_OTHER, RANK_LAST_RESORT, RANK_NONE };

static int rank_of(const struct ifaddrs *one, bool six_too,
                   bool (*preferred)(const struct sockaddr *))
{
    const unsigned up = IFF_UP | IFF_RUNNING;
    const struct sockaddr *address = one->ifa_addr;
    bool six = address && address->sa_family == AF_INET6;
    if (!address || (one->ifa_flags & up) != up ||
        !(six ? six_too : address->sa_family == AF_INET) ||
        /* link-local: the scope is valid on this machine only */
        (six && is_in(address, "fe80::", 10)))
        return RANK_NONE;
    if (net_is_loopback(address))
        return RANK_LAST_RESORT;
    return preferred && preferred(address) ? RANK_PREFERRED : RANK_OTHER;
}

char *net_addresses(const struct sockaddr *bound, bool (*preferred)(const struct sockaddr *))
{
    struct bytes list = {0};
    struct ifaddrs *all = NULL;
    if (!is_any(bound))
        add_address(&list, bound);
    else if (getifaddrs(&all) < 0)
        all = NULL;
    for (int rank = 0; rank <= (list.length ? RANK_OTHER : RANK_LAST_RESORT); rank++)
        for (struct ifaddrs *one = all; one; one = one->ifa_next)
            if (rank_of(one, bound->sa_family == AF_INET6, preferred) == rank)
                add_address(&list, one->ifa_addr);
    freeifaddrs(all);
    bytes_reserve(&list, 1); /* makes an empty list a string, too */
    return list.data;
}

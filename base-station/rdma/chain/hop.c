/* Choice of the data path between two ends of a chain: see hop.h. */
#include "hop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the address of a host given by --via HOST=ADDRESS, to be freed by the caller, or NULL. */
static char *via(const struct pipe_settings *settings, const char *host)
{
    const char *at = host ? strchr(host, '@') : NULL;
    const char *name = at ? at + 1 : host;
    size_t length = name ? strlen(name) : 0;
    for (size_t i = 0; name && i < settings->via.count; i++) {
        const char *text = settings->via.word[i];
        if (strncmp(text, name, length) == 0 && text[length] == '=')
            return allocated(strdup(text + length + 1));
    }
    return NULL;
}

/* Return the addresses at which `from` can reach `to`, based on its announcement. */
static char *addresses_of(const struct pipe_settings *settings, const struct pipe_end *from,
                          const struct pipe_end *to, const char *said)
{
    char *given = via(settings, to->host);
    char *announced = given ? given : agent_field(said, "addresses");
    if (given || !announced || !same_text(from->host, to->host))
        return announced;
    char *nearest = text_of("127.0.0.1,%s", announced);
    free(announced);
    return nearest;
}

void hop_tell(const struct pipe_settings *settings, const struct pipe_end *end)
{
    const char *from = end->host ? end->host : "here";
    const char *to = end[1].host ? end[1].host : "here";
    bool back = end->work.route == AGENT_BACK;
    fprintf(stderr, "%s: from %s to %s: %s%s\n", settings->program, from, to,
            back ? "the data's connection is dialed back"
                 : "the data goes through the SSH session, which is slower",
            settings->route == (int)end->work.route
                ? "" : " (no port is reached: --port names those that a firewall lets in)");
}

static void try_way(const struct pipe_settings *settings, struct pipe_end *end,
                    enum agent_route route)
{
    static const struct words nowhere;
    end->work.route = route;
    pipe_end_run(end);
    if (route != AGENT_THROUGH_SSH)
        return;
    hop_tell(settings, end);
    pipe_end_dial(end + 1, &nowhere);
}

void hop_begin(const struct pipe_settings *settings, struct pipe_end *end)
{
    const char *said = end[1].announcement;
    char *transports = agent_field(said, "transports");
    bool sure = same_text(end->host, end[1].host) || same_text(transports, "rdma");
    free(transports);
    end->work.port = end->port = agent_field(said, "port");
    end->work.addresses = end->addresses = addresses_of(settings, end, end + 1, said);
    if (end->port && end->addresses)
        try_way(settings, end, sure ? AGENT_SURE : (enum agent_route)settings->route);
    else
        pipe_end_let_go(end);
}

void hop_unreached(const struct pipe_settings *settings, struct pipe_end *end,
                   enum agent_hop hop)
{
    bool out = hop == AGENT_HOP_OUT && *end->work.key_out;
    if (out && end->work.route != AGENT_THROUGH_SSH)
        try_way(settings, end, end->work.route + 1);
    else if (hop == AGENT_HOP_IN && *end->work.key_in && end[-1].work.route == AGENT_BACK)
        try_way(settings, end - 1, AGENT_THROUGH_SSH);
}

void hop_dial_back(const struct pipe_settings *settings, struct pipe_end *end,
                   const char *awaits)
{
    char *port = agent_field(awaits, "port");
    char *addresses = addresses_of(settings, end + 1, end, awaits);
    char *to[] = {(char *)end->work.token, port, addresses};
    if (port && addresses)
        pipe_end_dial(end + 1, &(struct words){to, 3});
    else
        pipe_end_let_go(end);
    free(addresses);
    free(port);
}

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

static void through_ssh(const struct pipe_settings *settings, struct pipe_end *end)
{
    fprintf(stderr, "%s: from %s to %s: the data goes through the SSH session, which is slower%s\n",
            settings->program, end->host ? end->host : "here",
            end[1].host ? end[1].host : "here",
            settings->route == AGENT_THROUGH_SSH
                ? "" : " (no port is reached: --port names those that a firewall lets in)");
    end->work.route = AGENT_THROUGH_SSH;
    pipe_end_run(end);
    pipe_end_via_ssh(end + 1);
}

void hop_begin(const struct pipe_settings *settings, struct pipe_end *end)
{
    const char *said = end[1].announcement;
    char *transports = agent_field(said, "transports");
    bool sure = same_text(end->host, end[1].host) || same_text(transports, "rdma");
    free(transports);
    end->work.port = end->port = agent_field(said, "port");
    end->work.addresses = end->addresses = addresses_of(settings, end, end + 1, said);
    if (!end->port || !end->addresses) {
        pipe_end_let_go(end);
    } else if (!sure && settings->route == AGENT_THROUGH_SSH) {
        through_ssh(settings, end);
    } else {
        end->work.route = sure ? AGENT_SURE : AGENT_STRAIGHT;
        pipe_end_run(end);
    }
}

void hop_unreached(const struct pipe_settings *settings, struct pipe_end *end)
{
    if (*end->work.key_out && end->work.route == AGENT_STRAIGHT)
        through_ssh(settings, end);
}

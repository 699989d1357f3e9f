/*
 * Choice of the data path between two neighbouring ends of a chain, made by rdpipe: a direct
 * connection, then dialing back, then the SSH sessions. route.h is the agent's part of it.
 */
#pragma once

#include "pipe.h"
#include "pipe_end.h"

/* Run this end; the next one has announced its address. */
void hop_begin(const struct pipe_settings *settings, struct pipe_end *end);

/* Try the next path after an end failed to connect on one of its hops. */
void hop_unreached(const struct pipe_settings *settings, struct pipe_end *end,
                   enum agent_hop hop);

/* Make the next end dial this one, which waits for it as stated in `awaits`. */
void hop_dial_back(const struct pipe_settings *settings, struct pipe_end *end,
                   const char *awaits);

/* Print the path of the hop out of this end, if it is not direct. */
void hop_tell(const struct pipe_settings *settings, const struct pipe_end *end);

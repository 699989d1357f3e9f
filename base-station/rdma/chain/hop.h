/* Which way the data of the hop between two ends of a chain goes, as rdpipe decides it:
 * straight, else dialed back, else through the sessions. way.h is what the leashes do. */
#pragma once

#include "pipe.h"
#include "pipe_end.h"

/* The next end has announced where it listens: runs this one. */
void hop_begin(const struct pipe_settings *settings, struct pipe_end *end);

/* An end said that nobody answers there, on one of its hops. */
void hop_unreached(const struct pipe_settings *settings, struct pipe_end *end,
                   enum leash_hop hop);

/* It waits, as it says, for the next one to dial. */
void hop_dial_back(const struct pipe_settings *settings, struct pipe_end *end,
                   const char *awaits);

/* The line that says which way the hop out of it goes, where that is not straight. */
void hop_tell(const struct pipe_settings *settings, const struct pipe_end *end);

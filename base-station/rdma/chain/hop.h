/*
 * Choice of the data path between two neighbouring ends of a chain, made by rdpipe: a direct
 * connection, else the SSH sessions. route.h is the agent's part of it.
 */
#pragma once

#include "pipe.h"
#include "pipe_end.h"

/* Run this end; the next one has announced its address. */
void hop_begin(const struct pipe_settings *settings, struct pipe_end *end);

/* Use the SSH sessions after this end could not reach the next one. */
void hop_unreached(const struct pipe_settings *settings, struct pipe_end *end);

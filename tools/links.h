/* SPDX-License-Identifier: MIT */
/* Names of the links between cards in lists and JSON. */
#ifndef TOOLS_LINKS_H
#define TOOLS_LINKS_H

#include <spyre/peer.h>

#define NUM_LINKS 4

/* All paths, the fastest first. */
extern const spyre_peer_path links_by_speed[NUM_LINKS];

/* "same-card", "switch", "host" or "none". */
const char *link_name(spyre_peer_path path);

#endif /* TOOLS_LINKS_H */

/* SPDX-License-Identifier: MIT */
/* The way of copies between two cards of one backend and one process. */
#ifndef SPYRE_PEER_PATH_H
#define SPYRE_PEER_PATH_H

#include <spyre/peer.h>

/*
 * @a and @b are indices of physical cards, or negative for cards that do not execute
 * copies between cards.
 */
spyre_peer_path spyre_peer_path_between(int32_t a, int32_t b);

#endif /* SPYRE_PEER_PATH_H */

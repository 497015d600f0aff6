// SPDX-License-Identifier: MIT
/* The way of copies between two cards of one backend and one process. */
#include "libspyre/base/peer_path.h"
#include "model/peer.h"

spyre_peer_path spyre_peer_path_between(int32_t a, int32_t b)
{
	if (a < 0 || b < 0)
		return SPYRE_PEER_NONE;
	switch (spyre_link_between((uint32_t)a, (uint32_t)b)) {
	case SPYRE_LINK_CARD:
		return SPYRE_PEER_SAME_CARD;
	case SPYRE_LINK_SWITCH:
		return SPYRE_PEER_SWITCH;
	case SPYRE_LINK_HOST:
		return SPYRE_PEER_HOST;
	}
	return SPYRE_PEER_NONE;
}

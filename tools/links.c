// SPDX-License-Identifier: MIT
/* Names of the links between cards in lists and JSON. */
#include "tools/links.h"

const spyre_peer_path links_by_speed[NUM_LINKS] = {
	SPYRE_PEER_SAME_CARD, SPYRE_PEER_SWITCH, SPYRE_PEER_HOST, SPYRE_PEER_NONE,
};

const char *link_name(spyre_peer_path path)
{
	switch (path) {
	case SPYRE_PEER_SAME_CARD:
		return "same-card";
	case SPYRE_PEER_SWITCH:
		return "switch";
	case SPYRE_PEER_HOST:
		return "host";
	default:
		return "none";
	}
}

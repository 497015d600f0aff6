/* SPDX-License-Identifier: MIT */
/* Cards that are visible to a process: SPYRE_DEVICES and AIU_WORLD_SIZE. Internal. */
#ifndef SPYRE_VISIBLE_H
#define SPYRE_VISIBLE_H

#include "libspyre/backend/backend.h"

/* 8 cards, each with 16 virtual functions. */
#define SPYRE_MAX_CARDS 136

struct spyre_visible {
	int count;
	int physical[SPYRE_MAX_CARDS];
};

/*
 * @name is the variable that @devices came from (for error texts); @devices
 * and @world may be NULL. @usable selects from the @total cards, NULL selects
 * all. @ops finds cards named by bus id or UUID.
 */
spyre_status spyre_visible_parse(struct spyre_visible *visible, int total, const char *name,
				 const char *devices, const char *world, const bool *usable,
				 const struct spyre_backend_ops *ops);

#endif /* SPYRE_VISIBLE_H */

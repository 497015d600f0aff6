/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context's image of the scratchpads (LX), which its programs use whenever they
 * run.  It models the state that a context switch of the card would save and
 * restore.
 *
 * Programs may keep a part of it from one to the next (lx_kept, docs/isa.md).
 * The image of such a program has all cores of the card at their full size, so
 * that no later program needs a larger one, and nothing is ever copied.
 * An image is zero when it is made, and no other context gets it.
 */
#ifndef SPYRE_LX_H
#define SPYRE_LX_H

#include <linux/kref.h>
#include <linux/types.h>

#include "model/program.h"

/**
 * struct spyre_lx - scratchpads of a number of cores
 */
struct spyre_lx {
	/** @ref: held by the runner that it belongs to and by jobs. */
	struct kref ref;
	/** @cores: number of scratchpads. */
	u32 cores;
	/** @bytes: of each. */
	u32 bytes;
	/** @core: scratchpad of each core. */
	u8 *core[SPYRE_MAX_CORES];
	/** @memory: all of them. */
	u8 *memory;
};

struct spyre_lx *spyre_lx_get(struct spyre_lx *lx);
void spyre_lx_put(struct spyre_lx *lx);

/* Returns *@lx, replaced by a larger one if necessary, with a reference; or an error. */
struct spyre_lx *spyre_lx_provide(struct spyre_lx **lx, u32 cores, u32 bytes);

#endif

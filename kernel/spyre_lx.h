/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A context's image of the scratchpads (LX): where its programs find them
 * whenever they run.  It stands for what the card's context switch would save
 * and load.
 */
#ifndef SPYRE_LX_H
#define SPYRE_LX_H

#include <linux/kref.h>
#include <linux/types.h>

#include "model/program.h"

/**
 * struct spyre_lx - scratchpads of so many cores
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

/* *@lx if it is large enough, else a larger one in its place; referenced, or an error. */
struct spyre_lx *spyre_lx_provide(struct spyre_lx **lx, u32 cores, u32 bytes);

#endif

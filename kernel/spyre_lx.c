// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scratchpad images, as large as the submitted programs require and charged to
 * the submitter.
 */
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "spyre_charge.h"
#include "spyre_lx.h"

static void spyre_lx_release(struct kref *ref)
{
	struct spyre_lx *lx = container_of(ref, struct spyre_lx, ref);

	vfree(lx->memory);
	kfree(lx);
}

struct spyre_lx *spyre_lx_get(struct spyre_lx *lx)
{
	kref_get(&lx->ref);
	return lx;
}

void spyre_lx_put(struct spyre_lx *lx)
{
	if (lx)
		kref_put(&lx->ref, spyre_lx_release);
}

static struct spyre_lx *spyre_lx_alloc(u32 cores, u32 bytes)
{
	struct spyre_lx *lx = kzalloc(sizeof(*lx), SPYRE_GFP);
	u32 core;

	if (!lx)
		return NULL;
	lx->memory = __vmalloc((unsigned long)cores * bytes,
			       SPYRE_GFP | __GFP_ZERO);
	if (!lx->memory) {
		kfree(lx);
		return NULL;
	}
	kref_init(&lx->ref);
	lx->cores = cores;
	lx->bytes = bytes;
	for (core = 0; core < cores; core++)
		lx->core[core] = lx->memory + (unsigned long)core * bytes;
	return lx;
}

struct spyre_lx *spyre_lx_provide(struct spyre_lx **lx, u32 cores, u32 bytes)
{
	struct spyre_lx *old = *lx, *new;

	if (old && old->cores >= cores && old->bytes >= bytes)
		return spyre_lx_get(old);
	/* It does not shrink, since two programs that alternate would reallocate it each time. */
	new = spyre_lx_alloc(max(cores, old ? old->cores : 0), max(bytes, old ? old->bytes : 0));
	if (!new)
		return ERR_PTR(-ENOMEM);
	*lx = new;
	spyre_lx_put(old);
	return spyre_lx_get(new);
}

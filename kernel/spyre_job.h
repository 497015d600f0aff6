/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job: the control blocks of one SUBMIT with everything they need, resolved
 * and checked.  From the moment its fence is visible until it signals, nothing
 * is allocated, looked up or copied from user space any more.
 */
#ifndef SPYRE_JOB_H
#define SPYRE_JOB_H

#include <drm/gpu_scheduler.h>
#include <drm/spyre_accel.h>
#include <linux/dma-fence.h>
#include <linux/refcount.h>

#include "model/peer.h"
#include "spyre_dma.h"

struct spyre_bo;
struct spyre_import_syncs;
struct spyre_lx;
struct spyre_program_object;
struct spyre_queue;
struct spyre_runner;

/**
 * struct spyre_cb - a control block, ready to run
 */
struct spyre_cb {
	/** @type: enum drm_spyre_cb_type. */
	u32 type;
	/** @cost: modelled cost. */
	struct spyre_counters cost;
	/** @dst: device address that user space gave; likewise @src and @size. */
	u64 dst;
	u64 src;
	u64 size;
	union {
		/** @exec: EXEC. */
		struct {
			struct spyre_program_object *program;
			u8 **operand;
			/* what @operand was resolved from */
			const u64 *address;
		} exec;
		/** @dma: DMA. */
		struct {
			const struct spyre_dma_desc *desc;
			u8 *device;
			struct spyre_host_span host;
		} dma;
		/** @linear: COPY and FILL. */
		struct {
			u8 *dst;
			const u8 *src;
			u64 bytes;
			u64 pattern[2];
			u32 pattern_bytes;
		} linear;
		/** @peer: PEER_COPY. */
		struct {
			u8 *dst;
			const u8 *src;
			struct spyre_rows rows;
			/* has the memory at the other end; the job holds it */
			const struct spyre_bo *far;
			enum spyre_link link;
			bool write;
		} peer;
	};
};

/**
 * struct spyre_job - a submission
 */
struct spyre_job {
	/** @base: the scheduler's view. */
	struct drm_sched_job base;
	/** @parts: references to all but @base: the scheduler's, a dump's. */
	refcount_t parts;
	/** @queue: referenced. */
	struct spyre_queue *queue;
	/** @node: in the queue's list while in the engine. */
	struct list_head node;
	/** @done: fence that user space waits for; signals last. */
	struct dma_fence *done;
	/** @results: results of its control blocks, or NULL. */
	struct drm_spyre_cb_result *results;
	/** @stop: errno with which to stop, 0: continue. */
	int stop;
	/** @cores: number of cores that its widest program needs. */
	u32 cores;
	/** @lx_bytes: scratchpad per core that its programs need. */
	u32 lx_bytes;
	/** @lx_kept: one of its programs keeps a part of its scratchpad. */
	bool lx_kept;
	/** @lx: scratchpads, referenced; it runs on its context's own runner, or NULL. */
	struct spyre_lx *lx;
	/** @light: takes microseconds, so that it may run inline. */
	bool light;
	/** @has_peers: one of its control blocks is a PEER_COPY. */
	bool has_peers;
	/** @start_ns: when the engine started it, 0 = not yet. */
	u64 start_ns;
	/** @check_ns: earliest time at which it can exceed its queue's limit. */
	u64 check_ns;
	/** @paused_ns: time since then that it had no slice; engine lock. */
	u64 paused_ns;
	/** @paused_since: when its last slice ended; engine lock. */
	u64 paused_since;
	/** @bos: referenced BOs. */
	struct spyre_bo **bos;
	/** @num_bos: number of them. */
	u32 num_bos;
	/** @import_syncs: fences of the imported BOs among them, or NULL. */
	struct spyre_import_syncs *import_syncs;
	/** @num_cbs: control blocks. */
	u32 num_cbs;
	/** @cbs: control blocks. */
	struct spyre_cb cbs[] __counted_by(num_cbs);
};

static inline struct spyre_job *to_spyre_job(struct drm_sched_job *job)
{
	return container_of(job, struct spyre_job, base);
}

/* Executes @job on @runner and signals its fence. */
void spyre_job_run(struct spyre_job *job, struct spyre_runner *runner);
/* Reports @status for a job that will not run, and signals. */
void spyre_job_skip(struct spyre_job *job, int status);
/* Releases everything, after skipping a published job that never ran; may sleep. */
void spyre_job_free(struct spyre_job *job);
/* Takes a reference to the job's parts, which then outlive the scheduler's job. */
struct spyre_job *spyre_job_get(struct spyre_job *job);
void spyre_job_put(struct spyre_job *job);
/* Returns the errno with which @job must stop, or 0. */
int spyre_job_stop_reason(struct spyre_job *job);

/* Allocates the fence of a job, which holds the module. */
struct dma_fence *spyre_fence_alloc(void);
void spyre_fence_init(struct dma_fence *fence, u64 context, u64 seqno);
/* Returns true if the fence was initialised, so that others may hold it. */
static inline bool spyre_fence_is_public(const struct dma_fence *fence)
{
	return fence->ops;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: a job's way through the driver.  card, client and queue name
 * where it belongs, seqno is its place in the queue's timeline.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM spyre

#if !defined(SPYRE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SPYRE_TRACE_H

#include <linux/dma-fence.h>
#include <linux/tracepoint.h>

#include "spyre_bo.h"
#include "spyre_file.h"
#include "spyre_job.h"
#include "spyre_queue.h"

DECLARE_EVENT_CLASS(spyre_job,
	TP_PROTO(const struct spyre_job *job),
	TP_ARGS(job),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u64, client)
		__field(u64, queue)
		__field(u64, seqno)
		__field(u32, cbs)
		__field(u32, lx_bytes)
	),
	TP_fast_assign(
		__entry->card = job->queue->spyre->index;
		__entry->client = job->queue->sfile->id;
		__entry->queue = job->done->context;
		__entry->seqno = job->done->seqno;
		__entry->cbs = job->num_cbs;
		__entry->lx_bytes = job->lx_bytes;
	),
	TP_printk("card=%u client=%llu queue=%llu seqno=%llu cbs=%u lx=%u",
		  __entry->card, __entry->client, __entry->queue, __entry->seqno,
		  __entry->cbs, __entry->lx_bytes)
);

/* The fence of a job became visible. */
DEFINE_EVENT(spyre_job, spyre_submit,
	TP_PROTO(const struct spyre_job *job),
	TP_ARGS(job)
);

/* The engine starts a job. */
DEFINE_EVENT(spyre_job, spyre_run,
	TP_PROTO(const struct spyre_job *job),
	TP_ARGS(job)
);

/* The time slice of a job has ended in favour of others. */
DEFINE_EVENT(spyre_job, spyre_preempt,
	TP_PROTO(const struct spyre_job *job),
	TP_ARGS(job)
);

/* A job has got its next time slice, or has to stop. */
DEFINE_EVENT(spyre_job, spyre_resume,
	TP_PROTO(const struct spyre_job *job),
	TP_ARGS(job)
);

/* The engine starts a copy to or from another card. */
TRACE_EVENT(spyre_peer,
	TP_PROTO(const struct spyre_job *job, const struct spyre_cb *cb),
	TP_ARGS(job, cb),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u64, client)
		__field(u64, queue)
		__field(u64, seqno)
		__field(u32, peer)
		__field(u64, owner)
		__field(bool, write)
		__field(u64, rows)
		__field(u64, row_bytes)
	),
	TP_fast_assign(
		__entry->card = job->queue->spyre->index;
		__entry->client = job->queue->sfile->id;
		__entry->queue = job->done->context;
		__entry->seqno = job->done->seqno;
		__entry->peer = to_spyre_device(cb->peer.far->base.base.dev)->index;
		__entry->owner = cb->peer.far->owner->id;
		__entry->write = cb->peer.write;
		__entry->rows = cb->peer.rows.rows;
		__entry->row_bytes = cb->peer.rows.row_bytes;
	),
	TP_printk("card=%u client=%llu queue=%llu seqno=%llu peer=%u owner=%llu %s rows=%llu row_bytes=%llu",
		  __entry->card, __entry->client, __entry->queue, __entry->seqno,
		  __entry->peer, __entry->owner, __entry->write ? "write" : "read",
		  __entry->rows, __entry->row_bytes)
);

/* The fence of a job is about to signal. */
TRACE_EVENT(spyre_done,
	TP_PROTO(const struct spyre_job *job, int error, u64 cycles),
	TP_ARGS(job, error, cycles),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u64, client)
		__field(u64, queue)
		__field(u64, seqno)
		__field(int, error)
		__field(u64, cycles)
	),
	TP_fast_assign(
		__entry->card = job->queue->spyre->index;
		__entry->client = job->queue->sfile->id;
		__entry->queue = job->done->context;
		__entry->seqno = job->done->seqno;
		__entry->error = error;
		__entry->cycles = cycles;
	),
	TP_printk("card=%u client=%llu queue=%llu seqno=%llu error=%d cycles=%llu",
		  __entry->card, __entry->client, __entry->queue, __entry->seqno,
		  __entry->error, __entry->cycles)
);

/* A queue was killed and accepts no more work. */
TRACE_EVENT(spyre_queue_dead,
	TP_PROTO(const struct spyre_queue *queue, int error),
	TP_ARGS(queue, error),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u64, client)
		__field(u64, queue)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->card = queue->spyre->index;
		__entry->client = queue->sfile->id;
		__entry->queue = queue->fence_context;
		__entry->error = error;
	),
	TP_printk("card=%u client=%llu queue=%llu error=%d",
		  __entry->card, __entry->client, __entry->queue, __entry->error)
);

/* A control block failed, and its context with it. */
TRACE_EVENT(spyre_fault,
	TP_PROTO(const struct spyre_job *job, const struct spyre_fault *fault),
	TP_ARGS(job, fault),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u64, client)
		__field(u64, queue)
		__field(u64, seqno)
		__field(u32, cb)
		__field(u32, fault)
		__field(int, error)
		__field(u32, stop)
	),
	TP_fast_assign(
		__entry->card = job->queue->spyre->index;
		__entry->client = job->queue->sfile->id;
		__entry->queue = job->done->context;
		__entry->seqno = fault->job;
		__entry->cb = fault->cb;
		__entry->fault = fault->kind;
		__entry->error = fault->error;
		__entry->stop = fault->stop;
	),
	TP_printk("card=%u client=%llu queue=%llu seqno=%llu cb=%u fault=%s error=%d stop=%u",
		  __entry->card, __entry->client, __entry->queue, __entry->seqno, __entry->cb,
		  spyre_fault_name(__entry->fault), __entry->error, __entry->stop)
);

/* A context lost its queues and its mark. */
TRACE_EVENT(spyre_context_reset,
	TP_PROTO(const struct spyre_file *sfile, u32 queues, int error),
	TP_ARGS(sfile, queues, error),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u64, client)
		__field(u32, queues)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->card = sfile->spyre->index;
		__entry->client = sfile->id;
		__entry->queues = queues;
		__entry->error = error;
	),
	TP_printk("card=%u client=%llu queues=%u error=%d", __entry->card, __entry->client,
		  __entry->queues, __entry->error)
);

/* The card was reset; files of earlier generations are stale. */
TRACE_EVENT(spyre_reset,
	TP_PROTO(const struct spyre_device *spyre, int error),
	TP_ARGS(spyre, error),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u64, generation)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->card = spyre->index;
		__entry->generation = spyre->generation;
		__entry->error = error;
	),
	TP_printk("card=%u generation=%llu error=%d", __entry->card, __entry->generation,
		  __entry->error)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE spyre_trace
#include <trace/define_trace.h>

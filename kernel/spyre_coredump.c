// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device coredumps: the state at the first failure of a context, for root.
 *
 * The thread that raises a fault may neither allocate nor wait, so it only keeps the
 * job's parts; a work item creates the dump from them, after the fence has
 * signalled.  Dumps are created one at a time and the core keeps one per card,
 * so repeated faults do not use more memory.  A dump has no user data, neither
 * of LPDDR5 nor of host memory.
 */
#include <linux/devcoredump.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#include <drm/spyre_coredump.h>

#include "spyre_compat.h"
#include "spyre_coredump.h"
#include "spyre_device.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_job.h"
#include "spyre_program.h"
#include "spyre_query.h"
#include "spyre_queue.h"

/* Minimum time between two dumps, since a dump costs host time even if it is never read. */
#define SPYRE_COREDUMP_JIFFIES msecs_to_jiffies(100)

static_assert((int)DRM_SPYRE_COREDUMP_OPERAND_READ == (int)SPYRE_OPERAND_READ);
static_assert((int)DRM_SPYRE_COREDUMP_OPERAND_WRITE == (int)SPYRE_OPERAND_WRITE);

/* The dump is written twice: without @buffer to determine its size, then to fill the buffer. */
struct spyre_dump {
	u8 *buffer;
	u64 size;
	u64 pos;
	u32 num_sections;
};

static void spyre_dump_put(struct spyre_dump *dump, const void *data, u64 bytes)
{
	if (dump->buffer && bytes <= dump->size - dump->pos)
		memcpy(dump->buffer + dump->pos, data, bytes);
	dump->pos += ALIGN(bytes, 8);
}

static void spyre_dump_head(struct spyre_dump *dump, u32 type, u32 index, u64 bytes, u64 whole)
{
	const struct drm_spyre_coredump_section section = {
		.type = type,
		.index = index,
		.bytes = bytes,
		.whole = whole,
	};

	spyre_dump_put(dump, &section, sizeof(section));
	dump->num_sections++;
}

static void spyre_dump_section(struct spyre_dump *dump, u32 type, u32 index, const void *data,
			       u64 bytes, u64 whole)
{
	spyre_dump_head(dump, type, index, bytes, whole);
	spyre_dump_put(dump, data, bytes);
}

#define spyre_dump_struct(dump, type, index, value) \
	spyre_dump_section(dump, type, index, &(value), sizeof(value), sizeof(value))

static void spyre_dump_info(struct spyre_dump *dump, struct spyre_file *sfile)
{
	struct drm_spyre_coredump_info info = {
		.pid = sfile->pid,
		.monotonic_ns = ktime_get_ns(),
		.realtime_ns = ktime_get_real_ns(),
	};

	strscpy((char *)info.release, init_utsname()->release, sizeof(info.release));
	strscpy((char *)info.driver, "spyre_vdev", sizeof(info.driver));
	strscpy((char *)info.comm, sfile->comm, sizeof(info.comm));
	spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_INFO, 0, info);
}

static void spyre_dump_state(struct spyre_dump *dump, struct spyre_file *sfile)
{
	struct drm_spyre_context_info context = {};
	struct drm_spyre_counters counters = {};
	struct drm_spyre_memory_info memory = {};
	struct drm_spyre_card_info card = {};

	spyre_query_card(sfile->spyre, &card);
	spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_CARD, 0, card);
	spyre_query_memory(sfile, &memory);
	spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_MEMORY, 0, memory);
	spyre_query_counters(sfile->spyre, &counters);
	spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_COUNTERS, 0, counters);
	spyre_query_context(sfile, &context);
	spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_CONTEXT, 0, context);
}

static void spyre_dump_fault(struct spyre_dump *dump, const struct spyre_coredump *core)
{
	const struct spyre_job *job = core->job;
	struct drm_spyre_coredump_fault fault = {
		.fault = core->fault.kind,
		.error = core->fault.error,
		.stop = core->fault.stop,
		.queue = core->fault.queue,
		.job = core->fault.job,
		.cb = core->fault.cb,
		.num_cbs = job->num_cbs,
		.start_ns = job->start_ns,
		.ns = core->fault.ns,
		.timeout_ns = job->queue->timeout_ns,
		.priority = job->queue->priority,
		.lx_bytes = job->lx_bytes,
	};

	strscpy((char *)fault.stop_name, spyre_stop_name(core->fault.stop),
		sizeof(fault.stop_name));
	spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_FAULT, fault.cb, fault);
}

static void spyre_dump_operands(struct spyre_dump *dump, u32 index, const struct spyre_cb *cb)
{
	const struct spyre_program *prog = &cb->exec.program->base;
	const u32 num = prog->header->num_operands;
	struct drm_spyre_coredump_operand operand = {};
	u32 i;

	spyre_dump_head(dump, DRM_SPYRE_COREDUMP_OPERANDS, index, num * sizeof(operand),
			num * sizeof(operand));
	for (i = 0; i < num; i++) {
		operand.address = cb->exec.address[i];
		operand.extent = prog->operands[i].extent;
		operand.flags = prog->operands[i].flags;
		spyre_dump_put(dump, &operand, sizeof(operand));
	}
}

static void spyre_dump_cb(struct spyre_dump *dump, u32 index, const struct spyre_cb *cb)
{
	struct drm_spyre_coredump_cb out = {
		.type = cb->type,
		.dst = cb->dst,
		.src = cb->src,
		.size = cb->size,
		.cycles = cb->cost.cycles,
		.bytes_read = cb->cost.bytes_read,
		.bytes_written = cb->cost.bytes_written,
		.macs = cb->cost.macs,
	};

	switch (cb->type) {
	case DRM_SPYRE_CB_EXEC:
		out.num_operands = cb->exec.program->base.header->num_operands;
		out.program_bytes = cb->exec.program->base.header->size;
		spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_CB, index, out);
		spyre_dump_operands(dump, index, cb);
		return;
	case DRM_SPYRE_CB_DMA:
		spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_CB, index, out);
		spyre_dump_section(dump, DRM_SPYRE_COREDUMP_DMA, index, cb->dma.desc,
				   sizeof(struct drm_spyre_dma), sizeof(struct drm_spyre_dma));
		return;
	case DRM_SPYRE_CB_FILL:
		memcpy(out.pattern, cb->linear.pattern, sizeof(out.pattern));
		out.pattern_size = cb->linear.pattern_bytes;
		break;
	}
	spyre_dump_struct(dump, DRM_SPYRE_COREDUMP_CB, index, out);
}

static void spyre_dump_program(struct spyre_dump *dump, u32 index, const struct spyre_cb *cb)
{
	u64 whole;

	if (cb->type != DRM_SPYRE_CB_EXEC)
		return;
	whole = cb->exec.program->base.header->size;
	spyre_dump_section(dump, DRM_SPYRE_COREDUMP_PROGRAM, index, cb->exec.program->image,
			   min_t(u64, whole, DRM_SPYRE_COREDUMP_PROGRAM_MAX), whole);
}

void spyre_queue_describe(struct spyre_queue *queue, struct drm_spyre_coredump_queue *out)
{
	*out = (struct drm_spyre_coredump_queue) {
		.context = queue->sfile->id,
		.queue = queue->id,
		.priority = queue->priority,
		.error = READ_ONCE(queue->error),
		.cb = READ_ONCE(queue->now_cb),
		.submitted = READ_ONCE(queue->submitted),
		.completed = atomic64_read(&queue->completed),
		.job = READ_ONCE(queue->now_job),
		.since_ns = READ_ONCE(queue->now_since),
	};
	if (!out->job) {
		out->cb = 0;
		out->since_ns = 0;
	}
}

/* Returns the card's queues with their jobs; NULL if memory is not available. */
static struct drm_spyre_coredump_queue *spyre_dump_queues(struct spyre_device *spyre, u32 *count,
							  u32 *all)
{
	struct drm_spyre_coredump_queue *queues;
	struct spyre_file *sfile;
	struct spyre_queue *queue;
	unsigned long id;

	*count = *all = 0;
	queues = kvcalloc(DRM_SPYRE_COREDUMP_QUEUES_MAX, sizeof(*queues), GFP_KERNEL);
	if (!queues)
		return NULL;
	guard(mutex)(&spyre->files_lock);
	list_for_each_entry(sfile, &spyre->files, node) {
		xa_lock(&sfile->queues);
		xa_for_each(&sfile->queues, id, queue) {
			if (*count < DRM_SPYRE_COREDUMP_QUEUES_MAX)
				spyre_queue_describe(queue, &queues[(*count)++]);
			++*all;
		}
		xa_unlock(&sfile->queues);
	}
	return queues;
}

static void spyre_dump_write(struct spyre_dump *dump, const struct spyre_coredump *core,
			     const struct drm_spyre_coredump_queue *queues, u32 count, u32 all)
{
	const struct spyre_job *job = core->job;
	struct drm_spyre_coredump_header header = {
		.magic = DRM_SPYRE_COREDUMP_MAGIC,
		.version = DRM_SPYRE_COREDUMP_VERSION,
		.header_bytes = sizeof(header),
		.size = dump->size,
		.num_sections = dump->num_sections,
	};
	u32 i;

	dump->num_sections = 0;
	dump->pos = 0;
	spyre_dump_put(dump, &header, sizeof(header));
	spyre_dump_info(dump, job->queue->sfile);
	spyre_dump_fault(dump, core);
	spyre_dump_state(dump, job->queue->sfile);
	for (i = 0; i < job->num_cbs; i++)
		spyre_dump_cb(dump, i, &job->cbs[i]);
	spyre_dump_program(dump, core->fault.cb, &job->cbs[core->fault.cb]);
	spyre_dump_section(dump, DRM_SPYRE_COREDUMP_QUEUES, 0, queues, count * sizeof(*queues),
			   (u64)all * sizeof(*queues));
}

static void spyre_coredump_make(struct spyre_device *spyre)
{
	struct drm_spyre_coredump_queue *queues;
	struct spyre_dump dump = {};
	u32 count, all;

	queues = spyre_dump_queues(spyre, &count, &all);
	spyre_dump_write(&dump, &spyre->coredump, queues, count, all);
	dump.size = dump.pos;
	dump.buffer = vzalloc(dump.size);
	if (dump.buffer) {
		spyre_dump_write(&dump, &spyre->coredump, queues, count, all);
		/* dev_coredumpm() would hold the module as long as the dump exists. */
		dev_coredumpv(spyre->drm.dev, dump.buffer, dump.size, GFP_KERNEL);
	}
	kvfree(queues);
}

static void spyre_coredump_work(struct work_struct *work)
{
	struct spyre_coredump *core = container_of(work, struct spyre_coredump, work);
	struct spyre_device *spyre = container_of(core, struct spyre_device, coredump);
	struct spyre_job *job = core->job;

	spyre_coredump_make(spyre);
	WRITE_ONCE(core->next, jiffies + SPYRE_COREDUMP_JIFFIES);
	core->job = NULL;
	clear_bit_unlock(0, &core->busy);
	/* This must be last, since it may release the card. */
	spyre_job_put(job);
}

void spyre_coredump_init(struct spyre_device *spyre)
{
	INIT_WORK(&spyre->coredump.work, spyre_coredump_work);
	spyre->coredump.next = jiffies;
}

void spyre_coredump_stop(struct spyre_device *spyre)
{
	flush_work(&spyre->coredump.work);
}

void spyre_coredump_take(struct spyre_job *job, const struct spyre_fault *fault)
{
	struct spyre_coredump *core = &job->queue->spyre->coredump;

	if (!IS_ENABLED(CONFIG_DEV_COREDUMP) || time_before(jiffies, READ_ONCE(core->next)))
		return;
	if (test_and_set_bit_lock(0, &core->busy))
		return;
	core->fault = *fault;
	core->job = spyre_job_get(job);
	queue_work(spyre_system_unbound_wq, &core->work);
}

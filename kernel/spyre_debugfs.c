// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs: /sys/kernel/debug/accel/<device>/
 *
 *	state	the card, its files and queues, running jobs and their start times, and
 *		the reason for which each queue waits in the scheduler and in the arbiter
 *	bos	programs, and the device memory of each file
 *	inject	pending injected faults, see spyre_inject.c
 *
 * For debugging and tests only; the format may change.
 */
#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/spyre_coredump.h>

#include "spyre_arbiter.h"
#include "spyre_card.h"
#include "spyre_coredump.h"
#include "spyre_debugfs.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_inject.h"
#include "spyre_program.h"
#include "spyre_queue.h"

#define SPYRE_INJECT_TEXT 128

static void spyre_show_card(struct spyre_device *spyre, struct seq_file *seq)
{
	struct spyre_stats stats;
	u32 power, temperature;

	spyre_card_read_stats(spyre, &stats);
	spyre_card_read_power(spyre, &power, &temperature);
	seq_printf(seq, "card: %u\nuuid: %pUb\ngeneration: %llu\ncores: %u\nunit: %s\nworkers: %u\n",
		   spyre->index, &spyre->uuid, spyre->generation, spyre->num_cores,
		   spyre_unit_name(spyre->engine.host.unit), spyre->engine.helpers.num);
	seq_printf(seq, "lpddr_total: %llu\nlpddr_used: %llu\n", spyre->lpddr_bytes,
		   spyre_card_lpddr_used(spyre));
	seq_printf(seq, "now_ns: %llu\nbusy_ns: %llu\njobs: %llu\nerrors: %llu\ncycles: %llu\n",
		   ktime_get_ns(), stats.busy_ns, stats.jobs, stats.errors, stats.cost.cycles);
	seq_printf(seq, "rdma_read: %llu\nrdma_written: %llu\n", stats.cost.rdma_read,
		   stats.cost.rdma_written);
	seq_printf(seq, "power_mw: %u\ntemperature_mc: %u\n", power, temperature);
}

static void spyre_show_engine(struct spyre_engine *engine, struct seq_file *seq)
{
	struct spyre_helpers *helpers = &engine->helpers;
	u32 queues, running, awake, sections;
	bool inline_busy, stopped;
	struct spyre_arbiter arb;
	unsigned long idle;

	scoped_guard(spinlock_irq, &engine->lock) {
		arb = engine->arbiter;
		queues = engine->queues;
		running = engine->running;
		inline_busy = engine->inline_busy;
		stopped = !list_empty(&engine->stopped);
	}
	scoped_guard(spinlock_irq, &helpers->lock) {
		awake = helpers->awake;
		idle = helpers->idle;
		sections = list_count_nodes(&helpers->sections);
	}
	seq_printf(seq, "engine: queues %u running %u inline %d stopped %d\n", queues, running,
		   inline_busy, stopped);
	seq_printf(seq, "arbiter: active %u of %u free_cores %#x pool %u of %u waiting %u low %u high %u owed_ns %lld low_first %d\n",
		   arb.num_active, arb.max_active, arb.free, arb.pool_taken, arb.pool, arb.waiting,
		   arb.class[DRM_SPYRE_PRIORITY_LOW].waiting,
		   arb.class[DRM_SPYRE_PRIORITY_HIGH].waiting, arb.owed, arb.low_first);
	seq_printf(seq, "helpers: awake %u of %u idle %#lx open_sections %u\n", awake,
		   helpers->max_awake, idle, sections);
}

static const char *spyre_claim_state_name(u32 state)
{
	static const char * const names[] = {
		[SPYRE_CLAIM_IDLE] = "idle",
		[SPYRE_CLAIM_WAITING] = "waiting",
		[SPYRE_CLAIM_ACTIVE] = "active",
		[SPYRE_CLAIM_LIGHT] = "inline",
		[SPYRE_CLAIM_ENDING] = "ending",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

/* Shows the jobs of @queue in the engine, and those that the scheduler still holds. */
static void spyre_show_jobs(struct spyre_queue *queue, struct seq_file *seq)
{
	const bool depends = READ_ONCE(queue->entity.dependency);
	struct spyre_engine *engine = &queue->spyre->engine;
	u32 state, cores, held, jobs;
	bool begun;
	pid_t pid;

	scoped_guard(spinlock_irq, &engine->lock) {
		state = queue->claim.state;
		cores = queue->claim.cores;
		held = queue->claim.held;
		jobs = list_count_nodes(&queue->jobs);
		begun = queue->job;
		pid = queue->runner && queue->runner->task ? task_pid_nr(queue->runner->task) : 0;
	}
	seq_printf(seq, "    claim %s cores %u held %#x begun %d thread %d next %u; scheduler: credits %d queued %d dependency %d stopped %d\n",
		   spyre_claim_state_name(state), cores, held, begun, pid, jobs,
		   atomic_read(&queue->sched.credit_count),
		   spsc_queue_count(&queue->entity.job_queue),
		   depends, READ_ONCE(queue->sched.pause_submit));
}

static void spyre_show_queue(struct spyre_queue *queue, struct seq_file *seq)
{
	struct drm_spyre_coredump_queue now;

	spyre_queue_describe(queue, &now);
	seq_printf(seq, "  queue %u: priority %u limit_ms %llu submitted %llu completed %llu error %d",
		   now.queue, now.priority, div_u64(queue->timeout_ns, NSEC_PER_MSEC),
		   now.submitted, now.completed, now.error);
	if (now.job)
		seq_printf(seq, " runs %llu cb %u since_ns %llu", now.job, now.cb, now.since_ns);
	seq_putc(seq, '\n');
	spyre_show_jobs(queue, seq);
}

static void spyre_show_file(struct spyre_file *sfile, struct seq_file *seq)
{
	struct drm_spyre_context_info info = {};
	struct spyre_queue *queue;
	unsigned long id;

	spyre_query_context(sfile, &info);
	seq_printf(seq, "client %llu: pid %d comm %*pE state %s memory %llu jobs %llu errors %llu running %d\n",
		   info.id, sfile->pid, (int)strnlen(sfile->comm, sizeof(sfile->comm)), sfile->comm,
		   info.state == DRM_SPYRE_CONTEXT_STALE ? "stale" :
		   info.state == DRM_SPYRE_CONTEXT_FAULTED ? "faulted" : "ok",
		   info.memory_used, info.jobs, info.errors,
		   atomic_read(&sfile->health.running));
	if (info.fault)
		seq_printf(seq, "  fault %s error %d queue %u job %llu cb %u ns %llu\n",
			   spyre_fault_name(info.fault), info.error, info.fault_queue,
			   info.fault_job, info.fault_cb, info.fault_ns);
	xa_lock(&sfile->queues);
	xa_for_each(&sfile->queues, id, queue)
		spyre_show_queue(queue, seq);
	xa_unlock(&sfile->queues);
}

static int state_show(struct seq_file *seq, void *unused)
{
	struct spyre_device *spyre = seq->private;
	struct spyre_file *sfile;

	spyre_show_card(spyre, seq);
	spyre_show_engine(&spyre->engine, seq);
	guard(mutex)(&spyre->files_lock);
	list_for_each_entry(sfile, &spyre->files, node)
		spyre_show_file(sfile, seq);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int bos_show(struct seq_file *seq, void *unused)
{
	struct spyre_device *spyre = seq->private;
	struct spyre_program_object *program;
	struct spyre_file *sfile;
	unsigned long id;

	guard(mutex)(&spyre->files_lock);
	list_for_each_entry(sfile, &spyre->files, node) {
		seq_printf(seq, "client %llu: lpddr %llu\n", sfile->id,
			   (u64)atomic64_read(&sfile->used));
		xa_lock(&sfile->programs);
		xa_for_each(&sfile->programs, id, program)
			seq_printf(seq, "  program %lu: bytes %llu cores %u cycles %llu\n", id,
				   program->base.header->size, program->base.header->num_cores,
				   program->base.cost.cycles);
		xa_unlock(&sfile->programs);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(bos);

static int inject_show(struct seq_file *seq, void *unused)
{
	spyre_inject_show(seq->private, seq);
	return 0;
}

static int inject_open(struct inode *inode, struct file *file)
{
	return single_open(file, inject_show, inode->i_private);
}

static ssize_t inject_write(struct file *file, const char __user *from, size_t count,
			    loff_t *pos)
{
	struct spyre_device *spyre = file_inode(file)->i_private;
	char *text __free(kfree) = NULL;
	int ret;

	if (*pos || count > SPYRE_INJECT_TEXT)
		return -EINVAL;
	text = memdup_user_nul(from, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = spyre_inject_parse(spyre, text);
	return ret ?: count;
}

static const struct file_operations inject_fops = {
	.owner = THIS_MODULE,
	.open = inject_open,
	.read = seq_read,
	.write = inject_write,
	.llseek = seq_lseek,
	.release = single_release,
};

void spyre_debugfs_start(struct spyre_device *spyre)
{
	struct dentry *root = spyre->drm.debugfs_root;

	debugfs_create_file("state", 0400, root, spyre, &state_fops);
	debugfs_create_file("bos", 0400, root, spyre, &bos_fops);
	debugfs_create_file("inject", 0600, root, spyre, &inject_fops);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open and close of the node, and fdinfo of an open one.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "spyre_arbiter.h"
#include "spyre_bo.h"
#include "spyre_charge.h"
#include "spyre_device.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_lpddr.h"
#include "spyre_program.h"
#include "spyre_query.h"
#include "spyre_queue.h"
#include "spyre_reset.h"
#include "spyre_runner.h"
#include "spyre_vm.h"

static void spyre_file_release(struct kref *ref)
{
	struct spyre_file *sfile = container_of(ref, struct spyre_file, ref);

	spyre_lpddr_close(sfile);
	drm_dev_put(&sfile->spyre->drm);
	kfree(sfile);
}

struct spyre_file *spyre_file_get(struct spyre_file *sfile)
{
	kref_get(&sfile->ref);
	return sfile;
}

void spyre_file_put(struct spyre_file *sfile)
{
	kref_put(&sfile->ref, spyre_file_release);
}

int spyre_file_open(struct drm_device *drm, struct drm_file *file)
{
	struct spyre_device *spyre = to_spyre_device(drm);
	struct spyre_file *sfile;
	u32 class;
	int ret;

	sfile = kzalloc(sizeof(*sfile), SPYRE_GFP);
	if (!sfile)
		return -ENOMEM;
	sfile->spyre = spyre;
	ret = spyre_lpddr_open(sfile);
	if (ret) {
		kfree(sfile);
		return ret;
	}
	sfile->vm = spyre_vm_create(spyre);
	if (IS_ERR(sfile->vm)) {
		ret = PTR_ERR(sfile->vm);
		spyre_lpddr_close(sfile);
		kfree(sfile);
		return ret;
	}
	kref_init(&sfile->ref);
	drm_dev_get(drm);
	sfile->id = file->client_id;
	sfile->pid = task_tgid_nr(current);
	get_task_comm(sfile->comm, current);
	spyre_health_init(&sfile->health);
	xa_init_flags(&sfile->programs, XA_FLAGS_ALLOC1);
	xa_init_flags(&sfile->queues, XA_FLAGS_ALLOC1);
	for (class = 0; class < SPYRE_ARB_CLASSES; class++)
		spyre_ctx_sched_init(&sfile->ctx_sched[class], &spyre->engine, class);
	file->driver_priv = sfile;
	spyre_reset_add_file(sfile);
	return 0;
}

void spyre_file_close(struct drm_device *drm, struct drm_file *file)
{
	struct spyre_file *sfile = to_spyre_file(file);
	struct spyre_program_object *program;
	struct spyre_queue *queue;
	unsigned long id;
	u32 class;

	spyre_reset_remove_file(sfile);
	/* Stop all queues before waiting for each of them. */
	spyre_file_kill_queues(sfile, -ECANCELED);
	/*
	 * A job that has just exceeded its time limit may raise its fault while this
	 * waits for it, so the table must not have queues that were put.
	 */
	xa_for_each(&sfile->queues, id, queue) {
		xa_erase(&sfile->queues, id);
		spyre_queue_close(queue);
	}
	xa_destroy(&sfile->queues);
	for (class = 0; class < SPYRE_ARB_CLASSES; class++)
		spyre_ctx_sched_close(&sfile->ctx_sched[class]);
	xa_for_each(&sfile->programs, id, program) {
		xa_erase(&sfile->programs, id);
		spyre_program_put(program);
	}
	xa_destroy(&sfile->programs);
	spyre_vm_destroy(sfile->vm);
	spyre_file_put(sfile);
}

void spyre_file_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct spyre_file *sfile = to_spyre_file(file);
	struct drm_spyre_context_info own = {};
	struct drm_spyre_memory_info memory;

	spyre_query_context(sfile, &own);
	drm_printf(p, "drm-engine-spyre:\t%llu ns\n", own.busy_ns);
	drm_printf(p, "drm-cycles-spyre:\t%llu\n", own.cycles);
#define SHOW(name, key) drm_printf(p, "spyre-" key ":\t%llu\n", own.name);
	SPYRE_COUNTERS(SHOW)
#undef SHOW
	drm_printf(p, "spyre-resets:\t%llu\n", own.resets);
	drm_printf(p, "spyre-pinned:\t%llu KiB\n", (u64)atomic64_read(&sfile->pinned) >> 10);

	spyre_bo_show_fdinfo(p, file);

	/* Keys above count handles; these are DEV_QUERY's numbers. */
	spyre_query_memory(sfile, &memory);
	drm_printf(p, "spyre-capacity-lpddr5:\t%llu KiB\n", memory.total >> 10);
	drm_printf(p, "spyre-used-lpddr5:\t%llu KiB\n", memory.used >> 10);
	drm_printf(p, "spyre-free-lpddr5:\t%llu KiB\n", memory.free >> 10);
	drm_printf(p, "spyre-owned-lpddr5:\t%llu KiB\n", memory.context_used >> 10);
	drm_printf(p, "spyre-peak-lpddr5:\t%llu KiB\n", memory.context_peak >> 10);
}

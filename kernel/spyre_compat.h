/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Late 6.12 stable kernels took newer scheduler signatures.  Kbuild looks at
 * the headers, not at the version, and says which ones there are.
 */
#ifndef SPYRE_COMPAT_H
#define SPYRE_COMPAT_H

#include <drm/gpu_scheduler.h>

#ifndef SPYRE_HAVE_SCHED_INIT_ARGS
struct drm_sched_init_args {
	const struct drm_sched_backend_ops *ops;
	struct workqueue_struct *submit_wq;
	struct workqueue_struct *timeout_wq;
	u32 num_rqs;
	u32 credit_limit;
	unsigned int hang_limit;
	long timeout;
	atomic_t *score;
	const char *name;
	struct device *dev;
};

static inline int spyre_sched_init(struct drm_gpu_scheduler *sched,
				   const struct drm_sched_init_args *args)
{
	return drm_sched_init(sched, args->ops, args->submit_wq, args->num_rqs,
			      args->credit_limit, args->hang_limit, args->timeout,
			      args->timeout_wq, args->score, args->name, args->dev);
}
#else
#define spyre_sched_init drm_sched_init
#endif

#ifndef SPYRE_HAVE_SCHED_CLIENT_ID
static inline int spyre_sched_job_init(struct drm_sched_job *job,
				       struct drm_sched_entity *entity, u32 credits,
				       void *owner, u64 client)
{
	return drm_sched_job_init(job, entity, credits, owner);
}
#else
#define spyre_sched_job_init drm_sched_job_init
#endif

/* pfn_t went away, with its header. */
#ifdef SPYRE_HAVE_PFN_T
#include <linux/mm.h>
#include <linux/pfn_t.h>
#define spyre_vmf_insert_pfn_pmd(vmf, pfn, write) \
	vmf_insert_pfn_pmd(vmf, pfn_to_pfn_t(pfn), write)
#else
#define spyre_vmf_insert_pfn_pmd vmf_insert_pfn_pmd
#endif

#endif

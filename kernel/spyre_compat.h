/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels, from 6.12 to the newest that docs/testing.md
 * names.  Distributions backport newer interfaces to older kernels, so Kbuild
 * examines the headers instead of the version, and defines SPYRE_HAVE_*;
 * interfaces that are macros are tested here.
 */
#ifndef SPYRE_COMPAT_H
#define SPYRE_COMPAT_H

#include <linux/io_uring/cmd.h>
#include <linux/mm.h>

#include <drm/drm_drv.h>
#include <drm/drm_gpuvm.h>
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

#ifdef SPYRE_HAVE_SCHED_START_ERRNO
#define spyre_sched_start(sched) drm_sched_start(sched, 0)
#else
#define spyre_sched_start drm_sched_start
#endif

#ifdef SPYRE_HAVE_SCHED_STAT_RESET
#define SPYRE_SCHED_STAT_RESET DRM_GPU_SCHED_STAT_RESET
#else
#define SPYRE_SCHED_STAT_RESET DRM_GPU_SCHED_STAT_NOMINAL
#endif

/* The feature flag of drivers with address spaces, which newer kernels lack. */
#ifdef SPYRE_HAVE_DRIVER_GEM_GPUVA
#define SPYRE_DRIVER_GEM_GPUVA DRIVER_GEM_GPUVA
#else
#define SPYRE_DRIVER_GEM_GPUVA 0
#endif

static inline int spyre_gpuvm_sm_map(struct drm_gpuvm *gpuvm, void *priv, u64 va, u64 range,
				     struct drm_gem_object *obj, u64 offset)
{
#ifdef SPYRE_HAVE_GPUVM_MAP_REQ
	const struct drm_gpuvm_map_req req = {
		.map = { .va = { va, range }, .gem = { .obj = obj, .offset = offset } },
	};

	return drm_gpuvm_sm_map(gpuvm, priv, &req);
#else
	return drm_gpuvm_sm_map(gpuvm, priv, va, range, obj, offset);
#endif
}

/* Newer kernels have one array of all pages. */
#ifndef nth_page
#define nth_page(page, n) ((page) + (n))
#endif

#ifdef SPYRE_HAVE_URING_IMPORT_FLAGS
#define spyre_uring_import_fixed io_uring_cmd_import_fixed
#else
#define spyre_uring_import_fixed(address, bytes, rw, iter, cmd, issue_flags) \
	((void)(issue_flags), io_uring_cmd_import_fixed(address, bytes, rw, iter, cmd))
#endif

#ifdef SPYRE_HAVE_URING_DONE32
#define spyre_uring_done io_uring_cmd_done32
#else
#define spyre_uring_done io_uring_cmd_done
#endif

#ifndef io_uring_sqe128_cmd
#define io_uring_sqe128_cmd(sqe, type) ((const type *)(sqe)->cmd)
#endif

/*
 * Some kernels copy the 128 bytes of an SQE but continue to read the ring, which
 * user space may have overwritten, when they issue a request again after -EAGAIN.
 * This makes the request refer to the copy.
 */
#ifndef SPYRE_HAVE_URING_STABLE_SQE
static inline void spyre_uring_keep_sqe(struct io_uring_cmd *cmd)
{
	struct io_uring_sqe *copy = cmd_to_io_kiocb(cmd)->async_data;

	if (cmd->sqe == copy)
		return;
	memcpy(copy, cmd->sqe, 2 * sizeof(*copy));
	cmd->sqe = copy;
}
#else
#define spyre_uring_keep_sqe(cmd) ((void)(cmd))
#endif

/* Makes @name, which io_uring_cmd_complete_in_task() takes, of @fn(cmd, issue_flags). */
#ifdef SPYRE_HAVE_URING_TW_REQ
#define SPYRE_URING_TASK_WORK(name, fn)						\
static void name(struct io_tw_req req, io_tw_token_t token)			\
{										\
	fn(io_uring_cmd_from_tw(req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);	\
}
#else
#define SPYRE_URING_TASK_WORK(name, fn)						\
static void name(struct io_uring_cmd *cmd, unsigned int issue_flags)		\
{										\
	fn(cmd, issue_flags);							\
}
#endif

#if __has_include(<linux/folio_batch.h>)
#include <linux/folio_batch.h>
#else
#include <linux/pagevec.h>
#endif

#ifdef SPYRE_HAVE_SHMEM_VMA_FLAGS
#define SPYRE_SHMEM_NORESERVE mk_vma_flags(VMA_NORESERVE_BIT)
#else
#define SPYRE_SHMEM_NORESERVE VM_NORESERVE
#endif

#ifdef SPYRE_HAVE_VMA_IS_COW
#define spyre_vma_is_cow(vma) vma_is_cow_mapping(vma)
#else
#define spyre_vma_is_cow(vma) is_cow_mapping((vma)->vm_flags)
#endif

/* Caches the mapping of an attachment; kernels without this flag map it at each request. */
#ifdef SPYRE_HAVE_DMA_BUF_CACHE_SGT
#define SPYRE_DMA_BUF_CACHE_SGT .cache_sgt_mapping = true,
#else
#define SPYRE_DMA_BUF_CACHE_SGT
#endif

/* Newer kernels report that a work is queued by the older name. */
#ifdef SPYRE_HAVE_SYSTEM_DFL_WQ
#define spyre_system_unbound_wq system_dfl_wq
#else
#define spyre_system_unbound_wq system_unbound_wq
#endif

/* Newer kernels warn of a workqueue that is neither bound nor unbound by name. */
#ifdef SPYRE_HAVE_WQ_PERCPU
#define SPYRE_WQ_BOUND WQ_PERCPU
#else
#define SPYRE_WQ_BOUND 0
#endif

/* The name became a string. */
#ifdef SPYRE_HAVE_IMPORT_NS_STRING
#define SPYRE_IMPORT_NS(name) MODULE_IMPORT_NS(#name)
#else
#define SPYRE_IMPORT_NS(name) MODULE_IMPORT_NS(name)
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

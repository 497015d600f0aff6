// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring: one SQE is one submission, decoded in place and queued without
 * switching threads; its CQE is posted when the job is done, or (QUEUE) at once.
 *
 * A request is completed exactly once, by the job's fence or at once on an
 * error.  A request that would have to wait for another driver's fences is issued
 * again by an io_uring worker, which may sleep.  When a ring ends with work in
 * flight, the queues of that work are killed, so that its requests end soon.
 */
#include <linux/dma-fence.h>
#include <linux/io_uring/cmd.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/spyre_accel.h>

#include "spyre_charge.h"
#include "spyre_compat.h"
#include "spyre_queue.h"
#include "spyre_submit.h"
#include "spyre_uring.h"

/* The command area of a 128-byte SQE. */
struct spyre_uring_area {
	u8 bytes[80];
};

static_assert(sizeof(struct drm_spyre_submit) <= sizeof(struct spyre_uring_area));

/* A submission in flight; freed under the ring's lock, when its request is completed. */
struct spyre_uring_job {
	struct dma_fence_cb base;
	struct io_uring_cmd *cmd;
	struct spyre_submitted submitted;
};

struct spyre_uring_pdu {
	struct spyre_uring_job *job;
	/* of the submission; valid during it */
	unsigned int issue_flags;
};

unsigned int spyre_uring_issue_flags(struct io_uring_cmd *cmd)
{
	return io_uring_cmd_to_pdu(cmd, struct spyre_uring_pdu)->issue_flags;
}

static void spyre_uring_job_free(struct spyre_uring_job *job)
{
	dma_fence_put(job->submitted.done);
	spyre_queue_put(job->submitted.queue);
	kfree(job);
}

/* Runs in the task that submitted, or that completes requests for it. */
static void spyre_uring_finish(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct spyre_uring_pdu *pdu = io_uring_cmd_to_pdu(cmd, struct spyre_uring_pdu);
	struct spyre_uring_job *job = pdu->job;
	const int status = job->submitted.done->error;
	const u64 cycles = status ? 0 : job->submitted.cycles;

	pdu->job = NULL;
	spyre_uring_job_free(job);
	spyre_uring_done(cmd, status, cycles, issue_flags);
}

SPYRE_URING_TASK_WORK(spyre_uring_task_work, spyre_uring_finish)

static void spyre_uring_fence_signaled(struct dma_fence *fence, struct dma_fence_cb *base)
{
	struct spyre_uring_job *job = container_of(base, struct spyre_uring_job, base);

	io_uring_cmd_complete_in_task(job->cmd, spyre_uring_task_work);
}

/* Called when the ring or the task ends: its work is stopped, so that it need not wait. */
static int spyre_uring_cancel(struct io_uring_cmd *cmd)
{
	struct spyre_uring_pdu *pdu = io_uring_cmd_to_pdu(cmd, struct spyre_uring_pdu);

	if (pdu->job)
		spyre_queue_kill(pdu->job->submitted.queue, -ECANCELED);
	return 0;
}

/* User space may still write the SQE, so it is read only once. */
static int spyre_uring_args(struct io_uring_cmd *cmd, struct drm_spyre_submit *args)
{
	const struct spyre_uring_area area =
		*io_uring_sqe128_cmd(cmd->sqe, struct spyre_uring_area);

	memcpy(args, area.bytes, sizeof(*args));
	/* As in array elements, the part that this module does not know must be 0. */
	return memchr_inv(area.bytes + sizeof(*args), 0, sizeof(area) - sizeof(*args)) ?
		-E2BIG : 0;
}

static int spyre_uring_refuse(struct io_uring_cmd *cmd, int ret, u32 error_cb,
			      unsigned int issue_flags)
{
	/* io_uring issues the request again in a context that may sleep. */
	if (ret == -EAGAIN && issue_flags & IO_URING_F_NONBLOCK) {
		spyre_uring_keep_sqe(cmd);
		return ret;
	}
	/* A request has no system call that could be restarted. */
	if (ret == -ERESTARTSYS)
		ret = -EINTR;
	spyre_uring_done(cmd, ret, error_cb, issue_flags);
	return -EIOCBQUEUED;
}

static int spyre_uring_submit(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct spyre_uring_pdu *pdu = io_uring_cmd_to_pdu(cmd, struct spyre_uring_pdu);
	struct io_uring_cmd *fixed = cmd->flags & IORING_URING_CMD_FIXED ? cmd : NULL;
	struct drm_spyre_submit args;
	struct spyre_uring_job *job;
	int ret;

	ret = spyre_uring_args(cmd, &args);
	if (ret)
		return ret;
	job = kzalloc(sizeof(*job), SPYRE_GFP);
	if (!job)
		return -ENOMEM;
	job->cmd = cmd;
	pdu->issue_flags = issue_flags;
	ret = spyre_submit(cmd->file->private_data, &args, fixed,
			   issue_flags & IO_URING_F_NONBLOCK, &job->submitted);
	if (ret) {
		kfree(job);
		return spyre_uring_refuse(cmd, ret, args.error_cb, issue_flags);
	}
	pdu->job = job;
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	ret = dma_fence_add_callback(job->submitted.done, &job->base, spyre_uring_fence_signaled);
	if (!ret)
		return -EIOCBQUEUED;
	/* The job is done already.  Cancellation reads the job under the ring's lock. */
	if (issue_flags & IO_URING_F_UNLOCKED)
		io_uring_cmd_complete_in_task(cmd, spyre_uring_task_work);
	else
		spyre_uring_finish(cmd, issue_flags);
	return -EIOCBQUEUED;
}

/* As with the ioctl, only the queue holds the job, and the request is complete. */
static int spyre_uring_queue(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct drm_spyre_submit args;
	int ret;

	if (cmd->flags & IORING_URING_CMD_FIXED)
		return -EINVAL;
	ret = spyre_uring_args(cmd, &args);
	if (ret)
		return ret;
	ret = spyre_submit(cmd->file->private_data, &args, NULL, issue_flags & IO_URING_F_NONBLOCK,
			   NULL);
	if (ret)
		return spyre_uring_refuse(cmd, ret, args.error_cb, issue_flags);
	spyre_uring_done(cmd, 0, 0, issue_flags);
	return -EIOCBQUEUED;
}

static int spyre_uring_issue(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	switch (cmd->cmd_op) {
	case DRM_SPYRE_URING_SUBMIT:
		return spyre_uring_submit(cmd, issue_flags);
	case DRM_SPYRE_URING_QUEUE:
		return spyre_uring_queue(cmd, issue_flags);
	default:
		return -ENOTTY;
	}
}

int spyre_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct drm_file *file = cmd->file->private_data;

	if (issue_flags & IO_URING_F_CANCEL)
		return spyre_uring_cancel(cmd);
	if (!(issue_flags & IO_URING_F_SQE128))
		return -EINVAL;
	/* As for an ioctl: spyre_submit() enters the device where it publishes the job. */
	if (drm_dev_is_unplugged(file->minor->dev))
		return -ENODEV;
	return spyre_uring_issue(cmd, issue_flags);
}

// SPDX-License-Identifier: MIT
/*
 * Submission by io_uring: IORING_OP_URING_CMD with DRM_SPYRE_URING_QUEUE, which
 * completes as soon as the control blocks are queued. So the caller learns of a
 * refusal at once, as with the ioctl, and the ring never holds work: threads may
 * end and rings may be closed while the card works.
 *
 * Each queue has a ring. The runtime serialises the submissions of a queue, so
 * the ring needs no lock and streams do not wait for each other. The ring's
 * memory is not mapped in a child of fork().
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/backend/drm.h"
#include "libspyre/base/environment.h"
#include "libspyre/base/error.h"

static void choose(struct spyre_drm_card *card, spyre_submit_path path, const char *reason)
{
	card->base.submit_path = path;
	snprintf(card->base.submit_reason, sizeof(card->base.submit_reason), "%s", reason);
}

#ifdef HAVE_LIBURING
#include <liburing.h>

#include "libspyre/base/log.h"

/* A submission is one entry, and a queue has one submission at a time. */
#define RING_ENTRIES 4
/* Time in ms that the kernel's thread polls for entries before it sleeps. */
#define SQPOLL_IDLE_MS 2
/* Polls of the ring before sleeping, if the kernel's thread completes the entries. */
#define SPIN_ROUNDS 2000

struct spyre_drm_ring {
	struct io_uring ring;
	bool polled;
};

/* Returns 0 or a positive errno. With @share, polled rings share that ring's kernel thread. */
static int ring_open(bool polled, const struct spyre_drm_ring *share, struct spyre_drm_ring **made)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32,
	};
	struct spyre_drm_ring *ring = calloc(1, sizeof(*ring));
	int ret;

	if (!ring)
		return ENOMEM;
	if (polled) {
		params.flags |= IORING_SETUP_SQPOLL;
		params.sq_thread_idle = SQPOLL_IDLE_MS;
	}
	if (polled && share) {
		params.flags |= IORING_SETUP_ATTACH_WQ;
		params.wq_fd = share->ring.ring_fd;
	}
	ret = io_uring_queue_init_params(RING_ENTRIES, &ring->ring, &params);
	if (ret) {
		free(ring);
		return -ret;
	}
	ring->polled = polled;
	io_uring_ring_dontfork(&ring->ring);
	*made = ring;
	return 0;
}

void spyre_drm_ring_close(struct spyre_drm_ring *ring)
{
	if (!ring)
		return;
	io_uring_queue_exit(&ring->ring);
	free(ring);
}

static struct io_uring_cqe *ring_peek(struct spyre_drm_ring *ring)
{
	struct io_uring_cqe *cqe = NULL;

	return io_uring_peek_cqe(&ring->ring, &cqe) ? NULL : cqe;
}

/* Waits for the completion of the one submitted entry. */
static struct io_uring_cqe *ring_reap(struct spyre_drm_ring *ring)
{
	const int rounds = ring->polled ? SPIN_ROUNDS : 1;
	struct io_uring_cqe *cqe = NULL;

	for (int i = 0; i < rounds; i++) {
		cqe = ring_peek(ring);
		if (cqe)
			return cqe;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
	}
	while (io_uring_wait_cqe(&ring->ring, &cqe) == -EINTR)
		;
	return cqe;
}

/*
 * Returns 0 or a positive errno. *@seen is false if the kernel did not process
 * the submission; the ring is then unusable.
 */
static int ring_submit(struct spyre_drm_ring *ring, int fd, struct drm_spyre_submit *args,
		      bool *seen)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);
	struct io_uring_cqe *cqe;
	int ret;

	*seen = false;
	/* A polling thread posts the completion before it releases the entry. */
	if (!sqe && ring->polled) {
		io_uring_sqring_wait(&ring->ring);
		sqe = io_uring_get_sqe(&ring->ring);
	}
	if (!sqe)
		return EBUSY;
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = DRM_SPYRE_URING_QUEUE;
	memcpy(sqe->cmd, args, sizeof(*args));
	do {
		ret = io_uring_submit(&ring->ring);
	} while (ret == -EINTR);
	if (ret < 0)
		return -ret;
	cqe = ring_reap(ring);
	if (!cqe)
		return EIO;
	*seen = true;
	ret = -cqe->res;
	args->error_cb = ret ? (uint32_t)cqe->big_cqe[0] : UINT32_MAX;
	io_uring_cqe_seen(&ring->ring, cqe);
	return ret;
}

/* A module that has the command refuses a submission to a queue that cannot exist. */
static int probe(struct spyre_drm_card *card, struct spyre_drm_ring *ring)
{
	struct drm_spyre_submit args = { .queue_id = UINT32_MAX };
	bool seen;
	int error = ring_submit(ring, card->fd, &args, &seen);

	if (seen && error == ENOENT)
		return 0;
	return error ? error : EPROTO;
}

static const char *why_not(int error, char *text, size_t size)
{
	switch (error) {
	case ENOSYS:
		return "the kernel has no io_uring, or seccomp hides it";
	case EPERM:
	case EACCES:
		return "io_uring is forbidden here (sysctl kernel.io_uring_disabled, or seccomp)";
	case EINVAL:
	case ENOTTY:
	case EOPNOTSUPP:
		return "the kernel or the module is older than io_uring commands of version 1.2";
	case ENOMEM:
		return "no memory for a ring (ulimit -l, or the memory cgroup)";
	default:
		snprintf(text, size, "a ring does not work: %s (errno %d)", strerror(error), error);
		return text;
	}
}

static spyre_status forced(struct spyre_drm_card *card, bool polled)
{
	const char *name = polled ? "sqpoll" : "uring";
	char text[96], reason[64];
	int error = ring_open(polled, NULL, &card->ring);

	if (!error)
		error = probe(card, card->ring);
	if (error) {
		spyre_drm_ring_close(card->ring);
		card->ring = NULL;
		return spyre_error(SPYRE_ERROR_CONFIGURATION,
				   "cannot use SPYRE_SUBMIT=%s on %s: %s; unset it", name,
				   card->base.properties.node,
				   why_not(error, text, sizeof(text)));
	}
	/* Each queue opens its own ring, so this one is needed only for its polling thread. */
	if (!polled) {
		spyre_drm_ring_close(card->ring);
		card->ring = NULL;
	}
	snprintf(reason, sizeof(reason), "SPYRE_SUBMIT=%s", name);
	choose(card, polled ? SPYRE_SUBMIT_SQPOLL : SPYRE_SUBMIT_URING, reason);
	return SPYRE_SUCCESS;
}

int spyre_drm_ring_open(struct spyre_drm_card *card, struct spyre_drm_ring **ring)
{
	const spyre_submit_path path = card->base.submit_path;

	*ring = NULL;
	if (path != SPYRE_SUBMIT_URING && path != SPYRE_SUBMIT_SQPOLL)
		return 0;
	return ring_open(path == SPYRE_SUBMIT_SQPOLL, card->ring, ring);
}

bool spyre_drm_ring_submit(struct spyre_drm_queue *queue, struct drm_spyre_submit *args, int *error)
{
	const int fd = spyre_drm_card(queue->base.card)->fd;
	bool seen;

	if (!queue->ring)
		return false;
	/* Retries as drmIoctl() does. */
	do {
		*error = ring_submit(queue->ring, fd, args, &seen);
	} while (seen && (*error == EINTR || *error == EAGAIN));
	if (seen)
		return true;
	spyre_log(SPYRE_LOG_WARN, "queue %u: its ring failed: %s (errno %d); using the ioctl",
		  queue->id, strerror(*error), *error);
	spyre_drm_ring_close(queue->ring);
	queue->ring = NULL;
	return false;
}

#else /* !HAVE_LIBURING */

static spyre_status forced(struct spyre_drm_card *card, bool polled)
{
	return spyre_error(SPYRE_ERROR_CONFIGURATION,
			   "%s: SPYRE_SUBMIT=%s: libspyre was built without liburing; unset it",
			   card->base.properties.node, polled ? "sqpoll" : "uring");
}

int spyre_drm_ring_open(struct spyre_drm_card *card, struct spyre_drm_ring **ring)
{
	*ring = NULL;
	return 0;
}

bool spyre_drm_ring_submit(struct spyre_drm_queue *queue, struct drm_spyre_submit *args, int *error)
{
	return false;
}

void spyre_drm_ring_close(struct spyre_drm_ring *ring)
{
}

#endif

spyre_status spyre_drm_submit_choose(struct spyre_drm_card *card)
{
	enum spyre_env_submit want;

	TRY(spyre_env_submit(&want));
	if (want == SPYRE_ENV_URING || want == SPYRE_ENV_SQPOLL)
		return forced(card, want == SPYRE_ENV_SQPOLL);
	/* A single submission is faster by ioctl than by io_uring (docs/performance.md). */
	choose(card, SPYRE_SUBMIT_IOCTL, want == SPYRE_ENV_IOCTL ? "SPYRE_SUBMIT=ioctl" :
	       "the faster one for single submissions");
	return SPYRE_SUCCESS;
}

/* SPDX-License-Identifier: MIT */
/*
 * The drm backend: libspyre on /dev/accel/accelN of spyre_vdev.ko.
 *
 *	drm_card.c	open, close, memory totals, the table of functions
 *	drm_memory.c	device ranges, pinned host memory
 *	drm_program.c	programs
 *	drm_encode.c	commands -> control blocks; knows no system call
 *	drm_queue.c	queues: create, destroy, wait, completed
 *	drm_submit.c	submissions; DRM_IOCTL_SPYRE_SUBMIT
 *	drm_bounce.c	copies of memory that cannot be pinned
 *	drm_uring.c	the same by io_uring, and which of the two
 *	drm_reset.c	state and reset of a context, reset of a card
 *	drm_range.c	ordered table of address ranges
 *	drm_error.c	errno -> status and text
 *	base/sysfs.c	enumeration
 */
#ifndef SPYRE_DRM_H
#define SPYRE_DRM_H

#include <pthread.h>
#include <stdatomic.h>

#include "include/uapi/drm/spyre_accel.h"
#include "libspyre/backend/backend.h"

/* Limits of DRM_IOCTL_SPYRE_SUBMIT. */
#define SPYRE_DRM_MAX_CBS SPYRE_MAX_COMMANDS
#define SPYRE_DRM_MAX_SYNCS 64u

/* Ranges [start, start + bytes), disjoint, ascending, each backed by a GEM handle. */
struct spyre_drm_range {
	uint64_t start;
	uint64_t bytes;
	uint32_t handle;
};

struct spyre_drm_ranges {
	struct spyre_drm_range *range;
	size_t count;
	size_t capacity;
};

/* Makes room for one more, so that the next insert cannot fail. */
bool spyre_drm_ranges_reserve(struct spyre_drm_ranges *ranges);
void spyre_drm_ranges_insert(struct spyre_drm_ranges *ranges, struct spyre_drm_range range);
/* The range that contains @address; NULL if none does. */
const struct spyre_drm_range *spyre_drm_ranges_find(const struct spyre_drm_ranges *ranges,
						    uint64_t address);
/* Takes out the range that starts at @start; false if there is none. */
bool spyre_drm_ranges_remove(struct spyre_drm_ranges *ranges, uint64_t start,
			     struct spyre_drm_range *removed);
void spyre_drm_ranges_fini(struct spyre_drm_ranges *ranges);

struct spyre_drm_ring;

struct spyre_drm_card {
	struct spyre_card base;
	int fd;
	/* The card's, when the node was opened. */
	uint64_t generation;
	/* SQPOLL: the ring whose thread serves those of the queues. */
	struct spyre_drm_ring *ring;
	/*
	 * A file has one handle for a buffer, however often it is imported: the
	 * lock also covers that the last of its ranges closes it.
	 */
	pthread_mutex_t device_lock;
	bool imports;
	struct spyre_drm_ranges device;		/* device addresses */
	/* Read for each DMA of a submission, written by host_alloc and _free. */
	pthread_rwlock_t host_lock;
	struct spyre_drm_ranges host;		/* addresses of this process */
	_Atomic size_t host_count;
	/* The kernel has refused the high class, and the log says so. */
	atomic_bool high_refused;
};

struct spyre_drm_program {
	struct spyre_program_handle base;
	uint32_t handle;
};

struct spyre_drm_queue {
	struct spyre_queue base;
	uint32_t id;
	uint32_t syncobj;
	uint32_t result_handle;
	uint32_t timeout_ms;
	/* NULL: the ioctl carries its submissions. */
	struct spyre_drm_ring *ring;
	/* Highest point known to be reached, highest submitted. */
	_Atomic uint64_t completed;
	_Atomic uint64_t submitted;
	/*
	 * Where the last result of recent points lies: entry point %
	 * SPYRE_QUEUE_RESULTS holds point * SPYRE_QUEUE_RESULTS + slot. Lets
	 * wait() and completed() see a finished point without a system call.
	 */
	_Atomic uint64_t last_result[SPYRE_QUEUE_RESULTS];
	/* Arguments of the submission under way; submissions are serialised. */
	struct drm_spyre_cb cbs[SPYRE_DRM_MAX_CBS];
	struct drm_spyre_sync syncs[SPYRE_DRM_MAX_SYNCS];
};

static inline struct spyre_drm_card *spyre_drm_card(struct spyre_card *card)
{
	return (struct spyre_drm_card *)card;
}

static inline struct spyre_drm_queue *spyre_drm_queue(struct spyre_queue *queue)
{
	return (struct spyre_drm_queue *)queue;
}

/*
 * Leaves a text for a failed system call on the card: "<what>: <errno text>;
 * <remedy>" with the node in front, and returns the status that fits @error (a
 * positive errno).
 */
spyre_status spyre_drm_error(struct spyre_drm_card *card, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));

/* drm_memory.c */
spyre_status spyre_drm_mem_map(struct spyre_card *card, uint64_t va, uint64_t bytes);
void spyre_drm_mem_unmap(struct spyre_card *card, uint64_t va, uint64_t bytes);
spyre_status spyre_drm_mem_export(struct spyre_card *card, uint64_t va, int *fd);
spyre_status spyre_drm_mem_import(struct spyre_card *card, uint64_t va, uint64_t bytes, int fd,
				  uint64_t offset);
spyre_status spyre_drm_host_alloc(struct spyre_card *card, size_t bytes, void **address);
void spyre_drm_host_free(struct spyre_card *card, void *address, size_t bytes);
/* A host BO of its own, mapped; @bytes a multiple of the page size. */
spyre_status spyre_drm_host_bo(struct spyre_drm_card *card, size_t bytes, void **address,
			       uint32_t *handle);
void spyre_drm_gem_close(struct spyre_drm_card *card, uint32_t handle);
/* True if [address, address + bytes) lies in one pinned host allocation. */
bool spyre_drm_host_lookup(struct spyre_drm_card *card, const void *address, uint64_t bytes,
			   uint32_t *handle, uint64_t *offset);

/* drm_program.c */
spyre_status spyre_drm_program_create(struct spyre_card *card, const void *image, size_t bytes,
				      struct spyre_program_handle **program,
				      struct spyre_verify_error *why);
void spyre_drm_program_destroy(struct spyre_program_handle *program);

/* drm_encode.c: fills @cb from @command; its pointers are those of @command. */
spyre_status spyre_drm_encode(struct spyre_drm_card *card, const struct spyre_command *command,
			      uint32_t index, struct drm_spyre_cb *cb);
/* Name of a command for error texts, "DMA H2D"; never NULL. */
const char *spyre_drm_command_name(const struct spyre_command *command);

/* drm_queue.c */
spyre_status spyre_drm_queue_create(struct spyre_card *card, int priority,
				    struct spyre_queue **queue);
void spyre_drm_queue_destroy(struct spyre_queue *queue);
spyre_status spyre_drm_wait(struct spyre_queue *queue, uint64_t point, int64_t deadline_ns);
uint64_t spyre_drm_completed(struct spyre_queue *queue);
spyre_status spyre_drm_queue_renew(struct spyre_queue *queue, int priority);

/* drm_reset.c */
/* Generation of the card now; false if it cannot be asked. */
bool spyre_drm_generation(struct spyre_drm_card *card, uint64_t *generation);
bool spyre_drm_is_stale(struct spyre_drm_card *card);
spyre_status spyre_drm_state(struct spyre_card *card, struct spyre_card_state *state);
spyre_status spyre_drm_context_reset(struct spyre_card *card);
/* On a card that was opened for it. */
spyre_status spyre_drm_reset(struct spyre_drm_card *card, uint64_t *generation);

/* drm_bounce.c: host spans of a submission in a host BO, while they are copied. */
struct spyre_drm_bounce {
	uint8_t *map;
	uint64_t bytes;
	uint32_t handle;
	bool out;	/* the card writes */
};

/*
 * For a submission of which control block @refused was refused because its
 * memory cannot be pinned: lets all use a host BO instead. false, and nothing
 * has changed, if that does not help.
 */
bool spyre_drm_bounce_begin(struct spyre_drm_queue *queue,
			    const struct spyre_submission *submission, uint32_t refused,
			    struct spyre_drm_bounce *bounce);
/* After the second try. Waits for the card if it writes. */
void spyre_drm_bounce_end(struct spyre_drm_queue *queue,
			  const struct spyre_submission *submission,
			  struct spyre_drm_bounce *bounce, bool submitted);

/* drm_submit.c */
spyre_status spyre_drm_submit(struct spyre_queue *queue,
			      const struct spyre_submission *submission);

/* drm_uring.c */
/* Picks the way of submission and notes it in the card's properties. */
spyre_status spyre_drm_submit_choose(struct spyre_drm_card *card);
/* A queue's ring, NULL if the card's way takes none; 0 or a positive errno. */
int spyre_drm_ring_open(struct spyre_drm_card *card, struct spyre_drm_ring **ring);
void spyre_drm_ring_close(struct spyre_drm_ring *ring);
/* False: not by this way, ask the ioctl. Else *@error is 0 or a positive errno. */
bool spyre_drm_ring_carry(struct spyre_drm_queue *queue, struct drm_spyre_submit *args,
			  int *error);

#endif /* SPYRE_DRM_H */

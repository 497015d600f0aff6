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
 *	drm_uring.c	submissions by io_uring, and the choice between the two paths
 *	drm_reset.c	state and reset of a context, reset of a card
 *	drm_range.c	ordered table of address ranges
 *	drm_foreign.c	buffers and timelines of other contexts of this process
 *	drm_error.c	errno -> status and text
 *	base/sysfs.c	enumeration
 */
#ifndef SPYRE_DRM_H
#define SPYRE_DRM_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

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
	uint64_t offset;	/* of @start in the buffer */
};

struct spyre_drm_ranges {
	struct spyre_drm_range *range;
	size_t count;
	size_t capacity;
};

/* Reserves capacity for one more range, so that the next insert cannot fail. */
bool spyre_drm_ranges_reserve(struct spyre_drm_ranges *ranges);
void spyre_drm_ranges_insert(struct spyre_drm_ranges *ranges, struct spyre_drm_range range);
/* The range that contains @address; NULL if none does. */
const struct spyre_drm_range *spyre_drm_ranges_find(const struct spyre_drm_ranges *ranges,
						    uint64_t address);
/* Removes the range that starts at @start; false if there is none. */
bool spyre_drm_ranges_remove(struct spyre_drm_ranges *ranges, uint64_t start,
			     struct spyre_drm_range *removed);
void spyre_drm_ranges_fini(struct spyre_drm_ranges *ranges);

struct spyre_drm_ring;

/* A buffer or syncobj of another context's file. */
struct spyre_drm_foreign {
	const void *owner;	/* the card of a buffer, the queue of a syncobj */
	bool is_buffer;
	uint32_t theirs;	/* handle in the owner's file */
	uint32_t ours;
};

struct spyre_drm_card {
	struct spyre_card base;
	TAILQ_ENTRY(spyre_drm_card) link;
	int fd;
	/* Generation of the card when the node was opened. */
	uint64_t generation;
	/* With SQPOLL, the ring whose kernel thread also serves the queues' rings. */
	struct spyre_drm_ring *ring;
	/*
	 * Protects @device and @foreign. A file has one handle per buffer, however often
	 * it is imported, so the last user of a handle closes it under this lock.
	 */
	pthread_mutex_t device_lock;
	bool imports;
	struct spyre_drm_foreign *foreign;
	size_t num_foreign;
	size_t max_foreign;
	struct spyre_drm_ranges device;		/* device addresses */
	/* Protects @host: read for each DMA of a submission, written by host_alloc and _free. */
	pthread_rwlock_t host_lock;
	struct spyre_drm_ranges host;		/* addresses of this process */
	_Atomic size_t host_count;
	/* The kernel has refused the high priority class; the warning is logged once. */
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
	/* NULL if the queue submits by ioctl. */
	struct spyre_drm_ring *ring;
	/* Highest point known to be reached, and highest submitted. */
	_Atomic uint64_t completed;
	_Atomic uint64_t submitted;
	/*
	 * Locates the last result of recent points: entry point %
	 * SPYRE_QUEUE_RESULTS holds point * SPYRE_QUEUE_RESULTS + slot, so that
	 * wait() and completed() see a finished point without a system call.
	 */
	_Atomic uint64_t last_result[SPYRE_QUEUE_RESULTS];
	/* Arguments of the current submission; the runtime serialises submissions. */
	struct drm_spyre_cb cbs[SPYRE_DRM_MAX_CBS];
	struct drm_spyre_sync syncs[SPYRE_DRM_MAX_SYNCS];
	/* SPYRE_DRM_MAX_CBS copies between cards, one per control block; NULL until the first. */
	struct drm_spyre_peer_copy *peers;
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
/* Creates and maps a host BO; @bytes is a multiple of the page size. */
spyre_status spyre_drm_host_bo(struct spyre_drm_card *card, size_t bytes, void **address,
			       uint32_t *handle);
void spyre_drm_gem_close(struct spyre_drm_card *card, uint32_t handle);
/* True if [address, address + bytes) lies in one pinned host allocation. */
bool spyre_drm_host_lookup(struct spyre_drm_card *card, const void *address, uint64_t bytes,
			   uint32_t *handle, uint64_t *offset);

/* drm_program.c */
spyre_status spyre_drm_program_create(struct spyre_card *card, void **image, size_t bytes,
				      struct spyre_program_handle **program,
				      struct spyre_verify_error *why);
void spyre_drm_program_destroy(struct spyre_program_handle *program);

/* drm_foreign.c */
/* Adds the card to those that may import from each other, and removes it. */
void spyre_drm_foreign_open(struct spyre_drm_card *card);
void spyre_drm_foreign_close(struct spyre_drm_card *card);
/* Returns in @ours the handle that @card has for handle @theirs of @from; imports it once. */
spyre_status spyre_drm_foreign_get(struct spyre_drm_card *card, struct spyre_drm_card *from,
				   const void *owner, bool is_buffer, uint32_t theirs,
				   uint32_t *ours);
/* Ends all imports of an object that its owner is about to free. No card's lock is held. */
void spyre_drm_foreign_drop(const void *owner, uint32_t theirs);
/* True if @handle is an imported buffer; caller holds device_lock. */
bool spyre_drm_foreign_has_buffer(struct spyre_drm_card *card, uint32_t handle);

/* drm_encode.c: fills @cb from @command, which must outlive it: pointers are not copied. */
spyre_status spyre_drm_encode(struct spyre_drm_card *card, const struct spyre_command *command,
			      uint32_t index, struct drm_spyre_cb *cb);
/* The same for a copy between cards, to control block @index of @queue. */
spyre_status spyre_drm_encode_peer(struct spyre_drm_queue *queue,
				   const struct spyre_command *command, uint32_t index);
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
/* Present generation of the card; false if the query fails. */
bool spyre_drm_generation(struct spyre_drm_card *card, uint64_t *generation);
bool spyre_drm_is_stale(struct spyre_drm_card *card);
spyre_status spyre_drm_state(struct spyre_card *card, struct spyre_card_state *state);
spyre_status spyre_drm_context_reset(struct spyre_card *card, bool repeated);
/* Resets a card that was opened for this; gives its new generation. */
spyre_status spyre_drm_reset(struct spyre_drm_card *card, uint64_t *generation);

/* drm_bounce.c: a host BO that stands in for the host spans of one submission. */
struct spyre_drm_bounce {
	uint8_t *map;
	uint64_t bytes;
	uint32_t handle;
	bool out;	/* direction is device to host */
};

/*
 * Moves the host spans of a submission to a host BO after the kernel could not
 * pin the memory of control block @refused. Returns false, with nothing
 * changed, if a host BO cannot replace them.
 */
bool spyre_drm_bounce_begin(struct spyre_drm_queue *queue,
			    const struct spyre_submission *submission, uint32_t refused,
			    struct spyre_drm_bounce *bounce);
/* Releases the host BO after the second try; first waits for results and copies them out. */
void spyre_drm_bounce_end(struct spyre_drm_queue *queue,
			  const struct spyre_submission *submission,
			  struct spyre_drm_bounce *bounce, bool submitted);

/* drm_submit.c */
spyre_status spyre_drm_submit(struct spyre_queue *queue,
			      const struct spyre_submission *submission);

/* drm_uring.c */
/* Chooses the submission path and stores it in the card's properties. */
spyre_status spyre_drm_submit_choose(struct spyre_drm_card *card);
/* Opens a queue's ring, NULL if the card submits by ioctl; 0 or a positive errno. */
int spyre_drm_ring_open(struct spyre_drm_card *card, struct spyre_drm_ring **ring);
void spyre_drm_ring_close(struct spyre_drm_ring *ring);
/* False if the ring cannot be used: submit by ioctl. Else *@error is 0 or a positive errno. */
bool spyre_drm_ring_submit(struct spyre_drm_queue *queue, struct drm_spyre_submit *args,
			  int *error);

#endif /* SPYRE_DRM_H */

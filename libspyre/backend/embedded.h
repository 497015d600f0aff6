/* SPDX-License-Identifier: MIT */
/*
 * The embedded backend: the card model on threads of this process.
 *
 * A device is a physical card: threads, capacity, telemetry. It exists
 * while at least one context has it open. A card (struct embedded_card) is one
 * context's view of it: an address space, scratchpads and queues.
 *
 * Locks: embedded_device.lock covers scheduling (queues, jobs, sections);
 * embedded_card.maps_lock covers the table of mapped ranges. Neither is taken
 * inside the other, nor are those of two devices or cards.
 */
#ifndef SPYRE_EMBEDDED_H
#define SPYRE_EMBEDDED_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "libspyre/backend/backend.h"
#include "libspyre/backend/futex.h"
#include "libspyre/base/error.h"
#include "libspyre/telemetry/page.h"
#include "model/card.h"

#define EMBEDDED_MAX_CARDS 8
#define EMBEDDED_MAX_THREADS 64

/*
 * A light job of an idle queue runs inline, on the thread that submits it: its
 * few microseconds are less than a change of thread costs.
 */
#define EMBEDDED_LIGHT_WORK 256		/* of programs, see model/verify.h */
#define EMBEDDED_LIGHT_BYTES 262144	/* of LPDDR5, read and written by the rest */

struct embedded_device;
struct embedded_queue;
struct embedded_job;

/* Settings of embedded cards, from the environment. */
struct embedded_config {
	int cards;
	uint32_t cores;
	uint32_t threads;
	uint64_t lpddr_bytes;
	const struct spyre_unit *unit;
};

/* One call of spyre_host.parallel(); lives on the caller's stack. */
struct embedded_section {
	TAILQ_ENTRY(embedded_section) link;
	bool listed;
	spyre_work_fn fn;
	void *arg;
	uint32_t n;
	_Atomic uint32_t next;
	int processor;		/* the caller's */
	/* Threads inside besides the caller | EMBEDDED_SECTION_WAITED. */
	_Atomic uint32_t helpers;
};

#define EMBEDDED_SECTION_WAITED 0x80000000u

/* The processors that a worker's thread may run on. */
struct embedded_placement {
	cpu_set_t allowed;	/* when the thread began */
	cpu_set_t mask;		/* now */
	bool free;		/* @mask is this library's to change */
};

struct embedded_worker {
	struct spyre_worker base;
	struct embedded_device *device;
	pthread_t thread;
	uint32_t index;
	struct embedded_placement placement;
};

struct embedded_host {
	struct spyre_host base;
	struct embedded_device *device;
};

TAILQ_HEAD(embedded_queue_list, embedded_queue);
TAILQ_HEAD(embedded_job_list, embedded_job);
TAILQ_HEAD(embedded_section_list, embedded_section);

struct embedded_device {
	int index;
	int refs;
	struct embedded_config config;
	struct embedded_host host;
	struct spyre_telemetry_page *page;
	_Atomic uint64_t memory_used;

	pthread_mutex_t lock;
	/* Queues whose first job may start: [0] high priority, [1] low. */
	struct embedded_queue_list runnable[2];
	/* Queues whose first job waits for another context's queue only. */
	struct embedded_queue_list blocked;
	struct embedded_section_list sections;
	struct spyre_spin section_spin;
	pthread_cond_t queue_idle;
	uint32_t running;
	uint64_t busy_since_ns;
	uint64_t busy_ns;	/* of finished periods */

	/*
	 * Idle workers spin on @signal for a moment and then sleep on it; each
	 * arrival of work increments it.
	 */
	_Atomic uint32_t signal;
	struct spyre_spin spin;
	_Atomic uint32_t spinners;
	_Atomic uint32_t sleepers;
	_Atomic uint32_t started;
	bool stop;
	struct embedded_worker workers[EMBEDDED_MAX_THREADS];
	/* Runs light jobs on the submitting thread, one at a time. */
	struct embedded_worker inline_worker;
	bool inline_busy;
	/* Runs jobs on a thread that waits for them, one thread at a time. */
	struct embedded_worker waiter;
	bool waiter_busy;
};

struct embedded_map {
	uint64_t va;
	uint64_t bytes;
	/* MAP_HEAD and MAP_TAIL of the populated granules, for read and for write. */
	uint64_t warm[2];
	/* The last populated run of granules, for read and for write: first << 32 | end. */
	_Atomic uint64_t warm_run[2];
};

/* Pages are populated in granules of 2 MiB; a segment has this many words of bits for them. */
#define EMBEDDED_GRANULE_SHIFT 21
#define EMBEDDED_GRANULE_WORDS (1u << (SPYRE_SEGMENT_SHIFT - EMBEDDED_GRANULE_SHIFT - 6))

/*
 * Scratchpads of a context for the queues of one class, as in the kernel module: programs
 * may keep data in them from one to the next, and no other context sees it.
 */
struct embedded_lx {
	bool busy;		/* they serve one execution at a time; device lock */
	uint8_t *map;
	uint8_t *core[SPYRE_MAX_CORES];
	_Atomic uint32_t warm[SPYRE_MAX_CORES];	/* bytes whose pages are populated */
};

struct embedded_card {
	struct spyre_card base;
	struct embedded_device *device;
	/* Generation of the device when the card was opened. */
	uint64_t generation;
	/* Counts resets of the context; jobs of another epoch do not run. */
	_Atomic uint32_t epoch;
	/* The epoch in which work of the context failed, plus 1; 0: it has not. */
	_Atomic uint64_t faulted;
	struct embedded_lx lx[2];	/* by class, see embedded_queue */
	pthread_rwlock_t maps_lock;
	/* Host address of each segment's start, reserved on first use. */
	uint8_t *segment[SPYRE_DATA_SEGMENTS];
	/* Mapped ranges by address. */
	struct embedded_map *maps;
	uint32_t num_maps;
	size_t max_maps;
	/* Bits of granules inside one mapped range that are populated, for read and for write. */
	uint64_t warm[2][SPYRE_DATA_SEGMENTS][EMBEDDED_GRANULE_WORDS];
};

struct embedded_program {
	struct spyre_program_handle base;
	_Atomic uint32_t refs;
	struct spyre_program program;
	void *image;
	uint64_t charged;
};

/* A command with its addresses resolved to host pointers. */
struct embedded_command {
	enum spyre_command_type type;
	struct spyre_counters cost;
	union {
		struct {
			struct embedded_program *program;
			uint8_t **operand;
		} exec;
		struct {
			struct spyre_dma_desc *desc;
			uint8_t *device;
			uint8_t *host;
			uint64_t host_bytes;
		} dma;
		struct {
			uint8_t *dst;
			const uint8_t *src;
			uint64_t bytes;
		} copy;
		struct {
			uint8_t *dst;
			uint64_t bytes;
			uint8_t pattern[16];
			uint32_t pattern_bytes;
		} fill;
		struct {
			struct embedded_card *card;
			uint8_t *dst;
			const uint8_t *src;
			struct spyre_rows rows;
		} peer;
	};
};

/* Progress of a queue; jobs of other contexts that wait for it hold references. */
struct embedded_timeline {
	_Atomic uint32_t refs;
	/* Bits of the devices with a job that waits for progress. */
	_Atomic uint32_t watchers;
	_Atomic uint64_t completed;
};

/*
 * A job's wait for another queue's point. A queue of the same context lists it; that of
 * another context, which may have another lock, is watched by its timeline.
 */
struct embedded_wait {
	TAILQ_ENTRY(embedded_wait) link;
	struct embedded_job *job;
	struct embedded_queue *on;
	struct embedded_timeline *timeline;
	uint64_t point;
};

/* A submission; one piece of memory with all that it needs. */
struct embedded_job {
	TAILQ_ENTRY(embedded_job) link;
	struct embedded_queue *queue;
	uint64_t point;
	uint32_t first_result;
	uint32_t num_commands;
	uint32_t num_waits;
	/* Entries of @waits still listed somewhere. */
	uint32_t pending_waits;
	bool needs_lx;
	bool light;
	bool has_peers;		/* one of its commands reaches another context's memory */
	bool has_watches;	/* one of its waits is for another context's queue */
	uint32_t epoch;
	/* Reason to stop as -errno, 0 if none; the model polls it between tiles. */
	_Atomic int stop;
	int64_t deadline_ns;
	struct embedded_wait *waits;
	struct embedded_command commands[];
};

enum embedded_queue_state {
	EMBEDDED_QUEUE_IDLE,		/* no job, or the first one waits */
	EMBEDDED_QUEUE_RUNNABLE,	/* in a list of the device */
	EMBEDDED_QUEUE_RUNNING,		/* its first job is on a worker */
};

struct embedded_queue {
	struct spyre_queue base;
	struct embedded_device *device;
	TAILQ_ENTRY(embedded_queue) link;
	struct embedded_job_list jobs;
	TAILQ_HEAD(, embedded_wait) dependents;
	enum embedded_queue_state state;
	int class;		/* index into runnable[] and the card's lx[] */
	bool failed;
	bool blocked;		/* in the device's list; the state is IDLE */
	uint64_t timeout_ns;
	struct embedded_timeline *timeline;
	/* Threads in embedded_wait_point(), and the word they sleep on. */
	struct spyre_spin spin;
	_Atomic uint32_t waiters;
	_Atomic uint32_t wake;
};

/* embedded_device.c */
spyre_status embedded_count(int *count);
spyre_status embedded_properties(int index, spyre_device_properties *properties);
spyre_status embedded_device_get(int index, struct embedded_device **device);
void embedded_device_put(struct embedded_device *device);
bool embedded_charge(struct embedded_device *device, uint64_t bytes);
/* Counts a job that has ended in the card's page. */
void embedded_count_job(struct embedded_device *device, bool failed);
void embedded_uncharge(struct embedded_device *device, uint64_t bytes);
/* Looks at the blocked queues of the devices in @mask again. No lock is held. */
void embedded_devices_look(uint32_t mask);

/* embedded_memory.c */
/* Reserves the scratchpads; nothing else is left to undo after an error. */
spyre_status embedded_memory_init(struct embedded_card *card);
void embedded_memory_fini(struct embedded_card *card);
spyre_status embedded_mem_info(struct spyre_card *card, uint64_t *total, uint64_t *used);
spyre_status embedded_mem_map(struct spyre_card *card, uint64_t va, uint64_t bytes);
void embedded_mem_unmap(struct spyre_card *card, uint64_t va, uint64_t bytes);
spyre_status embedded_host_alloc(struct spyre_card *card, size_t bytes, void **address);
void embedded_host_free(struct spyre_card *card, void *address, size_t bytes);
/* Host pointer of a byte of a mapped range. */
static inline uint8_t *embedded_host(const struct embedded_card *card, uint64_t va)
{
	return card->segment[va >> SPYRE_SEGMENT_SHIFT] +
	       (va & ((1ull << SPYRE_SEGMENT_SHIFT) - 1));
}

/* True if @va is in @map with the @bytes from there on. */
static inline bool embedded_map_holds(const struct embedded_map *map, uint64_t va, uint64_t bytes)
{
	return va - map->va < map->bytes && bytes <= map->bytes - (va - map->va);
}

/* The mapped range that holds all these bytes, NULL if none does. Caller holds maps_lock. */
struct embedded_map *embedded_find_map(struct embedded_card *card, uint64_t va, uint64_t bytes);

/* embedded_warm.c: populates the pages of device bytes of @map. Caller holds maps_lock. */
void embedded_warm_run(struct embedded_card *card, struct embedded_map *map, uint64_t va,
		       uint64_t bytes, bool write);

/* The same. Most launches use what earlier ones populated, so that one comparison is enough. */
static inline void embedded_warm(struct embedded_card *card, struct embedded_map *map, uint64_t va,
				 uint64_t bytes, bool write)
{
	uint64_t run = atomic_load_explicit(&map->warm_run[write], memory_order_relaxed);

	if (va >> EMBEDDED_GRANULE_SHIFT < run >> 32 ||
	    (va + bytes - 1) >> EMBEDDED_GRANULE_SHIFT >= (uint32_t)run)
		embedded_warm_run(card, map, va, bytes, write);
}

/* Clears the record of populated pages of a range. Caller holds maps_lock to write. */
void embedded_warm_forget(struct embedded_card *card, struct embedded_map *map);
/* Populates the scratchpads of a program that uses them. */
void embedded_warm_lx(struct embedded_lx *lx, const struct spyre_prog_header *header);

/* embedded_reset.c */
/* Counts the resets of a card of this process; contexts of an earlier count are stale. */
uint64_t embedded_generation(int index);
/* SUCCESS unless the card was reset since @card was opened, or its work has failed. */
spyre_status embedded_card_check(struct embedded_card *card);
/*
 * Fails the context because of @job: no further job of this epoch runs. Returns true if it had
 * not failed before.
 */
bool embedded_card_fault(struct embedded_job *job, enum spyre_fault_kind kind);
/*
 * Adds a fault to the events, unless it is NONE. This writes a file, so the result of the job is
 * visible first: until then, whoever submits more learns that the context failed, but not why.
 */
void embedded_fault_log(const struct embedded_device *device, enum spyre_fault_kind kind);
/* True if the context was reset or failed after the job was submitted. */
bool embedded_job_is_old(const struct embedded_job *job);
/* True if the card was reset, or work of the context has failed. */
bool embedded_card_lost(const struct embedded_card *card);
spyre_status embedded_state(struct spyre_card *card, struct spyre_card_state *state);
spyre_status embedded_context_reset(struct spyre_card *card, bool repeated);
spyre_status embedded_device_reset(int index, uint64_t *generation);

/* embedded_check.c */
spyre_status embedded_job_create(struct embedded_queue *queue,
				 const struct spyre_submission *submission,
				 struct embedded_job **job);
void embedded_job_free(struct embedded_job *job);
void embedded_program_put(struct embedded_program *program);

/* embedded_peer.c */
/* Resolves the far end of a copy. Takes the lock of its card's maps; no other one is held. */
spyre_status embedded_peer_resolve(const struct spyre_command *in, struct embedded_command *out);
/* Resolves the near end; caller holds maps_lock of @card. */
spyre_status embedded_peer_check(struct embedded_card *card, const struct spyre_command *in,
				 struct embedded_command *out);
/* True if another context that the job copies from or to has failed or is stale. */
bool embedded_peer_lost(const struct embedded_job *job);
enum spyre_stop embedded_peer_run(struct spyre_host *host, struct embedded_job *job,
				  struct spyre_worker *self, const struct embedded_command *c);

/* embedded_timeline.c */
struct embedded_timeline *embedded_timeline_new(void);
struct embedded_timeline *embedded_timeline_get(struct embedded_timeline *timeline);
void embedded_timeline_put(struct embedded_timeline *timeline);
/* Publishes progress to @point and looks at the devices that wait for it. No lock is held. */
void embedded_timeline_advance(struct embedded_timeline *timeline, uint64_t point);
/* True if the job has to wait for other contexts, which then look at @device later. */
bool embedded_job_watches(const struct embedded_job *job, const struct embedded_device *device);

/* embedded_queue.c */
/* Lists the queues of @device that need not wait any more; kicks it. No lock is held. */
void embedded_device_look(struct embedded_device *device);
spyre_status embedded_queue_create(struct spyre_card *card, int priority,
				   struct spyre_queue **queue);
void embedded_queue_destroy(struct spyre_queue *queue);
spyre_status embedded_queue_renew(struct spyre_queue *queue, int priority);
spyre_status embedded_submit(struct spyre_queue *queue, const struct spyre_submission *submission);
spyre_status embedded_wait_point(struct spyre_queue *queue, uint64_t point, int64_t deadline_ns);
uint64_t embedded_completed(struct spyre_queue *queue);
/* Publishes @queue's progress to @point and wakes the waiters. No lock is held. */
void embedded_queue_advance(struct embedded_queue *queue, uint64_t point);
/* The scratchpads that jobs of @queue use. */
struct embedded_lx *embedded_queue_lx(struct embedded_queue *queue);
/* Removes the finished first job; caller holds the device's lock. */
void embedded_queue_retire(struct embedded_queue *queue);

/* embedded_affinity.c */
/* Of the calling thread. */
int embedded_processor(void);
void embedded_placement_init(struct embedded_placement *placement);
/* Moves the calling thread to another processor if it runs on this one. */
void embedded_keep_off(struct embedded_placement *placement, int processor);

/* embedded_worker.c */
/* Starts the first worker thread if none runs. */
spyre_status embedded_workers_start(struct embedded_device *device);
/* Wakes or starts a worker for new work. Called without the device's lock. */
void embedded_kick(struct embedded_device *device);
/* True if a worker has work to take; caller holds the device's lock. */
bool embedded_work_left(const struct embedded_device *device);
/* Runs the only job of an idle queue inline if it is light and no other inline
 * job runs. Called and returns with the device's lock held. */
bool embedded_inline_serve(struct embedded_queue *queue);
/*
 * Runs jobs of @queue up to @point that no worker has taken yet on the calling thread, which
 * waits for them. No lock is held.
 */
void embedded_waiter_serve(struct embedded_queue *queue, uint64_t point);
void embedded_workers_stop(struct embedded_device *device);
void embedded_parallel(struct spyre_host *host, struct spyre_worker *self, u32 n,
		       spyre_work_fn fn, void *arg);
bool embedded_should_stop(struct spyre_host *host, void *job);

#endif /* SPYRE_EMBEDDED_H */

/* SPDX-License-Identifier: MIT */
/*
 * The interface between the runtime and the card: one small struct of functions.
 * Nothing above it knows which backend runs. drm_*.c speak to spyre_vdev.ko,
 * embedded_*.c run the card model on threads of this process.
 *
 * Errors: every function leaves its text with spyre_error() and returns the
 * status. Functions are thread safe except where one queue is named: the
 * runtime serialises submissions of one queue.
 */
#ifndef SPYRE_BACKEND_H
#define SPYRE_BACKEND_H

#include <spyre/device.h>
#include <spyre/telemetry.h>
#include <spyre/types.h>

#include "model/dma.h"
#include "model/peer.h"
#include "model/program.h"

#define SPYRE_VA_PAGE 4096ull
#define SPYRE_SEGMENT_SHIFT 34
/* Segments 0..6 hold data, 7 is reserved for programs. */
#define SPYRE_DATA_SEGMENTS 7

struct spyre_backend_ops;

/* Backends embed these as their first member. */
struct spyre_card {
	const struct spyre_backend_ops *ops;
	spyre_device_properties properties;
	/* Path of submissions (ioctl or io_uring) and the reason for the choice. */
	spyre_submit_path submit_path;
	char submit_reason[128];
	/* The card executes descriptors with SPYRE_DMA_BOX. */
	bool boxes;
	/* The card executes copies from and to other cards. */
	bool peers;
	/* Index of the physical card: decides on the way to other cards. */
	uint32_t link_index;
};

struct spyre_program_handle {
	struct spyre_card *card;
	struct spyre_counters cost;
	/* Of the cost, for traces of cores; NULL without one. It outlives the program. */
	const struct timeline *timeline;
};

enum spyre_command_type {
	SPYRE_COMMAND_EXEC = 1,
	SPYRE_COMMAND_DMA,
	SPYRE_COMMAND_COPY,
	SPYRE_COMMAND_FILL,
	SPYRE_COMMAND_TIMESTAMP,
	SPYRE_COMMAND_PEER,
};

/* A control block. submit() copies everything it points to except the host
 * span of a DMA, which must live until the command is done. */
struct spyre_command {
	enum spyre_command_type type;
	union {
		struct {
			struct spyre_program_handle *program;
			const uint64_t *args;	/* one device address per operand */
			uint32_t num_args;
		} exec;
		struct {
			const struct spyre_dma_desc *desc;
			uint64_t device;
			void *host;		/* start of the host span */
			uint64_t host_bytes;
		} dma;
		struct {
			uint64_t dst, src, bytes;
		} copy;
		struct {
			uint64_t dst, bytes;
			uint8_t pattern[16];
			uint32_t pattern_bytes;
		} fill;
		struct {
			/* Another context of the same backend, open until the command is done. */
			struct spyre_card *card;
			uint64_t local;		/* address in the queue's context */
			uint64_t remote;	/* in @card, kept until it is done */
			bool sends;		/* from local to remote */
			struct spyre_rows rows;	/* checked; they do not overlap */
		} peer;
	};
};

/* Layout of struct drm_spyre_cb_result: the kernel writes these directly. */
struct spyre_command_result {
	uint32_t state;		/* 0 pending, 1 done; written last (release) */
	int32_t status;		/* 0, -ETIME, -EFAULT, -ECANCELED, -ENODEV, -ENOLINK */
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
	uint64_t start_ns;	/* CLOCK_MONOTONIC */
	uint64_t end_ns;
	uint64_t rdma;		/* PEER: bytes to or from another card */
};

#define SPYRE_QUEUE_RESULTS 1024u
/* Limit of one submission, the same on both backends. */
#define SPYRE_MAX_COMMANDS 256u

struct spyre_queue {
	struct spyre_card *card;
	/* Ring of SPYRE_QUEUE_RESULTS results; the runtime hands out slots. */
	struct spyre_command_result *results;
};

struct spyre_wait {
	struct spyre_queue *queue;	/* of any context of this backend */
	uint64_t point;		/* already submitted on that queue */
};

struct spyre_submission {
	const struct spyre_command *commands;
	uint32_t num_commands;
	uint32_t first_result;	/* command i reports to results[first_result + i] */
	const struct spyre_wait *waits;
	uint32_t num_waits;
	/* The queue's timeline reaches this point when all commands are done,
	 * also after an error. Points of one queue ascend. */
	uint64_t point;
};

/* State of a context: a reset of the card makes it stale. */
struct spyre_card_state {
	spyre_context_health health;
	spyre_fault fault;
	uint64_t generation;		/* when it was opened */
	uint64_t card_generation;	/* now */
};

/* The kinds of PCI functions that usable() can select. */
enum spyre_functions {
	SPYRE_FUNCTIONS_ALL,	/* all that work: VFs, and cards that are not split */
	SPYRE_FUNCTIONS_PF,	/* whole cards */
	SPYRE_FUNCTIONS_VF,	/* parts of cards */
};

struct spyre_backend_ops {
	spyre_backend id;
	/* Number of cards; opens nothing. */
	spyre_status (*count)(int *count);
	/*
	 * Sets usable[i] if card i of @count works and is of that kind; opens
	 * nothing. A backend without this function has usable cards only.
	 */
	spyre_status (*usable)(enum spyre_functions functions, int count, bool *usable);
	/* Fills properties of physical card @index (name … unit); opens nothing. */
	spyre_status (*properties)(int index, spyre_device_properties *properties);
	/*
	 * Gives the index of the physical card of card @index, which its virtual functions share;
	 * -1 if it executes no copies between cards. Opens nothing.
	 */
	spyre_status (*peer_index)(int index, int32_t *card);
	spyre_status (*open)(int index, struct spyre_card **card);
	/* The caller has destroyed all queues and unmapped all memory. */
	void (*close)(struct spyre_card *card);

	spyre_status (*mem_info)(struct spyre_card *card, uint64_t *total, uint64_t *used);
	/*
	 * Backs [va, va + bytes) with zeroed LPDDR5. Both are multiples of
	 * SPYRE_VA_PAGE; the range is free and within one segment.
	 */
	spyre_status (*mem_map)(struct spyre_card *card, uint64_t va, uint64_t bytes);
	/* Takes exactly the range of an earlier mem_map(); no queued work uses it. */
	void (*mem_unmap)(struct spyre_card *card, uint64_t va, uint64_t bytes);
	/*
	 * Makes a dma-buf of the range that mem_map() or mem_import() put at @va.
	 * This and mem_import are NULL where memory cannot leave the process.
	 */
	spyre_status (*mem_export)(struct spyre_card *card, uint64_t va, int *fd);
	/* Maps [offset, offset + bytes) of a dma-buf, as mem_map(); the caller still owns @fd. */
	spyre_status (*mem_import)(struct spyre_card *card, uint64_t va, uint64_t bytes, int fd,
				   uint64_t offset);
	spyre_status (*host_alloc)(struct spyre_card *card, size_t bytes, void **address);
	void (*host_free)(struct spyre_card *card, void *address, size_t bytes);

	/*
	 * Takes a malloc'd image: the backend may keep it, and then sets *@image to NULL. If the
	 * verifier rejects it, returns VERIFY and fills @why. After an error the caller still has
	 * the image.
	 */
	spyre_status (*program_create)(struct spyre_card *card, void **image, size_t bytes,
				       struct spyre_program_handle **program,
				       struct spyre_verify_error *why);
	/* Queued launches hold references of their own. */
	void (*program_destroy)(struct spyre_program_handle *program);

	/* @priority: 0 low, -1 high. */
	spyre_status (*queue_create)(struct spyre_card *card, int priority,
				     struct spyre_queue **queue);
	/* Cancels commands that have not started and waits for those that have. */
	void (*queue_destroy)(struct spyre_queue *queue);
	/*
	 * Checks all commands before it queues any; after an error none is queued.
	 * Once a command of a queue fails, the rest of its submission and all
	 * later ones complete with -ECANCELED.
	 */
	spyre_status (*submit)(struct spyre_queue *queue,
			       const struct spyre_submission *submission);
	/* Waits until the timeline reaches @point; deadline is CLOCK_MONOTONIC ns,
	 * INT64_MAX = no limit. NOT_READY when the deadline passes. */
	spyre_status (*wait)(struct spyre_queue *queue, uint64_t point, int64_t deadline_ns);
	/* Highest point reached; never blocks. */
	uint64_t (*completed)(struct spyre_queue *queue);

	/* Does not wait for work. */
	spyre_status (*state)(struct spyre_card *card, struct spyre_card_state *state);
	/*
	 * Stops all work of this context. Its queues take no submissions until
	 * each is renewed; the caller submits nothing meanwhile. A repetition, which
	 * stops what was submitted since, is not counted as a reset of its own.
	 */
	spyre_status (*context_reset)(struct spyre_card *card, bool repeated);
	/*
	 * Waits until the queue's work has ended on the card. The queue takes
	 * work again, and its points go on from the last one.
	 */
	spyre_status (*queue_renew)(struct spyre_queue *queue, int priority);
	/* Resets physical card @index for all its users; gives its new generation. */
	spyre_status (*device_reset)(int index, uint64_t *generation);
};

extern const struct spyre_backend_ops spyre_backend_drm;
extern const struct spyre_backend_ops spyre_backend_embedded;

#endif /* SPYRE_BACKEND_H */

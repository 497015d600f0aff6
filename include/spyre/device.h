/* SPDX-License-Identifier: MIT */
/* Cards: enumeration, properties, contexts. */
#ifndef SPYRE_DEVICE_H
#define SPYRE_DEVICE_H

#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Which side of the backend seam a card lives on. */
typedef enum spyre_backend {
	/** /dev/accel/accelN of spyre_vdev.ko. */
	SPYRE_BACKEND_DRM = 1,
	/** Threads of this process. */
	SPYRE_BACKEND_EMBEDDED = 2,
} spyre_backend;

/** How submissions reach a card (append only). Since 0.1. */
typedef enum spyre_submit_path {
	/** A call within the process: embedded cards. */
	SPYRE_SUBMIT_DIRECT = 1,
	/** DRM_IOCTL_SPYRE_SUBMIT. */
	SPYRE_SUBMIT_IOCTL = 2,
	/** io_uring, a ring for each stream. */
	SPYRE_SUBMIT_URING = 3,
	/** io_uring with a thread of the kernel that polls for submissions. */
	SPYRE_SUBMIT_SQPOLL = 4,
} spyre_submit_path;

/** What a card is. Set struct_size before the call. Since 0.1. */
typedef struct spyre_device_properties {
	/** in: sizeof(struct spyre_device_properties). */
	size_t struct_size;
	/** "Virtual Spyre", "Virtual Spyre VF 2", or, in telemetry, "Virtual Spyre (4 VFs)". */
	char name[64];
	/** 8-4-4-4-12 hex digits; stable while the module is loaded, or the process runs. */
	char uuid[40];
	/** Device path of sysfs ("spyre_vdev.0"), or "embedded.0". */
	char bus_id[32];
	/** Node, "/dev/accel/accel0"; "" for embedded cards. */
	char node[64];
	spyre_backend backend;
	/** Index among the visible cards, and among all. */
	int index;
	int physical_index;
	uint32_t num_cores;
	uint32_t lx_bytes;
	uint32_t stick_bytes;
	uint32_t clock_khz;
	/** LPDDR5 capacity in bytes. */
	uint64_t memory_bytes;
	/** Host arithmetic: "scalar", "avx2" or "avx512"; "" if unknown. */
	char unit[16];
} spyre_device_properties;

/**
 * Number of visible cards. Opens nothing, is safe before fork(); no card is
 * success with 0. SPYRE_BACKEND=drm|embedded and FLEX_DEVICE=MOCK choose the
 * backend (default: the accel node if there is one, else embedded);
 * SPYRE_DEVICES ("0,2") and AIU_WORLD_SIZE limit what is visible. FLEX_DEVICE=PF
 * shows whole cards only, VF virtual functions only; without it both. A card
 * that is split into virtual functions does no work and is never visible. Since 0.1.
 * Errors: CONFIGURATION, NO_DRIVER (drm was forced).
 */
SPYRE_API spyre_status spyre_device_count(int *count);

/** Properties of visible card @index, from sysfs; opens nothing. Since 0.1.
 * Errors: NO_DEVICE, INVALID_ARGUMENT, CONFIGURATION. */
SPYRE_API spyre_status spyre_device_get_properties(int index,
						   spyre_device_properties *properties);

/**
 * Opens card @index. @flags must be 0. The context is the caller's; destroy it
 * with spyre_context_destroy(). Since 0.1.
 * Errors: NO_DEVICE, NO_PERMISSION (names the node and group), ABI_MISMATCH,
 * OUT_OF_HOST_MEMORY, SYSTEM.
 */
SPYRE_API spyre_status spyre_context_create(int index, uint32_t flags,
					    spyre_context **context);

/** Waits for all work, frees everything the context owns. NULL is fine. Since 0.1. */
SPYRE_API spyre_status spyre_context_destroy(spyre_context *context);

/** Waits for every stream; returns the first stream's error, if any. Since 0.1. */
SPYRE_API spyre_status spyre_context_synchronize(spyre_context *context);

/** The properties of the context's card. Since 0.1. */
SPYRE_API spyre_status spyre_context_get_properties(spyre_context *context,
						    spyre_device_properties *properties);

/**
 * How submissions of @context travel, and in words why so; @reason, which may
 * be NULL, is valid as long as the context. SPYRE_SUBMIT=auto|ioctl|uring|sqpoll
 * chooses when a context is created; what it asks for and cannot be had is
 * CONFIGURATION there. Results and errors are the same by every way. Since 0.1.
 */
SPYRE_API spyre_status spyre_context_get_submit_path(spyre_context *context,
						     spyre_submit_path *path,
						     const char **reason);

/** Health of a context. Since 0.1. */
typedef enum spyre_context_health {
	/** Takes work. */
	SPYRE_CONTEXT_OK = 0,
	/** Work failed; spyre_context_reset() brings the context back. */
	SPYRE_CONTEXT_FAULTED = 1,
	/** The card was reset: destroy the context and create another. */
	SPYRE_CONTEXT_STALE = 2,
	/** The card is gone: destroy the context. */
	SPYRE_CONTEXT_LOST = 3,
} spyre_context_health;

/** Why a context failed (append only). Since 0.1. */
typedef enum spyre_fault {
	SPYRE_FAULT_NONE = 0,
	/** An operation ran past its time limit (SPYRE_TIMEOUT_MS). */
	SPYRE_FAULT_TIMEOUT = 1,
	/** Work reached outside the context's memory. */
	SPYRE_FAULT_ACCESS = 2,
	/** A program did what its verification ruled out. */
	SPYRE_FAULT_ESCAPE = 3,
	/** A core or the DMA engine failed. */
	SPYRE_FAULT_COMPUTE = 4,
	/** The kernel refused work, or the library could not go on. */
	SPYRE_FAULT_SUBMISSION = 5,
} spyre_fault;

/** How a context stands. Set struct_size before the call. Since 0.1. */
typedef struct spyre_context_state {
	size_t struct_size;
	spyre_context_health health;
	/** Of the first failure: status and kind. SUCCESS and NONE if there was none. */
	spyre_status status;
	spyre_fault fault;
	/** Stream that it happened on, -1 if not known. */
	int stream;
	/** Operation of that stream, counted from 1, and control block of it. */
	uint64_t operation;
	uint32_t control_block;
	uint32_t reserved;
	/** Resets of the card: when the context was created, and now. */
	uint64_t generation;
	uint64_t card_generation;
	/** What the stream's error says; "" if there was no failure. */
	char text[512];
} spyre_context_state;

/**
 * How @context stands, and what failed first. Never waits, also not for work
 * that hangs. Since 0.1.
 */
SPYRE_API spyre_status spyre_context_get_state(spyre_context *context,
					       spyre_context_state *state);

/**
 * Brings a context back after a failure: stops its work, waits until the card
 * has let go of it, and makes every stream usable again under the handle that
 * it has. Success means that each of them has been seen to take work.
 *
 * Memory and its contents, layouts, kernels, streams and pinned host memory
 * stay; what stopped work was writing holds any part of it. Work that was
 * queued is cancelled: host functions still run, events behind it are reached
 * and report CANCELLED until they are recorded again. A context in good
 * health may be reset too, to stop what it runs. Other threads must not use
 * the context meanwhile. Since 0.1.
 * Errors: DEVICE_RESET (the card itself was reset: create a new context),
 * DEVICE_LOST, BUSY (called in a host function), TIMEOUT (the card does not
 * let go).
 */
SPYRE_API spyre_status spyre_context_reset(spyre_context *context);

/**
 * Resets visible card @index for everybody: stops all work, clears the
 * scratchpads, raises the card's generation. Success means that the card has
 * run a command since. All contexts on it, of all processes, are stale from
 * then on: their calls give DEVICE_RESET; destroy them and create others.
 * Takes CAP_SYS_ADMIN on a card of the kernel; an embedded card is this
 * process's own. @flags must be 0. Since 0.1.
 * Errors: NO_PERMISSION, NO_DEVICE, DEVICE_LOST (it does not answer).
 */
SPYRE_API spyre_status spyre_device_reset(int index, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_DEVICE_H */

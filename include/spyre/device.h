/* SPDX-License-Identifier: MIT */
/* Cards: enumeration, properties, contexts. */
#ifndef SPYRE_DEVICE_H
#define SPYRE_DEVICE_H

#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Implementation of a card. */
typedef enum spyre_backend {
	/** /dev/accel/accelN of spyre_vdev.ko. */
	SPYRE_BACKEND_DRM = 1,
	/** Emulated by threads of this process. */
	SPYRE_BACKEND_EMBEDDED = 2,
} spyre_backend;

/** How submissions reach a card (append only). Since 0.1. */
typedef enum spyre_submit_path {
	/** A function call within the process, for embedded cards. */
	SPYRE_SUBMIT_DIRECT = 1,
	/** DRM_IOCTL_SPYRE_SUBMIT. */
	SPYRE_SUBMIT_IOCTL = 2,
	/** io_uring, with one ring per stream. */
	SPYRE_SUBMIT_URING = 3,
	/** io_uring, polled by a kernel thread. */
	SPYRE_SUBMIT_SQPOLL = 4,
} spyre_submit_path;

/** Properties of a card. Since 0.1. */
typedef struct spyre_device_properties {
	/** in: sizeof(struct spyre_device_properties). */
	size_t struct_size;
	/** "Virtual Spyre", "Virtual Spyre VF 2", or, in telemetry, "Virtual Spyre (4 VFs)". */
	char name[64];
	/** 8-4-4-4-12 hex digits; stable while the module is loaded or the process runs. */
	char uuid[40];
	/** Device name in sysfs ("spyre_vdev.0"), or "embedded.0". */
	char bus_id[32];
	/** Device node, "/dev/accel/accel0"; "" for embedded cards. */
	char node[64];
	spyre_backend backend;
	/** Index among the visible cards and among all cards. */
	int index;
	int physical_index;
	uint32_t num_cores;
	uint32_t lx_bytes;
	uint32_t stick_bytes;
	uint32_t clock_khz;
	/** LPDDR5 capacity in bytes. */
	uint64_t memory_bytes;
	/** Arithmetic unit of the host, such as "avx2" (spyre_host_units()); "" if unknown. */
	char unit[16];
} spyre_device_properties;

/**
 * Counts the visible cards. The call opens no card and is safe before fork(); a
 * machine without a card gives 0 and SUCCESS.
 *
 * SPYRE_BACKEND=drm|embedded and FLEX_DEVICE=MOCK choose the backend; by default it is
 * drm if an accel node exists, otherwise embedded. SPYRE_DEVICES ("0,2") and
 * AIU_WORLD_SIZE restrict the visible cards. FLEX_DEVICE=PF shows only whole cards and
 * FLEX_DEVICE=VF only virtual functions; unset, both are visible. A card that is split
 * into virtual functions executes no work itself and is never visible. Since 0.1.
 * Errors: CONFIGURATION, NO_DRIVER (the drm backend was requested and there is none).
 */
SPYRE_API spyre_status spyre_device_count(int *count);

/**
 * Reads the properties of visible card @index, 0 to count - 1, without opening the
 * card. The caller sets @properties->struct_size. Since 0.1.
 * Errors: NO_DEVICE, INVALID_ARGUMENT, and those of spyre_device_count().
 */
SPYRE_API spyre_status spyre_device_get_properties(int index,
						   spyre_device_properties *properties);

/**
 * Returns the names of the arithmetic units that embedded cards can compute with on this
 * processor, from the slowest, which is "scalar", to the one that they take unless
 * SPYRE_UNIT chooses another; NULL ends the array, which is static. All give the same
 * bits. Since 0.1.
 */
SPYRE_API const char *const *spyre_host_units(void);

/**
 * Opens visible card @index, 0 to count - 1, and creates an address space on it.
 * @flags must be 0. The caller owns @context and destroys it with
 * spyre_context_destroy(). Since 0.1.
 * Errors: NO_DEVICE, NO_PERMISSION (the message names the node and its group),
 * ABI_MISMATCH, CONFIGURATION (SPYRE_SUBMIT requests an unavailable path), NO_DRIVER,
 * OUT_OF_HOST_MEMORY, SYSTEM.
 */
SPYRE_API spyre_status spyre_context_create(int index, uint32_t flags,
					    spyre_context **context);

/**
 * Waits for all work of @context, then frees it with its memory, streams and kernels.
 * NULL is allowed and has no effect. Failed streams do not make the call fail. Since
 * 0.1.
 * Errors: BUSY (called from a host function of the context).
 */
SPYRE_API spyre_status spyre_context_destroy(spyre_context *context);

/**
 * Waits until all streams of @context are idle. Since 0.1.
 * Errors: the error of the first failed stream; CAPTURE (a stream is being captured).
 */
SPYRE_API spyre_status spyre_context_synchronize(spyre_context *context);

/**
 * Reads the properties of the card that @context uses. The caller sets
 * @properties->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_context_get_properties(spyre_context *context,
						    spyre_device_properties *properties);

/**
 * Returns the submission path of @context in @path and, in @reason, a sentence that
 * explains why it was chosen. @reason may be NULL; the context owns the string.
 * SPYRE_SUBMIT=auto|ioctl|uring|sqpoll selects the path when a context is created,
 * which fails with CONFIGURATION if the requested path is unavailable. Results and
 * errors do not depend on the path. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_context_get_submit_path(spyre_context *context,
						     spyre_submit_path *path,
						     const char **reason);

/** Health of a context. Since 0.1. */
typedef enum spyre_context_health {
	/** Accepts work. */
	SPYRE_CONTEXT_OK = 0,
	/** Work failed; spyre_context_reset() recovers the context. */
	SPYRE_CONTEXT_FAULTED = 1,
	/** The card was reset: destroy the context and create another. */
	SPYRE_CONTEXT_STALE = 2,
	/** The card is gone: destroy the context. */
	SPYRE_CONTEXT_LOST = 3,
} spyre_context_health;

/** Cause of a context's failure (append only). Since 0.1. */
typedef enum spyre_fault {
	SPYRE_FAULT_NONE = 0,
	/** An operation ran past its time limit (SPYRE_TIMEOUT_MS). */
	SPYRE_FAULT_TIMEOUT = 1,
	/** Work reached outside the context's memory, or an index outside its extent. */
	SPYRE_FAULT_ACCESS = 2,
	/** A program violated a property that its verification had established. */
	SPYRE_FAULT_ESCAPE = 3,
	/** A core or the DMA engine failed. */
	SPYRE_FAULT_COMPUTE = 4,
	/** The kernel rejected a submission, or the library could not continue. */
	SPYRE_FAULT_SUBMISSION = 5,
} spyre_fault;

/** Health and first failure of a context. Since 0.1. */
typedef struct spyre_context_state {
	/** in: sizeof(struct spyre_context_state). */
	size_t struct_size;
	spyre_context_health health;
	/** Status and kind of the first failure; SUCCESS and NONE if there was none. */
	spyre_status status;
	spyre_fault fault;
	/** Id of the stream that failed, -1 if unknown. */
	int stream;
	/** Operation of that stream, counted from 1, and its control block. */
	uint64_t operation;
	uint32_t control_block;
	uint32_t reserved;
	/** Number of card resets: when the context was created, and now. */
	uint64_t generation;
	uint64_t card_generation;
	/** Message of the stream's error; "" if there was no failure. */
	char text[512];
} spyre_context_state;

/**
 * Returns the health of @context and its first failure. Never blocks, even if the card
 * hangs. The caller sets @state->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_context_get_state(spyre_context *context,
					       spyre_context_state *state);

/**
 * Recovers @context after a failure: stops its work, waits until the card has released
 * it and makes every stream usable again under its existing handle. SUCCESS means that
 * each stream has executed a command since.
 *
 * Allocations and their contents, layouts, kernels, streams and pinned host memory
 * survive. Memory that the stopped work was writing has undefined contents. Queued
 * work is cancelled: its host functions still run, and its events are signalled and
 * report CANCELLED until they are recorded again. A healthy context can be reset too,
 * which stops its work. No other thread may use the context during the call. Since
 * 0.1.
 * Errors: DEVICE_RESET (the card itself was reset; create a new context), DEVICE_LOST,
 * BUSY (called from a host function), TIMEOUT (the card does not release the work).
 */
SPYRE_API spyre_status spyre_context_reset(spyre_context *context);

/**
 * Resets visible card @index for all users: stops all work, clears the scratchpads and
 * increments the card's generation. SUCCESS means that the card has executed a command
 * since. All existing contexts on the card, in all processes, become stale: their
 * calls return DEVICE_RESET, and they can only be destroyed. On a card of the kernel
 * module the caller needs CAP_SYS_ADMIN; an embedded card belongs to the calling
 * process. @flags must be 0. Since 0.1.
 * Errors: NO_PERMISSION, NO_DEVICE, DEVICE_LOST (the card does not respond), and those
 * of spyre_device_count().
 */
SPYRE_API spyre_status spyre_device_reset(int index, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_DEVICE_H */

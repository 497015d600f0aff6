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

/** What a card is. Set struct_size before the call. Since 0.1. */
typedef struct spyre_device_properties {
	/** in: sizeof(struct spyre_device_properties). */
	size_t struct_size;
	/** "Virtual Spyre". */
	char name[64];
	/** 8-4-4-4-12 hex digits; stable while the module is loaded. */
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
 * SPYRE_DEVICES ("0,2") and AIU_WORLD_SIZE limit what is visible. Since 0.1.
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

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_DEVICE_H */

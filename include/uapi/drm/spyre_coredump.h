/* SPDX-License-Identifier: MIT */
/*
 * The dump that the driver makes when a context fails.  root reads it from
 * /sys/class/devcoredump/devcd<N>/data; 'spyre coredump' prints it.
 *
 * It consists of a header and sections.  Each section is a struct
 * drm_spyre_coredump_section followed by its contents, padded with zeros to a
 * multiple of 8 bytes.  All fields are little endian.  Readers skip unknown
 * sections and fields that a newer driver appended to a struct.
 */
#ifndef _UAPI_SPYRE_COREDUMP_H_
#define _UAPI_SPYRE_COREDUMP_H_

#include "spyre_accel.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** DRM_SPYRE_COREDUMP_MAGIC: the first eight bytes, including the NUL. */
#define DRM_SPYRE_COREDUMP_MAGIC "SPYRECD"
#define DRM_SPYRE_COREDUMP_VERSION 1
/** DRM_SPYRE_COREDUMP_PROGRAM_MAX: a program image is truncated to this many bytes. */
#define DRM_SPYRE_COREDUMP_PROGRAM_MAX (1u << 20)
/** DRM_SPYRE_COREDUMP_QUEUES_MAX: at most this many queues are listed. */
#define DRM_SPYRE_COREDUMP_QUEUES_MAX 256

/**
 * struct drm_spyre_coredump_header - start of the file
 */
struct drm_spyre_coredump_header {
	/** @magic: DRM_SPYRE_COREDUMP_MAGIC. */
	__u8 magic[8];
	/** @version: DRM_SPYRE_COREDUMP_VERSION; readers reject any other. */
	__u32 version;
	/** @header_bytes: size of this struct; the first section follows it. */
	__u32 header_bytes;
	/** @size: size of the file in bytes. */
	__u64 size;
	/** @num_sections: number of sections. */
	__u32 num_sections;
	/** @pad: zero. */
	__u32 pad;
};

/**
 * enum drm_spyre_coredump_type - kinds of section (append only)
 */
enum drm_spyre_coredump_type {
	/** @DRM_SPYRE_COREDUMP_INFO: struct drm_spyre_coredump_info. */
	DRM_SPYRE_COREDUMP_INFO = 1,
	/** @DRM_SPYRE_COREDUMP_CARD: struct drm_spyre_card_info. */
	DRM_SPYRE_COREDUMP_CARD = 2,
	/** @DRM_SPYRE_COREDUMP_MEMORY: struct drm_spyre_memory_info. */
	DRM_SPYRE_COREDUMP_MEMORY = 3,
	/** @DRM_SPYRE_COREDUMP_COUNTERS: struct drm_spyre_counters of the card. */
	DRM_SPYRE_COREDUMP_COUNTERS = 4,
	/** @DRM_SPYRE_COREDUMP_CONTEXT: struct drm_spyre_context_info when the dump was made. */
	DRM_SPYRE_COREDUMP_CONTEXT = 5,
	/** @DRM_SPYRE_COREDUMP_FAULT: struct drm_spyre_coredump_fault. */
	DRM_SPYRE_COREDUMP_FAULT = 6,
	/** @DRM_SPYRE_COREDUMP_CB: struct drm_spyre_coredump_cb, one per control block. */
	DRM_SPYRE_COREDUMP_CB = 7,
	/** @DRM_SPYRE_COREDUMP_OPERANDS: array of struct drm_spyre_coredump_operand. */
	DRM_SPYRE_COREDUMP_OPERANDS = 8,
	/** @DRM_SPYRE_COREDUMP_DMA: struct drm_spyre_dma. */
	DRM_SPYRE_COREDUMP_DMA = 9,
	/** @DRM_SPYRE_COREDUMP_PROGRAM: image of the program that failed (docs/isa.md). */
	DRM_SPYRE_COREDUMP_PROGRAM = 10,
	/** @DRM_SPYRE_COREDUMP_QUEUES: array of struct drm_spyre_coredump_queue. */
	DRM_SPYRE_COREDUMP_QUEUES = 11,
};

/**
 * struct drm_spyre_coredump_section - header of a section
 */
struct drm_spyre_coredump_section {
	/** @type: enum drm_spyre_coredump_type. */
	__u32 type;
	/** @index: index of the control block that it describes, or 0. */
	__u32 index;
	/** @bytes: size of the contents without the padding. */
	__u64 bytes;
	/** @whole: size before truncation; greater than @bytes if it was truncated. */
	__u64 whole;
};

/**
 * struct drm_spyre_coredump_info - time, driver and process of the failure
 */
struct drm_spyre_coredump_info {
	/** @release: release of the kernel, NUL terminated. */
	__u8 release[64];
	/** @driver: name of the driver, NUL terminated. */
	__u8 driver[16];
	/** @comm: name of the thread that opened the context, NUL terminated. */
	__u8 comm[16];
	/** @pid: its process ID, in the initial PID namespace. */
	__s32 pid;
	/** @pad: zero. */
	__u32 pad;
	/** @monotonic_ns: CLOCK_MONOTONIC when the dump was made. */
	__u64 monotonic_ns;
	/** @realtime_ns: CLOCK_REALTIME when the dump was made. */
	__u64 realtime_ns;
};

/**
 * struct drm_spyre_coredump_fault - the failure
 */
struct drm_spyre_coredump_fault {
	/** @fault: enum drm_spyre_fault. */
	__u32 fault;
	/** @error: negative errno. */
	__s32 error;
	/** @stop: enum spyre_stop that the model reported (docs/isa.md). */
	__u32 stop;
	/** @queue: id of the queue. */
	__u32 queue;
	/** @job: number of the job on that queue, from 1. */
	__u64 job;
	/** @cb: index of the failed control block; later ones did not run. */
	__u32 cb;
	/** @num_cbs: number of control blocks of the job. */
	__u32 num_cbs;
	/** @start_ns: CLOCK_MONOTONIC at the start of the job. */
	__u64 start_ns;
	/** @ns: CLOCK_MONOTONIC at the failure. */
	__u64 ns;
	/** @timeout_ns: time limit of the queue. */
	__u64 timeout_ns;
	/** @priority: DRM_SPYRE_PRIORITY_* of the queue. */
	__u32 priority;
	/** @lx_bytes: scratchpad bytes per core that the job's programs use. */
	__u32 lx_bytes;
	/** @stop_name: name of @stop, NUL terminated. */
	__u8 stop_name[24];
};

/**
 * struct drm_spyre_coredump_cb - a control block of the job, decoded
 */
struct drm_spyre_coredump_cb {
	/** @type: enum drm_spyre_cb_type. */
	__u32 type;
	/** @num_operands: EXEC: number of operands of the program. */
	__u32 num_operands;
	/** @dst: destination, a device address. */
	__u64 dst;
	/** @src: source, a device address. */
	__u64 src;
	/** @size: bytes of the host span (DMA) or of device memory (COPY, FILL). */
	__u64 size;
	/** @pattern: FILL: the pattern. */
	__u64 pattern[2];
	/** @pattern_size: FILL: bytes of the pattern. */
	__u32 pattern_size;
	/** @pad: zero. */
	__u32 pad;
	/** @program_bytes: EXEC: size of the program image. */
	__u64 program_bytes;
	/** @cycles: modelled cycles if it succeeds. */
	__u64 cycles;
	/** @bytes_read: LPDDR5 bytes read if it succeeds. */
	__u64 bytes_read;
	/** @bytes_written: LPDDR5 bytes written if it succeeds. */
	__u64 bytes_written;
	/** @macs: multiply-adds if it succeeds. */
	__u64 macs;
};

/** DRM_SPYRE_COREDUMP_OPERAND_READ: the program reads it. */
#define DRM_SPYRE_COREDUMP_OPERAND_READ (1u << 0)
/** DRM_SPYRE_COREDUMP_OPERAND_WRITE: the program writes it. */
#define DRM_SPYRE_COREDUMP_OPERAND_WRITE (1u << 1)

/**
 * struct drm_spyre_coredump_operand - an operand of a program
 */
struct drm_spyre_coredump_operand {
	/** @address: device address passed to the launch. */
	__u64 address;
	/** @extent: bytes from @address that the program accesses. */
	__u64 extent;
	/** @flags: DRM_SPYRE_COREDUMP_OPERAND_*. */
	__u32 flags;
	/** @pad: zero. */
	__u32 pad;
};

/**
 * struct drm_spyre_coredump_queue - a queue of the card, of any context
 */
struct drm_spyre_coredump_queue {
	/** @context: id of its context. */
	__u64 context;
	/** @queue: id of the queue. */
	__u32 queue;
	/** @priority: DRM_SPYRE_PRIORITY_*. */
	__u32 priority;
	/** @error: negative errno that stopped the queue, or 0. */
	__s32 error;
	/** @cb: index of the control block of @job that is being executed. */
	__u32 cb;
	/** @submitted: number of jobs submitted. */
	__u64 submitted;
	/** @completed: number of jobs completed, including failed ones. */
	__u64 completed;
	/** @job: number of the job that the engine is executing, or 0. */
	__u64 job;
	/** @since_ns: CLOCK_MONOTONIC at the start of @job. */
	__u64 since_ns;
};

#if defined(__cplusplus)
}
#endif

#endif /* _UAPI_SPYRE_COREDUMP_H_ */

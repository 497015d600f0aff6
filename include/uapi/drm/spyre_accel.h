/* SPDX-License-Identifier: MIT */
/*
 * The contract between spyre_vdev.ko and user space.
 *
 * Conventions: handles are non-zero; flags, pads and reserved fields that
 * this version does not define must be zero (-EINVAL); structs only ever grow
 * at their end; arrays carry their stride, so either side may be the newer.
 */
#ifndef _UAPI_SPYRE_ACCEL_H_
#define _UAPI_SPYRE_ACCEL_H_

#include "drm.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define DRM_SPYRE_MAX_CARDS 8
#define DRM_SPYRE_STICK_BYTES 128
/** DRM_SPYRE_VA_PAGE: granule of VM_BIND addresses, offsets and ranges. */
#define DRM_SPYRE_VA_PAGE 4096
/** DRM_SPYRE_SEGMENT_SHIFT: device address = segment << 34 | offset, 8 segments. */
#define DRM_SPYRE_SEGMENT_SHIFT 34
#define DRM_SPYRE_NUM_SEGMENTS 8

/**
 * enum drm_spyre_ioctl_id - driver ioctl numbers (append only)
 */
enum drm_spyre_ioctl_id {
	/** @DRM_SPYRE_DEV_QUERY: query the card or the caller's context. */
	DRM_SPYRE_DEV_QUERY = 0,
	/** @DRM_SPYRE_BO_CREATE: create a buffer object. */
	DRM_SPYRE_BO_CREATE,
	/** @DRM_SPYRE_BO_MMAP_OFFSET: get the offset to mmap a buffer object. */
	DRM_SPYRE_BO_MMAP_OFFSET,
	/** @DRM_SPYRE_VM_BIND: map or unmap ranges of the context's addresses. */
	DRM_SPYRE_VM_BIND,
	/** @DRM_SPYRE_PROGRAM_CREATE: load and verify a program. */
	DRM_SPYRE_PROGRAM_CREATE,
	/** @DRM_SPYRE_PROGRAM_DESTROY: drop a program. */
	DRM_SPYRE_PROGRAM_DESTROY,
	/** @DRM_SPYRE_QUEUE_CREATE: create an in-order queue. */
	DRM_SPYRE_QUEUE_CREATE,
	/** @DRM_SPYRE_QUEUE_DESTROY: destroy a queue; its pending work is cancelled. */
	DRM_SPYRE_QUEUE_DESTROY,
	/** @DRM_SPYRE_QUEUE_QUERY: state of a queue. */
	DRM_SPYRE_QUEUE_QUERY,
	/** @DRM_SPYRE_SUBMIT: queue control blocks. */
	DRM_SPYRE_SUBMIT,
	/** @DRM_SPYRE_RESET: reset the card (CAP_SYS_ADMIN). Since 1.1. */
	DRM_SPYRE_RESET,
	/** @DRM_SPYRE_CONTEXT_RESET: bring the caller's context back. Since 1.2. */
	DRM_SPYRE_CONTEXT_RESET,
	/** @DRM_SPYRE_BO_INFO: what a handle stands for. Since 1.2. */
	DRM_SPYRE_BO_INFO,
};

/**
 * enum drm_spyre_format - data formats (append only; numbers of this project)
 */
enum drm_spyre_format {
	DRM_SPYRE_FORMAT_INVALID = 0,
	DRM_SPYRE_FORMAT_SEN169_FP16 = 1,
	DRM_SPYRE_FORMAT_IEEE_FP32 = 2,
	DRM_SPYRE_FORMAT_SEN143_FP8 = 3,
	DRM_SPYRE_FORMAT_SEN152_FP8 = 4,
	DRM_SPYRE_FORMAT_SEN153_FP9 = 5,
	DRM_SPYRE_FORMAT_SEN18F_FP24 = 6,
	DRM_SPYRE_FORMAT_SENINT2 = 7,
	DRM_SPYRE_FORMAT_SENINT4 = 8,
	DRM_SPYRE_FORMAT_SENINT8 = 9,
	DRM_SPYRE_FORMAT_SENINT16 = 10,
	DRM_SPYRE_FORMAT_SENINT24 = 11,
	DRM_SPYRE_FORMAT_SENUINT2 = 12,
	DRM_SPYRE_FORMAT_SENUINT32 = 13,
	DRM_SPYRE_FORMAT_IEEE_INT32 = 14,
	DRM_SPYRE_FORMAT_IEEE_INT64 = 15,
	DRM_SPYRE_FORMAT_IEEE_FP16 = 16,
	DRM_SPYRE_FORMAT_BFLOAT16 = 17,
	DRM_SPYRE_FORMAT_BOOL = 18,
	DRM_SPYRE_FORMAT_UINT8 = 19,
	DRM_SPYRE_FORMAT_FP64 = 20,
};

/**
 * enum drm_spyre_dev_query_type - what DEV_QUERY returns
 */
enum drm_spyre_dev_query_type {
	/** @DRM_SPYRE_DEV_QUERY_CARD: struct drm_spyre_card_info. */
	DRM_SPYRE_DEV_QUERY_CARD = 0,
	/** @DRM_SPYRE_DEV_QUERY_MEMORY: struct drm_spyre_memory_info. */
	DRM_SPYRE_DEV_QUERY_MEMORY = 1,
	/** @DRM_SPYRE_DEV_QUERY_COUNTERS: struct drm_spyre_counters. */
	DRM_SPYRE_DEV_QUERY_COUNTERS = 2,
	/** @DRM_SPYRE_DEV_QUERY_CONTEXT: struct drm_spyre_context_info. Since 1.2. */
	DRM_SPYRE_DEV_QUERY_CONTEXT = 3,
};

/**
 * struct drm_spyre_dev_query - argument of DRM_IOCTL_SPYRE_DEV_QUERY
 */
struct drm_spyre_dev_query {
	/** @type: enum drm_spyre_dev_query_type. */
	__u32 type;
	/** @size: in: bytes at @pointer; out: bytes the kernel knows. */
	__u32 size;
	/** @pointer: user buffer, or 0 to ask for @size only. */
	__u64 pointer;
};

/**
 * struct drm_spyre_card_info - what the card is
 */
struct drm_spyre_card_info {
	/** @index: index of the card, the N of cards=. */
	__u32 index;
	/** @num_cores: cores. */
	__u32 num_cores;
	/** @lx_bytes: LX scratchpad bytes per core. */
	__u32 lx_bytes;
	/** @stick_bytes: alignment and transfer unit, 128. */
	__u32 stick_bytes;
	/** @clock_khz: modelled clock. */
	__u32 clock_khz;
	/** @program_version: newest program encoding that the card runs. */
	__u32 program_version;
	/** @lpddr_bytes: device memory capacity. */
	__u64 lpddr_bytes;
	/** @generation: counts resets of the card. */
	__u64 generation;
	/** @unit: arithmetic unit of the host, NUL terminated. */
	__u8 unit[16];
	/** @uuid: 16 bytes that name the card for as long as it is loaded. */
	__u8 uuid[16];
	/** @vf: 0 for the card itself (PF), else the number of this virtual function. Since 1.2. */
	__u32 vf;
	/** @num_vfs: PF: virtual functions that it is split into; VF: 0. Since 1.2. */
	__u32 num_vfs;
};

/**
 * struct drm_spyre_memory_info - device memory as the calling file may have it
 *
 * free + used = total, always.  Files that were opened without CAP_SYS_RESOURCE
 * do not get a part of the card that is kept for other users; it is in @used.
 */
struct drm_spyre_memory_info {
	/** @total: capacity in bytes. */
	__u64 total;
	/** @used: bytes of device BOs and programs of all contexts, and what is kept from it. */
	__u64 used;
	/** @free: total - used, which is what BO_CREATE would grant this file now. */
	__u64 free;
	/** @context_used: bytes owned by the calling file. */
	__u64 context_used;
};

/**
 * struct drm_spyre_counters - running totals of the card since it was loaded
 *
 * With the module's counters_paranoid (the default) a caller without
 * CAP_PERFMON gets the totals of the calling file in place of the card's, as
 * struct drm_spyre_context_info has them; power and temperature are the card's.
 */
struct drm_spyre_counters {
	/** @timestamp_ns: CLOCK_MONOTONIC when the rest was read. */
	__u64 timestamp_ns;
	/** @busy_ns: host time during which at least one job ran. */
	__u64 busy_ns;
	/** @jobs: completed jobs. */
	__u64 jobs;
	/** @errors: jobs that failed, timed out or were cancelled. */
	__u64 errors;
	/** @cycles: modelled cycles. */
	__u64 cycles;
	/** @macs: PT multiply-adds. */
	__u64 macs;
	/** @bytes_read: LPDDR5 bytes read. */
	__u64 bytes_read;
	/** @bytes_written: LPDDR5 bytes written. */
	__u64 bytes_written;
	/** @power_mw: modelled power. */
	__u32 power_mw;
	/** @temperature_mc: modelled temperature, millidegrees Celsius. */
	__u32 temperature_mc;
};

/**
 * enum drm_spyre_context_state - health of a context (an open file)
 */
enum drm_spyre_context_state {
	/** @DRM_SPYRE_CONTEXT_OK: takes work. */
	DRM_SPYRE_CONTEXT_OK = 0,
	/** @DRM_SPYRE_CONTEXT_FAULTED: its work failed; CONTEXT_RESET brings it back. */
	DRM_SPYRE_CONTEXT_FAULTED = 1,
	/** @DRM_SPYRE_CONTEXT_STALE: the card was reset; open the node again. */
	DRM_SPYRE_CONTEXT_STALE = 2,
};

/**
 * enum drm_spyre_fault - why a context failed (append only)
 */
enum drm_spyre_fault {
	/** @DRM_SPYRE_FAULT_NONE: it has not. */
	DRM_SPYRE_FAULT_NONE = 0,
	/** @DRM_SPYRE_FAULT_TIMEOUT: a job ran past its queue's limit. -ETIME. */
	DRM_SPYRE_FAULT_TIMEOUT = 1,
	/** @DRM_SPYRE_FAULT_ACCESS: work reached outside the context's addresses. -EFAULT. */
	DRM_SPYRE_FAULT_ACCESS = 2,
	/** @DRM_SPYRE_FAULT_ESCAPE: a program did what its verification ruled out. -EFAULT. */
	DRM_SPYRE_FAULT_ESCAPE = 3,
	/** @DRM_SPYRE_FAULT_COMPUTE: a core or the DMA engine failed. -EIO. */
	DRM_SPYRE_FAULT_COMPUTE = 4,
};

/**
 * struct drm_spyre_context_info - the calling file: health, memory and counters
 *
 * Since 1.2.
 */
struct drm_spyre_context_info {
	/** @id: number of the context, drm-client-id of fdinfo. */
	__u64 id;
	/** @generation: that of the card when the context was opened or last reset. */
	__u64 generation;
	/** @state: enum drm_spyre_context_state. */
	__u32 state;
	/** @error: errno of the first failure, negative, or 0. */
	__s32 error;
	/** @fault: enum drm_spyre_fault of that failure. */
	__u32 fault;
	/** @fault_queue: queue that it happened on. */
	__u32 fault_queue;
	/** @fault_job: that queue's job, counted from 1. */
	__u64 fault_job;
	/** @fault_cb: control block of that job. */
	__u32 fault_cb;
	/** @num_queues: queues that exist. */
	__u32 num_queues;
	/** @fault_ns: CLOCK_MONOTONIC of the failure. */
	__u64 fault_ns;
	/** @memory_used: device memory in bytes. */
	__u64 memory_used;
	/** @busy_ns: host time that its jobs ran. */
	__u64 busy_ns;
	/** @jobs: jobs that ended. */
	__u64 jobs;
	/** @errors: of these, failed, timed out or cancelled. */
	__u64 errors;
	/** @cycles: modelled cycles. */
	__u64 cycles;
	/** @macs: PT multiply-adds. */
	__u64 macs;
	/** @bytes_read: LPDDR5 bytes read. */
	__u64 bytes_read;
	/** @bytes_written: LPDDR5 bytes written. */
	__u64 bytes_written;
	/** @preempted: times that a job of it made way for another context's. */
	__u64 preempted;
};

/** DRM_SPYRE_BO_DEVICE: LPDDR5, counted against the card's capacity. */
#define DRM_SPYRE_BO_DEVICE (1 << 0)
/** DRM_SPYRE_BO_HOST: pinned host memory for the DMA engine and for results. */
#define DRM_SPYRE_BO_HOST (1 << 1)

/**
 * struct drm_spyre_bo_create - argument of DRM_IOCTL_SPYRE_BO_CREATE
 *
 * Memory reads as zero.  -ENOSPC when the card's capacity is exhausted,
 * -ENOMEM when the host's is.
 */
struct drm_spyre_bo_create {
	/** @size: in: bytes, non-zero; out: rounded up to pages. */
	__u64 size;
	/** @flags: exactly one of DRM_SPYRE_BO_DEVICE and DRM_SPYRE_BO_HOST. */
	__u32 flags;
	/** @handle: out: GEM handle. */
	__u32 handle;
};

/**
 * struct drm_spyre_bo_mmap_offset - argument of DRM_IOCTL_SPYRE_BO_MMAP_OFFSET
 */
struct drm_spyre_bo_mmap_offset {
	/** @handle: GEM handle. */
	__u32 handle;
	/** @pad: MBZ. */
	__u32 pad;
	/** @offset: out: offset for mmap(2) on the node. */
	__u64 offset;
};

/** DRM_SPYRE_BO_IMPORTED: BO_INFO only: a dma-buf of another driver. */
#define DRM_SPYRE_BO_IMPORTED (1 << 2)

/**
 * struct drm_spyre_bo_info - argument of DRM_IOCTL_SPYRE_BO_INFO
 *
 * Since 1.2.
 */
struct drm_spyre_bo_info {
	/** @handle: GEM handle. */
	__u32 handle;
	/** @flags: out: DRM_SPYRE_BO_*. */
	__u32 flags;
	/** @size: out: bytes. */
	__u64 size;
	/** @resident: out: bytes that are backed by memory of the host. */
	__u64 resident;
};

/**
 * enum drm_spyre_vm_op - kinds of VM_BIND operation
 */
enum drm_spyre_vm_op {
	/** @DRM_SPYRE_VM_MAP: map a range of a device BO; replaces what was there. */
	DRM_SPYRE_VM_MAP = 0,
	/** @DRM_SPYRE_VM_UNMAP: unmap a range, splitting mappings if need be. */
	DRM_SPYRE_VM_UNMAP = 1,
};

/** DRM_SPYRE_VM_MAP_READONLY: programs and DMA may not write through it. */
#define DRM_SPYRE_VM_MAP_READONLY (1 << 0)

/**
 * struct drm_spyre_vm_bind_op - one operation
 */
struct drm_spyre_vm_bind_op {
	/** @op: enum drm_spyre_vm_op. */
	__u32 op;
	/** @flags: DRM_SPYRE_VM_MAP_*. */
	__u32 flags;
	/** @handle: MAP: device BO; UNMAP: 0. */
	__u32 handle;
	/** @pad: MBZ. */
	__u32 pad;
	/** @bo_offset: MAP: offset in the BO. */
	__u64 bo_offset;
	/** @va: device address, in one segment; page 0 stays unmapped. */
	__u64 va;
	/** @range: bytes, non-zero. */
	__u64 range;
};

/**
 * struct drm_spyre_array - an array of structs in user memory
 */
struct drm_spyre_array {
	/** @stride: bytes of one element as user space knows it. */
	__u32 stride;
	/** @count: elements. */
	__u32 count;
	/** @array: address of the first. */
	__u64 array;
};

/**
 * DRM_SPYRE_VM_BIND_ASYNC: the mappings take part in the order of fences
 *
 * The operations are checked and errors reported at once.  Work submitted from
 * here on sees the new mappings and starts behind the waits of @syncs; its
 * signals come when all waits, and those of earlier asynchronous binds, have.
 * All operations are done or none.  Since 1.2.
 */
#define DRM_SPYRE_VM_BIND_ASYNC (1 << 0)

/**
 * struct drm_spyre_vm_bind - argument of DRM_IOCTL_SPYRE_VM_BIND
 *
 * Operations are done in order.  Work queued before keeps the mappings that it
 * was submitted with.  On error, @done operations stand.
 */
struct drm_spyre_vm_bind {
	/** @ops: array of struct drm_spyre_vm_bind_op, at most 4096. */
	struct drm_spyre_array ops;
	/** @flags: DRM_SPYRE_VM_BIND_*. */
	__u32 flags;
	/** @done: out: operations carried out. */
	__u32 done;
	/** @syncs: ASYNC: array of struct drm_spyre_sync, at most 64; else MBZ. Since 1.2. */
	struct drm_spyre_array syncs;
};

/**
 * struct drm_spyre_program_create - argument of DRM_IOCTL_SPYRE_PROGRAM_CREATE
 *
 * The image is copied and verified.  A program that does not verify gives
 * -EINVAL, and @stop says why.
 */
struct drm_spyre_program_create {
	/** @data: address of the image (docs/isa.md). */
	__u64 data;
	/** @size: bytes, at most 64 MiB. */
	__u64 size;
	/** @flags: MBZ. */
	__u32 flags;
	/** @handle: out: program handle. */
	__u32 handle;
	/** @stop: out: enum spyre_stop of the verifier, 0 if it passed. */
	__u32 stop;
	/** @stop_step: out: step index. */
	__u32 stop_step;
	/** @stop_core: out: core. */
	__u32 stop_core;
	/** @stop_instr: out: instruction in the core's stream. */
	__u32 stop_instr;
	/** @stop_view: out: view of the instruction. */
	__u32 stop_view;
	/** @pad: MBZ. */
	__u32 pad;
	/** @stop_value: out: the offending number. */
	__u64 stop_value;
	/** @stop_limit: out: what it was held against. */
	__u64 stop_limit;
	/** @cycles: out: modelled cycles of one launch. */
	__u64 cycles;
};

/**
 * struct drm_spyre_program_destroy - argument of DRM_IOCTL_SPYRE_PROGRAM_DESTROY
 *
 * Queued launches of the program keep it alive.
 */
struct drm_spyre_program_destroy {
	/** @handle: program handle. */
	__u32 handle;
	/** @pad: MBZ. */
	__u32 pad;
};

/** DRM_SPYRE_PRIORITY_LOW: default class. */
#define DRM_SPYRE_PRIORITY_LOW 0
/** DRM_SPYRE_PRIORITY_HIGH: runs before the low class; takes CAP_SYS_NICE (-EACCES). */
#define DRM_SPYRE_PRIORITY_HIGH 1

/**
 * struct drm_spyre_queue_create - argument of DRM_IOCTL_SPYRE_QUEUE_CREATE
 *
 * A queue runs its programs on the cores of its partition; one that needs
 * more is refused by SUBMIT (-EINVAL).  Jobs on cores that do not meet run
 * beside each other, others take turns.
 */
struct drm_spyre_queue_create {
	/** @flags: MBZ. */
	__u32 flags;
	/** @priority: DRM_SPYRE_PRIORITY_*; HIGH is refused without CAP_SYS_NICE (-EACCES). */
	__u32 priority;
	/** @timeout_ms: limit of one submission, 0 = default (10000), at most 60000. */
	__u32 timeout_ms;
	/** @queue_id: out: id of the queue; a file has at most 256 (-ENOSPC). */
	__u32 queue_id;
	/** @core_first: first core of the queue's partition, 0 with @core_count 0. Since 1.2. */
	__u32 core_first;
	/** @core_count: cores of the queue's partition, 0 = all; see above. Since 1.2. */
	__u32 core_count;
};

/**
 * struct drm_spyre_queue_destroy - argument of DRM_IOCTL_SPYRE_QUEUE_DESTROY
 */
struct drm_spyre_queue_destroy {
	/** @queue_id: queue. */
	__u32 queue_id;
	/** @pad: MBZ. */
	__u32 pad;
};

/**
 * enum drm_spyre_queue_state - health of a queue
 */
enum drm_spyre_queue_state {
	/** @DRM_SPYRE_QUEUE_OK: takes work. */
	DRM_SPYRE_QUEUE_OK = 0,
	/** @DRM_SPYRE_QUEUE_KILLED: a job or its context failed; SUBMIT gives -ECANCELED. */
	DRM_SPYRE_QUEUE_KILLED = 1,
};

/**
 * struct drm_spyre_queue_query - argument of DRM_IOCTL_SPYRE_QUEUE_QUERY
 */
struct drm_spyre_queue_query {
	/** @queue_id: queue. */
	__u32 queue_id;
	/** @state: out: enum drm_spyre_queue_state. */
	__u32 state;
	/** @error: out: errno of the first failed job, negative, or 0. */
	__s32 error;
	/** @pad: MBZ. */
	__u32 pad;
	/** @submitted: out: jobs taken. */
	__u64 submitted;
	/** @completed: out: jobs finished, well or not. */
	__u64 completed;
};

#define DRM_SPYRE_DMA_H2D 0
#define DRM_SPYRE_DMA_D2H 1
#define DRM_SPYRE_DMA_MAX_DIMS 8
#define DRM_SPYRE_DMA_MAX_BOUNDS 8

/**
 * struct drm_spyre_dma_dim - one device dimension of a transfer
 */
struct drm_spyre_dma_dim {
	/** @count: extent; the last dimension is within the stick. */
	__u32 count;
	/** @pad: MBZ. */
	__u32 pad;
	/** @host_stride: bytes on the host for one step. */
	__u64 host_stride;
};

/**
 * struct drm_spyre_dma_bound - a linear bound: sum c[i] * coef[i] < limit
 */
struct drm_spyre_dma_bound {
	/** @limit: exclusive limit. */
	__u64 limit;
	/** @coef: one coefficient per dimension. */
	__u64 coef[DRM_SPYRE_DMA_MAX_DIMS];
};

/**
 * struct drm_spyre_dma - a tiled, converting transfer (docs/control-blocks.md)
 */
struct drm_spyre_dma {
	/** @direction: DRM_SPYRE_DMA_H2D or _D2H. */
	__u8 direction;
	/** @host_format: enum drm_spyre_format. */
	__u8 host_format;
	/** @device_format: enum drm_spyre_format. */
	__u8 device_format;
	/** @num_dims: 1..8. */
	__u8 num_dims;
	/** @num_bounds: 0..8. */
	__u8 num_bounds;
	/** @pad: MBZ. */
	__u8 pad[3];
	/** @host_offset: bytes from the start of the host span. */
	__u64 host_offset;
	/** @dim: dimensions, outermost first. */
	struct drm_spyre_dma_dim dim[DRM_SPYRE_DMA_MAX_DIMS];
	/** @bound: bounds; coordinates outside are padding. */
	struct drm_spyre_dma_bound bound[DRM_SPYRE_DMA_MAX_BOUNDS];
};

/**
 * enum drm_spyre_cb_type - kinds of control block
 */
enum drm_spyre_cb_type {
	/** @DRM_SPYRE_CB_EXEC: run a program. Uses program, num_args, args. */
	DRM_SPYRE_CB_EXEC = 1,
	/** @DRM_SPYRE_CB_DMA: tiled transfer. Uses desc, dst or src, host_*, size. */
	DRM_SPYRE_CB_DMA = 2,
	/** @DRM_SPYRE_CB_COPY: device to device. Uses dst, src, size. */
	DRM_SPYRE_CB_COPY = 3,
	/** @DRM_SPYRE_CB_FILL: Uses dst, size, pattern, pattern_size. */
	DRM_SPYRE_CB_FILL = 4,
	/** @DRM_SPYRE_CB_TIMESTAMP: only writes its result. */
	DRM_SPYRE_CB_TIMESTAMP = 5,
};

/**
 * struct drm_spyre_cb - a control block; fields that its type does not use are MBZ
 */
struct drm_spyre_cb {
	/** @type: enum drm_spyre_cb_type. */
	__u32 type;
	/** @flags: MBZ. */
	__u32 flags;
	/** @program: EXEC: program handle. */
	__u32 program;
	/** @num_args: EXEC: number of operand addresses, as the program says. */
	__u32 num_args;
	/** @args: EXEC: address of __u64 device addresses, 128-byte aligned each. */
	__u64 args;
	/** @desc: DMA: address of a struct drm_spyre_dma. */
	__u64 desc;
	/** @dst: device address (DMA H2D, COPY, FILL), 128-byte aligned for DMA. */
	__u64 dst;
	/** @src: device address (DMA D2H, COPY). */
	__u64 src;
	/** @size: DMA: bytes of the host span; COPY, FILL: device bytes. */
	__u64 size;
	/** @host_addr: DMA: address of the host span if @host_handle is 0. */
	__u64 host_addr;
	/** @host_handle: DMA: host BO that holds the span, or 0. */
	__u32 host_handle;
	/** @pattern_size: FILL: 1, 2, 4, 8 or 16. */
	__u32 pattern_size;
	/** @host_offset: DMA: offset of the span in the host BO. */
	__u64 host_offset;
	/** @pattern: FILL. */
	__u64 pattern[2];
	/** @reserved: MBZ. */
	__u64 reserved[3];
};

/**
 * enum drm_spyre_cb_state - progress of a control block
 */
enum drm_spyre_cb_state {
	/** @DRM_SPYRE_CB_PENDING: not finished. */
	DRM_SPYRE_CB_PENDING = 0,
	/** @DRM_SPYRE_CB_DONE: finished; @status says how. */
	DRM_SPYRE_CB_DONE = 1,
};

/**
 * struct drm_spyre_cb_result - what a finished control block reports
 *
 * Written to the submission's result BO before its fence signals; @state last.
 */
struct drm_spyre_cb_result {
	/** @state: enum drm_spyre_cb_state. */
	__u32 state;
	/** @status: 0, -ETIME, -EFAULT or -EIO (enum drm_spyre_fault), -ECANCELED, -ENODEV. */
	__s32 status;
	/** @cycles: modelled cycles. */
	__u64 cycles;
	/** @bytes_read: LPDDR5 bytes read. */
	__u64 bytes_read;
	/** @bytes_written: LPDDR5 bytes written. */
	__u64 bytes_written;
	/** @macs: PT multiply-adds. */
	__u64 macs;
	/** @start_ns: CLOCK_MONOTONIC when it started. */
	__u64 start_ns;
	/** @end_ns: CLOCK_MONOTONIC when it ended. */
	__u64 end_ns;
	/** @reserved: zero. */
	__u64 reserved;
};

/** DRM_SPYRE_SYNC_SIGNAL: signal when done; without it, wait before start. */
#define DRM_SPYRE_SYNC_SIGNAL (1u << 31)

/**
 * struct drm_spyre_sync - a wait or signal of a submission
 */
struct drm_spyre_sync {
	/** @handle: syncobj handle. */
	__u32 handle;
	/** @flags: DRM_SPYRE_SYNC_*. */
	__u32 flags;
	/** @point: timeline point, 0 for a binary syncobj. */
	__u64 point;
};

/**
 * struct drm_spyre_submit - argument of DRM_IOCTL_SPYRE_SUBMIT
 *
 * All control blocks are checked before any is queued; on error nothing was
 * queued and @error_cb is the index of the offending one.  Waiting for a
 * syncobj or point that has no fence yet gives -EINVAL.
 */
struct drm_spyre_submit {
	/** @queue_id: queue. */
	__u32 queue_id;
	/** @flags: MBZ. */
	__u32 flags;
	/** @cbs: array of struct drm_spyre_cb, 1 to 256. */
	struct drm_spyre_array cbs;
	/** @syncs: array of struct drm_spyre_sync, at most 64. */
	struct drm_spyre_array syncs;
	/** @result_handle: host BO for results, or 0. */
	__u32 result_handle;
	/** @error_cb: out: see above; 0xffffffff if no control block is at fault. */
	__u32 error_cb;
	/** @result_offset: where results[count] start in the BO, 64-byte aligned. */
	__u64 result_offset;
};

/**
 * struct drm_spyre_reset - argument of DRM_IOCTL_SPYRE_RESET
 *
 * Kills all queues of the card (their error becomes -EIO), stops what runs,
 * clears the scratchpads and returns when the card is seen to answer, -EIO if
 * it does not.  Other files that are open are stale from then on: what would
 * create or queue something gives -EIO, all else works, so that they can look
 * and close.  The calling file goes on, with new queues.
 */
struct drm_spyre_reset {
	/** @flags: MBZ. */
	__u32 flags;
	/** @pad: MBZ. */
	__u32 pad;
	/** @generation: out: that of the card, one more than before. */
	__u64 generation;
};

/**
 * struct drm_spyre_context_reset - argument of DRM_IOCTL_SPYRE_CONTEXT_RESET
 *
 * Kills the queues of the calling file, stops what runs, waits until the card
 * has let go of it and clears the mark of a failure: the file may create
 * queues again.  Queues stay dead; memory, mappings and programs stay.  A
 * stale file gives -EIO.  Since 1.2.
 */
struct drm_spyre_context_reset {
	/** @flags: MBZ. */
	__u32 flags;
	/** @queues: out: queues that were killed. */
	__u32 queues;
};

/**
 * DRM_SPYRE_URING_SUBMIT: cmd_op of an IORING_OP_URING_CMD on the node
 *
 * The ring has 128-byte SQEs (IORING_SETUP_SQE128); the command area holds a
 * struct drm_spyre_submit and zeros behind it (-E2BIG), and the same rules hold
 * as for the ioctl.  The CQE comes when all control blocks are done: res is 0,
 * or -errno as of the first that failed, or why nothing was queued.  With
 * IORING_SETUP_CQE32 the first extra word is the sum of modelled cycles, or
 * error_cb if nothing was queued.  With IORING_URING_CMD_FIXED and buf_index,
 * DMA host spans without a handle lie in that registered buffer.  A ring or
 * task that ends with work in flight stops the queues that the work is on.
 */
#define DRM_SPYRE_URING_SUBMIT 1

/**
 * DRM_SPYRE_URING_QUEUE: like DRM_SPYRE_URING_SUBMIT, but done once queued
 *
 * The CQE says whether the submission was taken, as the ioctl's return value
 * does, and @syncs and results say the rest: nothing of the ring stays in
 * flight, so neither the ring nor the thread that submitted has to outlive
 * the work.  res is 0 or why nothing was queued; with IORING_SETUP_CQE32 the
 * first extra word is error_cb of a refusal, else 0.  Without SQPOLL the CQE
 * is there when io_uring_enter() returns, but for imported buffers that wait
 * for other drivers.  Registered buffers may go while
 * the work runs, so IORING_URING_CMD_FIXED gives -EINVAL.  Since 1.2.
 */
#define DRM_SPYRE_URING_QUEUE 2

#define DRM_IOCTL_SPYRE_DEV_QUERY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_DEV_QUERY, struct drm_spyre_dev_query)
#define DRM_IOCTL_SPYRE_BO_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_BO_CREATE, struct drm_spyre_bo_create)
#define DRM_IOCTL_SPYRE_BO_MMAP_OFFSET \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_BO_MMAP_OFFSET, struct drm_spyre_bo_mmap_offset)
#define DRM_IOCTL_SPYRE_VM_BIND \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_VM_BIND, struct drm_spyre_vm_bind)
#define DRM_IOCTL_SPYRE_PROGRAM_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_PROGRAM_CREATE, struct drm_spyre_program_create)
#define DRM_IOCTL_SPYRE_PROGRAM_DESTROY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_PROGRAM_DESTROY, struct drm_spyre_program_destroy)
#define DRM_IOCTL_SPYRE_QUEUE_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_QUEUE_CREATE, struct drm_spyre_queue_create)
#define DRM_IOCTL_SPYRE_QUEUE_DESTROY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_QUEUE_DESTROY, struct drm_spyre_queue_destroy)
#define DRM_IOCTL_SPYRE_QUEUE_QUERY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_QUEUE_QUERY, struct drm_spyre_queue_query)
#define DRM_IOCTL_SPYRE_SUBMIT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_SUBMIT, struct drm_spyre_submit)
#define DRM_IOCTL_SPYRE_RESET \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_RESET, struct drm_spyre_reset)
#define DRM_IOCTL_SPYRE_CONTEXT_RESET \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_CONTEXT_RESET, struct drm_spyre_context_reset)
#define DRM_IOCTL_SPYRE_BO_INFO \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_BO_INFO, struct drm_spyre_bo_info)

#if defined(__cplusplus)
}
#endif

#endif /* _UAPI_SPYRE_ACCEL_H_ */

/* SPDX-License-Identifier: MIT */
/*
 * The interface between spyre_vdev.ko and user space.
 *
 * Conventions: handles are non-zero; flags, pads and reserved fields that
 * this version does not define must be zero (-EINVAL); structs grow only
 * at their end; arrays carry their stride, so either side may be newer.
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
	/** @DRM_SPYRE_PROGRAM_DESTROY: release a program handle. */
	DRM_SPYRE_PROGRAM_DESTROY,
	/** @DRM_SPYRE_QUEUE_CREATE: create an in-order queue. */
	DRM_SPYRE_QUEUE_CREATE,
	/** @DRM_SPYRE_QUEUE_DESTROY: destroy a queue; its pending work is cancelled. */
	DRM_SPYRE_QUEUE_DESTROY,
	/** @DRM_SPYRE_QUEUE_QUERY: query the state of a queue. */
	DRM_SPYRE_QUEUE_QUERY,
	/** @DRM_SPYRE_SUBMIT: queue control blocks. */
	DRM_SPYRE_SUBMIT,
	/** @DRM_SPYRE_RESET: reset the card (CAP_SYS_ADMIN). Since 1.1. */
	DRM_SPYRE_RESET,
	/** @DRM_SPYRE_CONTEXT_RESET: reset the caller's context after a fault. Since 1.2. */
	DRM_SPYRE_CONTEXT_RESET,
	/** @DRM_SPYRE_BO_INFO: query flags and size of a buffer object. Since 1.2. */
	DRM_SPYRE_BO_INFO,
};

/**
 * enum drm_spyre_format - data formats (append only; the numbers are this project's)
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
 * enum drm_spyre_dev_query_type - selects the struct that DEV_QUERY returns
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
	/** @size: in: bytes at @pointer; out: bytes of the struct in this kernel. */
	__u32 size;
	/** @pointer: user buffer, or 0 to query only @size. */
	__u64 pointer;
};

/**
 * struct drm_spyre_card_info - properties of the card
 */
struct drm_spyre_card_info {
	/** @index: index of the card, the N of cards=. */
	__u32 index;
	/** @num_cores: number of cores. */
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
	/** @generation: incremented by each reset of the card. */
	__u64 generation;
	/** @unit: arithmetic unit of the host, NUL terminated. */
	__u8 unit[16];
	/** @uuid: identifies the card until the driver is unbound. */
	__u8 uuid[16];
	/** @vf: 0 for the card itself (PF), else the number of this virtual function. Since 1.2. */
	__u32 vf;
	/** @num_vfs: PF: number of its virtual functions; VF: 0. Since 1.2. */
	__u32 num_vfs;
};

/**
 * struct drm_spyre_memory_info - device memory from the point of view of the calling file
 *
 * @free + @used is always @total.  Files that were opened without
 * CAP_SYS_RESOURCE cannot allocate a part of the card that is reserved for other
 * users; that part is included in @used.
 */
struct drm_spyre_memory_info {
	/** @total: capacity in bytes. */
	__u64 total;
	/** @used: device BOs and programs of all contexts, and memory reserved for other users. */
	__u64 used;
	/** @free: total - used: the amount that BO_CREATE would grant this file now. */
	__u64 free;
	/** @context_used: bytes owned by the calling file. */
	__u64 context_used;
	/** @peak: the most bytes that contexts had in use at a time. Since 1.5. */
	__u64 peak;
	/** @context_peak: the most bytes that the calling file owned at a time. Since 1.5. */
	__u64 context_peak;
};

/**
 * struct drm_spyre_counters - running totals of the card since it was loaded
 *
 * With the module's counters_paranoid (the default) a caller without
 * CAP_PERFMON gets the totals of the calling file instead of the card's (the same
 * as in struct drm_spyre_context_info); power and temperature are the card's.
 */
struct drm_spyre_counters {
	/** @timestamp_ns: CLOCK_MONOTONIC at which the other fields were read. */
	__u64 timestamp_ns;
	/** @busy_ns: host time during which at least one job ran. */
	__u64 busy_ns;
	/** @jobs: jobs that ended, including those in @errors. */
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
	/** @rdma_read: bytes that PEER_COPY brought from other cards. Since 1.4. */
	__u64 rdma_read;
	/** @rdma_written: bytes that PEER_COPY took to other cards. Since 1.4. */
	__u64 rdma_written;
	/** @pcie_rx_bytes: bytes that DMA brought from host memory. Since 1.5. */
	__u64 pcie_rx_bytes;
	/** @pcie_tx_bytes: bytes that DMA took to host memory. Since 1.5. */
	__u64 pcie_tx_bytes;
	/** @pt_cycles: modelled cycles of the PT arrays, summed over the cores. Since 1.5. */
	__u64 pt_cycles;
	/** @sfu_cycles: modelled cycles of the SFUs, summed over the cores. Since 1.5. */
	__u64 sfu_cycles;
	/** @dma_cycles: modelled cycles of DMA, copies and fills. Since 1.5. */
	__u64 dma_cycles;
	/** @launches: programs that were run to their end. Since 1.5. */
	__u64 launches;
	/** @copies: DMA transfers, copies and fills that were done. Since 1.5. */
	__u64 copies;
	/** @energy_mj: modelled energy in millijoules. Since 1.5. */
	__u64 energy_mj;
	/** @faults_timeout: contexts that failed with DRM_SPYRE_FAULT_TIMEOUT. Since 1.5. */
	__u64 faults_timeout;
	/** @faults_access: contexts that failed with DRM_SPYRE_FAULT_ACCESS. Since 1.5. */
	__u64 faults_access;
	/** @faults_escape: contexts that failed with DRM_SPYRE_FAULT_ESCAPE. Since 1.5. */
	__u64 faults_escape;
	/** @faults_compute: contexts that failed with DRM_SPYRE_FAULT_COMPUTE. Since 1.5. */
	__u64 faults_compute;
};

/**
 * enum drm_spyre_context_state - health of a context (an open file)
 */
enum drm_spyre_context_state {
	/** @DRM_SPYRE_CONTEXT_OK: accepts work. */
	DRM_SPYRE_CONTEXT_OK = 0,
	/** @DRM_SPYRE_CONTEXT_FAULTED: its work failed; CONTEXT_RESET makes it usable again. */
	DRM_SPYRE_CONTEXT_FAULTED = 1,
	/** @DRM_SPYRE_CONTEXT_STALE: the card was reset; open the node again. */
	DRM_SPYRE_CONTEXT_STALE = 2,
};

/**
 * enum drm_spyre_fault - reason for the failure of a context (append only)
 */
enum drm_spyre_fault {
	/** @DRM_SPYRE_FAULT_NONE: no failure. */
	DRM_SPYRE_FAULT_NONE = 0,
	/** @DRM_SPYRE_FAULT_TIMEOUT: a job exceeded its queue's time limit. -ETIME. */
	DRM_SPYRE_FAULT_TIMEOUT = 1,
	/**
	 * @DRM_SPYRE_FAULT_ACCESS: access outside the context's addresses, or an index of a
	 * program that is not below its extent. -EFAULT.
	 */
	DRM_SPYRE_FAULT_ACCESS = 2,
	/** @DRM_SPYRE_FAULT_ESCAPE: a program did what verification had ruled out. -EFAULT. */
	DRM_SPYRE_FAULT_ESCAPE = 3,
	/** @DRM_SPYRE_FAULT_COMPUTE: a core or the DMA engine failed. -EIO. */
	DRM_SPYRE_FAULT_COMPUTE = 4,
};

/**
 * struct drm_spyre_context_info - health, memory and counters of the calling file
 *
 * Since 1.2.
 */
struct drm_spyre_context_info {
	/** @id: number of the context, drm-client-id in fdinfo. */
	__u64 id;
	/** @generation: the card's generation at open() or at the context's last RESET. */
	__u64 generation;
	/** @state: enum drm_spyre_context_state. */
	__u32 state;
	/** @error: errno of the first failure, negative, or 0. */
	__s32 error;
	/** @fault: enum drm_spyre_fault of that failure. */
	__u32 fault;
	/** @fault_queue: queue of the failed job. */
	__u32 fault_queue;
	/** @fault_job: number of the failed job on its queue, counted from 1. */
	__u64 fault_job;
	/** @fault_cb: index of the failed control block in the job. */
	__u32 fault_cb;
	/** @num_queues: number of queues. */
	__u32 num_queues;
	/** @fault_ns: CLOCK_MONOTONIC time of the failure. */
	__u64 fault_ns;
	/** @memory_used: bytes of device memory owned by the context. */
	__u64 memory_used;
	/** @busy_ns: host time during which its jobs ran. */
	__u64 busy_ns;
	/** @jobs: jobs that ended. */
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
	/** @preempted: number of times that its jobs were preempted by another context. */
	__u64 preempted;
	/** @rdma_read: bytes that PEER_COPY brought from other cards. Since 1.4. */
	__u64 rdma_read;
	/** @rdma_written: bytes that PEER_COPY took to other cards. Since 1.4. */
	__u64 rdma_written;
	/** @pcie_rx_bytes: bytes that DMA brought from host memory. Since 1.5. */
	__u64 pcie_rx_bytes;
	/** @pcie_tx_bytes: bytes that DMA took to host memory. Since 1.5. */
	__u64 pcie_tx_bytes;
	/** @pt_cycles: modelled cycles of the PT arrays, summed over the cores. Since 1.5. */
	__u64 pt_cycles;
	/** @sfu_cycles: modelled cycles of the SFUs, summed over the cores. Since 1.5. */
	__u64 sfu_cycles;
	/** @dma_cycles: modelled cycles of DMA, copies and fills. Since 1.5. */
	__u64 dma_cycles;
	/** @launches: programs that were run to their end. Since 1.5. */
	__u64 launches;
	/** @copies: DMA transfers, copies and fills that were done. Since 1.5. */
	__u64 copies;
	/** @energy_mj: modelled energy of its work alone, in mJ. Since 1.5. */
	__u64 energy_mj;
	/** @faults_timeout: failures with DRM_SPYRE_FAULT_TIMEOUT. Since 1.5. */
	__u64 faults_timeout;
	/** @faults_access: failures with DRM_SPYRE_FAULT_ACCESS. Since 1.5. */
	__u64 faults_access;
	/** @faults_escape: failures with DRM_SPYRE_FAULT_ESCAPE. Since 1.5. */
	__u64 faults_escape;
	/** @faults_compute: failures with DRM_SPYRE_FAULT_COMPUTE. Since 1.5. */
	__u64 faults_compute;
	/** @resets: CONTEXT_RESETs that succeeded. Since 1.5. */
	__u64 resets;
};

/** DRM_SPYRE_BO_DEVICE: LPDDR5, counted against the card's capacity. */
#define DRM_SPYRE_BO_DEVICE (1 << 0)
/** DRM_SPYRE_BO_HOST: pinned host memory for the DMA engine and for results. */
#define DRM_SPYRE_BO_HOST (1 << 1)

/**
 * struct drm_spyre_bo_create - argument of DRM_IOCTL_SPYRE_BO_CREATE
 *
 * The memory is zeroed.  -ENOSPC if the card's capacity is exhausted, -ENOMEM if
 * the host's memory is.
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
 * DRM_SPYRE_BO_PEER: BO_INFO only: device memory of another card or VF
 *
 * Made by PRIME_FD_TO_HANDLE from the dma-buf of a device BO.  PEER_COPY is its only
 * use: as a mapping, host span or result BO it is refused (-EXDEV).  Since 1.4; older
 * kernels make a BO of host memory of it.
 */
#define DRM_SPYRE_BO_PEER (1 << 3)

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
	/** @resident: out: bytes backed by host memory. */
	__u64 resident;
};

/**
 * enum drm_spyre_vm_op - kinds of VM_BIND operation
 */
enum drm_spyre_vm_op {
	/** @DRM_SPYRE_VM_MAP: map a range of a device BO; replaces existing mappings. */
	DRM_SPYRE_VM_MAP = 0,
	/** @DRM_SPYRE_VM_UNMAP: unmap a range, splitting mappings where necessary. */
	DRM_SPYRE_VM_UNMAP = 1,
};

/** DRM_SPYRE_VM_MAP_READONLY: programs and DMA cannot write through the mapping. */
#define DRM_SPYRE_VM_MAP_READONLY (1 << 0)

/**
 * struct drm_spyre_vm_bind_op - one operation of VM_BIND
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
	/** @stride: size of one element in bytes, as user space knows it; at most 4096. */
	__u32 stride;
	/** @count: number of elements. */
	__u32 count;
	/** @array: address of the first element. */
	__u64 array;
};

/**
 * DRM_SPYRE_VM_BIND_ASYNC: the mappings are ordered by fences
 *
 * The operations are checked, and errors reported, before the call returns.  Work
 * submitted from here on sees the new mappings and starts after the waits of
 * @syncs; the signals of @syncs are sent once all of its waits, and those of
 * earlier asynchronous binds, are over.  Either all operations are done, or none.
 * Since 1.2.
 */
#define DRM_SPYRE_VM_BIND_ASYNC (1 << 0)

/**
 * struct drm_spyre_vm_bind - argument of DRM_IOCTL_SPYRE_VM_BIND
 *
 * Operations are done in order.  Work that is already queued keeps the mappings
 * that it was submitted with.  On error, the first @done operations remain in
 * effect.
 */
struct drm_spyre_vm_bind {
	/** @ops: array of struct drm_spyre_vm_bind_op, at most 4096. */
	struct drm_spyre_array ops;
	/** @flags: DRM_SPYRE_VM_BIND_*. */
	__u32 flags;
	/** @done: out: number of operations done. */
	__u32 done;
	/** @syncs: ASYNC: array of struct drm_spyre_sync, at most 64; else MBZ. Since 1.2. */
	struct drm_spyre_array syncs;
};

/**
 * struct drm_spyre_program_create - argument of DRM_IOCTL_SPYRE_PROGRAM_CREATE
 *
 * The image is copied and verified.  If verification fails, the call returns
 * -EINVAL and @stop is the reason.
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
	/** @stop: out: enum spyre_stop of the verifier, 0 if verification passed. */
	__u32 stop;
	/** @stop_step: out: index of the step. */
	__u32 stop_step;
	/** @stop_core: out: core. */
	__u32 stop_core;
	/** @stop_instr: out: index of the instruction in the core's stream. */
	__u32 stop_instr;
	/** @stop_view: out: view of the instruction. */
	__u32 stop_view;
	/** @pad: MBZ. */
	__u32 pad;
	/** @stop_value: out: the offending value. */
	__u64 stop_value;
	/** @stop_limit: out: the limit that @stop_value violates. */
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
/** DRM_SPYRE_PRIORITY_HIGH: runs before the low class; requires CAP_SYS_NICE (-EACCES). */
#define DRM_SPYRE_PRIORITY_HIGH 1

/**
 * struct drm_spyre_queue_create - argument of DRM_IOCTL_SPYRE_QUEUE_CREATE
 *
 * A queue runs its programs on the cores of its partition; SUBMIT rejects a
 * program that needs more cores (-EINVAL).  Jobs on disjoint cores run in
 * parallel, others share the cores in time slices.
 */
struct drm_spyre_queue_create {
	/** @flags: MBZ. */
	__u32 flags;
	/** @priority: DRM_SPYRE_PRIORITY_*; HIGH requires CAP_SYS_NICE (-EACCES). */
	__u32 priority;
	/** @timeout_ms: time limit of one submission, 0 = default (10000), at most 60000. */
	__u32 timeout_ms;
	/** @queue_id: out: id of the queue; a file has at most 256 (-ENOSPC). */
	__u32 queue_id;
	/** @core_first: first core of the queue's partition, 0 with @core_count 0. Since 1.2. */
	__u32 core_first;
	/** @core_count: number of cores of the queue's partition, 0 = all; see above. Since 1.2. */
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
	/** @DRM_SPYRE_QUEUE_OK: accepts work. */
	DRM_SPYRE_QUEUE_OK = 0,
	/** @DRM_SPYRE_QUEUE_KILLED: a job or the context failed; SUBMIT returns -ECANCELED. */
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
	/** @submitted: out: number of accepted jobs. */
	__u64 submitted;
	/** @completed: out: number of finished jobs, successful or not. */
	__u64 completed;
};

#define DRM_SPYRE_DMA_H2D 0
#define DRM_SPYRE_DMA_D2H 1
#define DRM_SPYRE_DMA_MAX_DIMS 8
#define DRM_SPYRE_DMA_MAX_BOUNDS 8

/**
 * DRM_SPYRE_DMA_BOX: the device side has strides as well, in place of bounds
 *
 * bound[0].limit is the distance from the device address to coordinate 0, and
 * bound[0].coef[i] that between neighbours of dimension i on the device, both in
 * bytes; num_bounds and the rest of bound[] MBZ.  The transfer moves every
 * coordinate and leaves all other bytes on either side as they are.  A host
 * element outside of the host span is -EINVAL.  Older kernels refuse the flag
 * (-EINVAL); the version of the driver says which ones know it.  Since 1.3.
 */
#define DRM_SPYRE_DMA_BOX (1 << 0)

/**
 * struct drm_spyre_dma_dim - one device dimension of a transfer
 */
struct drm_spyre_dma_dim {
	/** @count: extent; without BOX the last dimension is the one within the stick. */
	__u32 count;
	/** @pad: MBZ. */
	__u32 pad;
	/** @host_stride: bytes between neighbours on the host. */
	__u64 host_stride;
};

/**
 * struct drm_spyre_dma_bound - a linear bound: sum c[i] * coef[i] < limit
 */
struct drm_spyre_dma_bound {
	/** @limit: exclusive limit; BOX: see there. */
	__u64 limit;
	/** @coef: one coefficient per dimension; BOX: see there. */
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
	/** @num_dims: number of dimensions, 1..8. */
	__u8 num_dims;
	/** @num_bounds: number of bounds, 0..8; BOX: 0. */
	__u8 num_bounds;
	/** @flags: DRM_SPYRE_DMA_BOX. Since 1.3. */
	__u8 flags;
	/** @pad: MBZ. */
	__u8 pad[2];
	/** @host_offset: bytes from the start of the host span. */
	__u64 host_offset;
	/** @dim: dimensions, outermost first. */
	struct drm_spyre_dma_dim dim[DRM_SPYRE_DMA_MAX_DIMS];
	/** @bound: bounds; coordinates outside of any of them are padding. BOX: see there. */
	struct drm_spyre_dma_bound bound[DRM_SPYRE_DMA_MAX_BOUNDS];
};

/** DRM_SPYRE_PEER_READ: PEER_COPY from the BO to the context's memory. */
#define DRM_SPYRE_PEER_READ 0
/** DRM_SPYRE_PEER_WRITE: PEER_COPY from the context's memory to the BO. */
#define DRM_SPYRE_PEER_WRITE 1

/**
 * struct drm_spyre_peer_copy - rows of bytes between two memories (docs/control-blocks.md)
 *
 * Since 1.4.
 */
struct drm_spyre_peer_copy {
	/** @direction: DRM_SPYRE_PEER_READ or _WRITE. */
	__u32 direction;
	/** @handle: PEER BO, or device BO of this card. */
	__u32 handle;
	/** @offset: of the first row in the BO. */
	__u64 offset;
	/** @rows: number of rows, 1..2^31. */
	__u64 rows;
	/** @row_bytes: bytes of a row, non-zero. */
	__u64 row_bytes;
	/** @stride: from row to row in the BO, at least @row_bytes if there are several. */
	__u64 stride;
	/** @local_stride: from row to row in the context's memory, likewise. */
	__u64 local_stride;
	/** @reserved: MBZ. */
	__u64 reserved[2];
};

/**
 * enum drm_spyre_cb_type - kinds of control block
 */
enum drm_spyre_cb_type {
	/** @DRM_SPYRE_CB_EXEC: run a program. Uses program, num_args, args. */
	DRM_SPYRE_CB_EXEC = 1,
	/** @DRM_SPYRE_CB_DMA: tiled transfer. Uses desc, dst or src, host_*, size. */
	DRM_SPYRE_CB_DMA = 2,
	/** @DRM_SPYRE_CB_COPY: copy from device to device. Uses dst, src, size. */
	DRM_SPYRE_CB_COPY = 3,
	/** @DRM_SPYRE_CB_FILL: fill with a pattern. Uses dst, size, pattern, pattern_size. */
	DRM_SPYRE_CB_FILL = 4,
	/** @DRM_SPYRE_CB_TIMESTAMP: only writes its result. */
	DRM_SPYRE_CB_TIMESTAMP = 5,
	/** @DRM_SPYRE_CB_PEER_COPY: copy between cards. Uses desc, dst or src. Since 1.4. */
	DRM_SPYRE_CB_PEER_COPY = 6,
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
	/** @num_args: EXEC: number of operand addresses, equal to that of the program. */
	__u32 num_args;
	/** @args: EXEC: address of __u64 device addresses, 128-byte aligned each. */
	__u64 args;
	/** @desc: address of a struct drm_spyre_dma, or PEER_COPY: drm_spyre_peer_copy. */
	__u64 desc;
	/** @dst: device address (DMA H2D, COPY, FILL, PEER READ), 128-byte aligned for DMA. */
	__u64 dst;
	/** @src: device address (DMA D2H, COPY, PEER WRITE). */
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
	/** @pattern: FILL: the pattern, in its first @pattern_size bytes. */
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
	/** @DRM_SPYRE_CB_DONE: finished; @status has the outcome. */
	DRM_SPYRE_CB_DONE = 1,
};

/**
 * struct drm_spyre_cb_result - result of a control block
 *
 * Written to the submission's result BO before its fence signals, @state last.
 * @status is 0, -ETIME, -EFAULT or -EIO (enum drm_spyre_fault), -ECANCELED, or -ENODEV;
 * -ENOLINK if the other card of a PEER_COPY is gone or was reset, or the context that
 * owns its memory has failed.
 */
struct drm_spyre_cb_result {
	/** @state: enum drm_spyre_cb_state. */
	__u32 state;
	/** @status: 0, or one of those above, negative. */
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
	/** @rdma: PEER_COPY: bytes to or from another card; else zero. Since 1.4. */
	__u64 rdma;
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
 * queued and @error_cb is the index of the offending one.  Waiting for a syncobj
 * or point that has no fence yet returns -EINVAL.
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
	/** @error_cb: out: see above; 0xffffffff if the error is not in a control block. */
	__u32 error_cb;
	/** @result_offset: offset of results[count] in the BO, 64-byte aligned. */
	__u64 result_offset;
};

/**
 * struct drm_spyre_reset - argument of DRM_IOCTL_SPYRE_RESET
 *
 * Kills all queues of the card (their error becomes -EIO), stops running work,
 * clears the scratchpads and returns when the card has responded, -EIO if it does
 * not.  Other open files become stale: calls that create or queue anything return
 * -EIO, all others work, so that these files can query their state and close.  The
 * calling file can continue with new queues.
 */
struct drm_spyre_reset {
	/** @flags: MBZ. */
	__u32 flags;
	/** @pad: MBZ. */
	__u32 pad;
	/** @generation: out: new generation of the card, one more than before. */
	__u64 generation;
};

/**
 * struct drm_spyre_context_reset - argument of DRM_IOCTL_SPYRE_CONTEXT_RESET
 *
 * Kills the queues of the calling file, stops its running work, waits until the
 * card has released it and clears the mark of a failure, so that the file can
 * create queues again.  Existing queues stay dead; memory, mappings and programs
 * are kept.  A stale file gets -EIO.  Since 1.2.
 */
struct drm_spyre_context_reset {
	/** @flags: MBZ. */
	__u32 flags;
	/** @queues: out: number of killed queues. */
	__u32 queues;
};

/**
 * DRM_SPYRE_URING_SUBMIT: cmd_op of an IORING_OP_URING_CMD on the node
 *
 * The ring has 128-byte SQEs (IORING_SETUP_SQE128); the command area holds a
 * struct drm_spyre_submit followed by zeros (-E2BIG), and the rules of the ioctl
 * apply.  The CQE is posted when all control blocks are done: res is 0, the
 * -errno of the first block that failed, or the -errno for which nothing was
 * queued.  With IORING_SETUP_CQE32 the first extra word is the sum of modelled
 * cycles, or error_cb if nothing was queued.  With IORING_URING_CMD_FIXED and
 * buf_index, DMA host spans without a handle lie in that registered buffer.  When
 * a ring or task ends with work in flight, the queues of that work are killed.
 */
#define DRM_SPYRE_URING_SUBMIT 1

/**
 * DRM_SPYRE_URING_QUEUE: like DRM_SPYRE_URING_SUBMIT, but completes once queued
 *
 * Like the ioctl's return value, the CQE says whether the submission was accepted;
 * @syncs and results report the rest.  Nothing of the ring stays in flight, so
 * neither the ring nor the submitting thread has to outlive the work.  res is 0 or
 * the -errno for which nothing was queued; with IORING_SETUP_CQE32 the first extra
 * word is error_cb of a rejection, else 0.  Without SQPOLL the CQE is posted before
 * io_uring_enter() returns, except for imported buffers that wait for other
 * drivers.  Registered buffers may be unregistered while the work runs, so
 * IORING_URING_CMD_FIXED returns -EINVAL.  Since 1.2.
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

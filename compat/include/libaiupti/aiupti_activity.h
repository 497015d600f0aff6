/* SPDX-License-Identifier: MIT */
/*
 * Activity records for a profiler: kernels, copies, fills, memory and runtime calls.
 *
 * The profiler registers two callbacks, enables kinds of records, and calls
 * aiuptiFlushAllActivities(), which asks for buffers, fills them with the records so far,
 * in the order of their start times, and hands them back. All times are in nanoseconds
 * since the epoch. Work and the runtime call that queued it have the same correlation_id.
 *
 * The names are those that torch-spyre's torch_spyre/csrc/profiler at a312898 uses. The
 * numbers and the records' layouts are this project's.
 */
#ifndef AIUPTI_ACTIVITY_H
#define AIUPTI_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

#include <flex/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum AIUpti_ResultTypes {
	AIUPTI_SUCCESS = 0,
	/** A NULL pointer, or a buffer that does not hold records. */
	AIUPTI_ERROR_INVALID_PARAMETER = 1,
	/** Not a kind of activity. */
	AIUPTI_ERROR_INVALID_KIND = 2,
	/** There is no further record. */
	AIUPTI_ERROR_MAX_LIMIT_REACHED = 3,
	AIUPTI_ERROR_OUT_OF_MEMORY = 4,
	/** The activity log of the runtime cannot be opened or read. */
	AIUPTI_ERROR_UNKNOWN = 5,
} AIUpti_ResultTypes;

/** MEMCPY2, SYNCHRONIZATION and DRIVER can be enabled, but have no records. */
typedef enum AIUpti_ActivityKind {
	AIUPTI_ACTIVITY_KIND_INVALID = 0,
	AIUPTI_ACTIVITY_KIND_MEMCPY = 1,
	AIUPTI_ACTIVITY_KIND_MEMCPY2 = 2,
	AIUPTI_ACTIVITY_KIND_MEMSET = 3,
	AIUPTI_ACTIVITY_KIND_MEMORY = 4,
	AIUPTI_ACTIVITY_KIND_CMPT = 5,
	AIUPTI_ACTIVITY_KIND_RUNTIME = 6,
	AIUPTI_ACTIVITY_KIND_DRIVER = 7,
	AIUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 8,
} AIUpti_ActivityKind;

/** Direction of a copy. PTOP is between two addresses of cards, also of one card. */
typedef enum AIUpti_ActivityMemcpyKind {
	AIUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN = 0,
	AIUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
	AIUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
	AIUPTI_ACTIVITY_MEMCPY_KIND_PTOP = 3,
} AIUpti_ActivityMemcpyKind;

typedef enum AIUpti_ActivityMemoryOperationType {
	AIUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_INVALID = 0,
	AIUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION = 1,
	AIUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE = 2,
} AIUpti_ActivityMemoryOperationType;

/** Common start of all records: the kind of the activity. */
typedef struct AIUpti_Activity {
	uint8_t kind;
} AIUpti_Activity;

/** RUNTIME: a call into the runtime. */
typedef struct AIUpti_ActivityAPI {
	uint8_t kind;
	/** An AIUpti_runtime_api_trace_cbid. */
	uint32_t cbid;
	uint32_t process_id;
	uint32_t thread_id;
	uint64_t correlation_id;
	uint64_t start;
	uint64_t end;
	/** Bytes of a copy, control blocks of a launch or fill. */
	uint64_t data;
} AIUpti_ActivityAPI;

/** CMPT: a program that ran. */
typedef struct AIUpti_ActivityCompute {
	uint8_t kind;
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
	uint64_t correlation_id;
	/** Begin and end of the call that queued it, not later than its start. */
	uint64_t queued;
	uint64_t submitted;
	uint64_t start;
	uint64_t end;
	/** Name given to the launch, or that of the kernel. NUL-terminated, maybe cut. */
	char name[128];
} AIUpti_ActivityCompute;

/** MEMCPY: a copy that ran. */
typedef struct AIUpti_ActivityMemcpy {
	uint8_t kind;
	/** An AIUpti_ActivityMemcpyKind. */
	uint8_t copy_kind;
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
	uint64_t correlation_id;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
} AIUpti_ActivityMemcpy;

/** MEMSET: a fill that ran. */
typedef struct AIUpti_ActivityMemset {
	uint8_t kind;
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
	uint64_t correlation_id;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
} AIUpti_ActivityMemset;

/** MEMORY: device memory that was allocated or released. */
typedef struct AIUpti_ActivityMemory {
	uint8_t kind;
	/** An AIUpti_ActivityMemoryOperationType. */
	uint8_t memory_operation_type;
	uint32_t device_id;
	uint32_t stream_id;
	uint32_t process_id;
	uint64_t correlation_id;
	uint64_t address;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
} AIUpti_ActivityMemory;

/**
 * Asks for a buffer of *@size bytes, aligned to 8. *@max_records limits the records in it;
 * 0 is no limit. A NULL buffer drops records.
 */
typedef void (*AIUpti_BufferRequested)(uint8_t **buffer, size_t *size, size_t *max_records);

/** Hands a buffer back, of whose @size bytes the first @valid hold records. */
typedef void (*AIUpti_BufferCompleted)(uint8_t *buffer, size_t size, size_t valid);

/** Sets the callbacks. They run on the thread that flushes, one buffer at a time. */
COMPAT_EXPORT AIUpti_ResultTypes
aiuptiActivityRegisterCallbacks(AIUpti_BufferRequested requested,
				AIUpti_BufferCompleted completed);

/** Records activities of @kind from now on. */
COMPAT_EXPORT AIUpti_ResultTypes aiuptiActivityEnable(AIUpti_ActivityKind kind);

/** Ends it. Records that were not flushed before the last kind is disabled are lost. */
COMPAT_EXPORT AIUpti_ResultTypes aiuptiActivityDisable(AIUpti_ActivityKind kind);

/**
 * Moves *@record to the next record of @buffer, to the first one if it is NULL. @valid is
 * the number that came with the buffer. MAX_LIMIT_REACHED after the last record.
 */
COMPAT_EXPORT AIUpti_ResultTypes
aiuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, AIUpti_Activity **record);

/** Returns how many records were dropped since the last call. */
COMPAT_EXPORT AIUpti_ResultTypes aiuptiActivityGetNumDroppedRecords(size_t *dropped);

/**
 * Waits for the queued work and hands all records of it over. Without records no buffer is
 * asked for.
 */
COMPAT_EXPORT AIUpti_ResultTypes aiuptiFlushAllActivities(void);

#ifdef __cplusplus
}
#endif

#endif /* AIUPTI_ACTIVITY_H */

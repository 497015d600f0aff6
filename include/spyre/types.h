/* SPDX-License-Identifier: MIT */
/*
 * Basic types of libspyre: status codes, data formats, handles.
 *
 * Every function is thread safe unless its description says otherwise. Those that
 * return a spyre_status store a message for the calling thread in
 * spyre_last_error() when they fail. All of them can return INVALID_ARGUMENT for a
 * NULL pointer, an unknown flag or objects of two contexts, FORKED in a child of the
 * process that created the object, and OUT_OF_HOST_MEMORY. Those that use a card can
 * return DEVICE_RESET, DEVICE_LOST and SYSTEM, and those that wait for a stream BUSY
 * in a host function of that stream. "Errors:" lists the other codes. The library
 * never aborts, exits or prints, except for the log that SPYRE_LOG enables.
 */
#ifndef SPYRE_TYPES_H
#define SPYRE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPYRE_API __attribute__((visibility("default")))
#else
#define SPYRE_API
#endif

/** Version of these headers; spyre_version() gives that of the library. */
#define SPYRE_VERSION_MAJOR 0
#define SPYRE_VERSION_MINOR 1
#define SPYRE_VERSION_PATCH 0

/** Bytes in a stick, the unit of transfers and the alignment of device addresses. */
#define SPYRE_STICK 128
/** Largest number of dimensions of a host tensor and of a device layout. */
#define SPYRE_MAX_RANK 7
#define SPYRE_MAX_DEVICE_RANK 8

/** Result of a call (append only). Since 0.1. */
typedef enum spyre_status {
	SPYRE_SUCCESS = 0,
	/** Asynchronous work is not finished (query calls only). */
	SPYRE_NOT_READY = 1,
	SPYRE_ERROR_INVALID_ARGUMENT = 2,
	/** No such card, or it is hidden by SPYRE_DEVICES. */
	SPYRE_ERROR_NO_DEVICE = 3,
	/** The drm backend was requested, but no spyre_vdev node exists. */
	SPYRE_ERROR_NO_DRIVER = 4,
	SPYRE_ERROR_NO_PERMISSION = 5,
	SPYRE_ERROR_OUT_OF_DEVICE_MEMORY = 6,
	SPYRE_ERROR_OUT_OF_HOST_MEMORY = 7,
	/** A device address that this context did not allocate. */
	SPYRE_ERROR_INVALID_ADDRESS = 8,
	/** A layout that does not fit its buffer or host tensor. */
	SPYRE_ERROR_LAYOUT = 9,
	/** Host and device formats with no conversion, or wrong for an operand. */
	SPYRE_ERROR_FORMAT = 10,
	/** Argument count, shape or role differs from what a kernel takes. */
	SPYRE_ERROR_ARGUMENT_MISMATCH = 11,
	/** A file of a bundle is missing or unreadable. */
	SPYRE_ERROR_FILE = 12,
	/** A file of a bundle is malformed. */
	SPYRE_ERROR_PARSE = 13,
	/** Well formed, but not supported by the card (docs/unsupported.md). */
	SPYRE_ERROR_UNSUPPORTED = 14,
	/** A per-core span of a tensor above 256 MiB. */
	SPYRE_ERROR_SPAN_LIMIT = 15,
	/** The LX scratchpad is too small for the plan. */
	SPYRE_ERROR_LX_OVERFLOW = 16,
	/** The card's verifier refused a program. */
	SPYRE_ERROR_VERIFY = 17,
	/** Work ran past its time limit and was killed; the stream is in error. */
	SPYRE_ERROR_TIMEOUT = 18,
	/** Work was cancelled because its stream or context had failed. */
	SPYRE_ERROR_CANCELLED = 19,
	/** The card is gone (unplugged). */
	SPYRE_ERROR_DEVICE_LOST = 20,
	/** The object belongs to the parent process and was used after fork(). */
	SPYRE_ERROR_FORKED = 21,
	/** The object is still in use. */
	SPYRE_ERROR_BUSY = 22,
	/** Kernel module and library are incompatible. */
	SPYRE_ERROR_ABI_MISMATCH = 23,
	/** A system call failed in a way that no other code names. */
	SPYRE_ERROR_SYSTEM = 24,
	/** An environment variable has an invalid value. */
	SPYRE_ERROR_CONFIGURATION = 25,
	/** The event was created without timing. */
	SPYRE_ERROR_NO_TIMING = 26,
	/** The card was reset since the context was created; the context is stale. */
	SPYRE_ERROR_DEVICE_RESET = 27,
	/** Work failed on the card: a bad access, or a core or the DMA engine. */
	SPYRE_ERROR_CARD_FAULT = 28,
	/** The call cannot be recorded in a graph, and the stream is being captured. */
	SPYRE_ERROR_CAPTURE = 29,
	/** The other end of a copy between contexts failed, was reset or is gone. */
	SPYRE_ERROR_PEER_LOST = 30,
	/** Another rank of a communicator failed, or its process ended. */
	SPYRE_ERROR_REMOTE = 31,
	SPYRE_STATUS_COUNT
} spyre_status;

/** Data formats (append only). The numbers are defined by this project. Since 0.1. */
typedef enum spyre_format {
	SPYRE_FORMAT_INVALID = 0,
	/** DL16: 1 sign, 6 exponent, 9 fraction bits. Device. */
	SPYRE_FORMAT_SEN169_FP16 = 1,
	SPYRE_FORMAT_IEEE_FP32 = 2,
	SPYRE_FORMAT_SEN143_FP8 = 3,
	SPYRE_FORMAT_SEN152_FP8 = 4,
	SPYRE_FORMAT_SEN153_FP9 = 5,
	SPYRE_FORMAT_SEN18F_FP24 = 6,
	SPYRE_FORMAT_SENINT2 = 7,
	SPYRE_FORMAT_SENINT4 = 8,
	SPYRE_FORMAT_SENINT8 = 9,
	SPYRE_FORMAT_SENINT16 = 10,
	SPYRE_FORMAT_SENINT24 = 11,
	SPYRE_FORMAT_SENUINT2 = 12,
	SPYRE_FORMAT_SENUINT32 = 13,
	SPYRE_FORMAT_IEEE_INT32 = 14,
	SPYRE_FORMAT_IEEE_INT64 = 15,
	SPYRE_FORMAT_IEEE_FP16 = 16,
	SPYRE_FORMAT_BFLOAT16 = 17,
	/** One byte, 0 or 1. Host; on the device a bool is DL16 0.0 or 1.0. */
	SPYRE_FORMAT_BOOL = 18,
	SPYRE_FORMAT_UINT8 = 19,
	SPYRE_FORMAT_FP64 = 20,
	SPYRE_FORMAT_COUNT
} spyre_format;

/** A device address, segment << 34 | offset. 0 is never valid. */
typedef uint64_t spyre_devptr;

/** An open card: an address space with its memory, streams and kernels. */
typedef struct spyre_context spyre_context;
typedef struct spyre_stream spyre_stream;
typedef struct spyre_event spyre_event;
/** A loaded bundle. */
typedef struct spyre_kernel spyre_kernel;

/**
 * Returns the name of a status code, such as "SPYRE_ERROR_LAYOUT"; never NULL. Since
 * 0.1.
 */
SPYRE_API const char *spyre_status_name(spyre_status status);

/** Returns one sentence that explains a status code; never NULL. Since 0.1. */
SPYRE_API const char *spyre_status_text(spyre_status status);

/**
 * Returns the message of the calling thread's last failed call: the operation, the
 * reason, the values involved and a remedy. The library owns the string, which stays
 * valid until the thread's next failing call; it is "" if no call has failed. Since
 * 0.1.
 */
SPYRE_API const char *spyre_last_error(void);

/**
 * Returns the public name of a format, such as "SEN169_FP16"; NULL if @format is
 * unknown. Since 0.1.
 */
SPYRE_API const char *spyre_format_name(spyre_format format);

/**
 * Finds a format by its public name (SEN169_FP16, IEEE_FP32, …) or, in upper or lower
 * case, its short name (dl16 fp16 fp32 bf16 fp64 int4 int8 int16 int32 int64 uint8 bool
 * fp8_e4m3 float8_e4m3fn fp8_e5m2 float8_e5m2fnuz). Returns SPYRE_FORMAT_INVALID for
 * any other string. Since 0.1.
 */
SPYRE_API spyre_format spyre_format_from_name(const char *name);

/**
 * Returns the size of one element in bytes; 0 for formats that no host tensor can have
 * (elements of 2, 4, 9 or 24 bits), and for unknown ones. Since 0.1.
 */
SPYRE_API size_t spyre_format_bytes(spyre_format format);

/**
 * Converts @count numbers to elements of @format and stores them one after the other, in
 * the host's byte order, at @elements, which needs no alignment and must not overlap
 * @numbers. SENINT4 has two
 * elements in a byte, the first in the low half; the last byte of an odd count ends
 * with 0. Floating-point formats get the bits that a copy of an FP64 tensor to the card
 * stores: rounded to fp32 and then to @format (docs/numerics.md); FP64 itself is not
 * rounded. Integers are rounded towards zero and saturate, NaN is 0; any number but 0
 * is a BOOL of 1. A @count of 0 allows NULL pointers. Since 0.1.
 * Errors: FORMAT (the encoding of SEN153_FP9, SEN18F_FP24, SENINT2, SENUINT2 and
 * SENINT24 is not public; nothing is written).
 */
SPYRE_API spyre_status spyre_format_encode(spyre_format format, const double *numbers,
					   size_t count, void *elements);

/**
 * Converts @count elements of @format, stored as by spyre_format_encode(), to numbers.
 * They are exact, except for IEEE_INT64 beyond 2^53, which is rounded to nearest. NaN is
 * the canonical NaN, but FP64 keeps its bits. Since 0.1.
 * Errors: those of spyre_format_encode().
 */
SPYRE_API spyre_status spyre_format_decode(spyre_format format, const void *elements,
					   size_t count, double *numbers);

/** Returns the version of the library as major << 16 | minor << 8 | patch. Since 0.1. */
SPYRE_API uint32_t spyre_version(void);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_TYPES_H */

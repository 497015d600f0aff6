/* SPDX-License-Identifier: MIT */
/*
 * RAS records: errors as JSON objects of one line each, with the codes and field
 * names that the public Spyre stack logs. docs/error-and-reset.md explains each
 * field.
 *
 * The library writes a record when it first sees an asynchronous error on a stream,
 * and for an invalid SPYRE_DEVICES, to the file named by SPYRE_RAS_LOG ("-" is
 * standard error), if it is set, and to the events of <spyre/telemetry.h>.
 */
#ifndef SPYRE_RAS_H
#define SPYRE_RAS_H

#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Codes of RAS records. Since 0.1. */
typedef enum spyre_ras_code {
	/** CBRB::ControlBlockSoftFail: a control block reached memory that is not mapped. */
	SPYRE_RAS_CONTROL_BLOCK_SOFT_FAIL = 0x1274,
	/** The card does not support a control block. */
	SPYRE_RAS_UNSUPPORTED_MESSAGE = 0x1d8c,
	/** RUNTIMESCHEDULER::ComputeHardwareError: a core or the DMA engine failed. */
	SPYRE_RAS_COMPUTE_HARDWARE_ERROR = 0x7b1b,
	/** RUNTIMESCHEDULER::StreamInErrorState: work was refused or cancelled. */
	SPYRE_RAS_STREAM_IN_ERROR_STATE = 0x8758,
	/** A control block ran past its time limit. */
	SPYRE_RAS_MESSAGE_TIMEOUT = 0xd9ec,
	/** CONFIGURATION::IncorrectSpyreDevicesVar: SPYRE_DEVICES does not fit. */
	SPYRE_RAS_INCORRECT_SPYRE_DEVICES_VAR = 0xdbf4,
} spyre_ras_code;

/** The fields of a record that do not follow from its code. Since 0.1. */
typedef struct spyre_ras_record {
	/** sizeof(spyre_ras_record). */
	size_t struct_size;
	spyre_ras_code code;
	/** Index of the control block in its job, from 0. */
	uint32_t step;
	/** Description of the error; NULL for the text of the code. */
	const char *message;
	/** Name of the control block, or NULL. */
	const char *cb_name;
	/** Faulting device address, 0 if unknown. */
	uint64_t address;
	/** 0 read, 1 write. */
	uint32_t mode;
	/** Queue or stream that failed. */
	uint32_t source;
	/** Reason code of the card. */
	uint64_t syndrome;
	/** Device address of the program; always 0, as programs have none. */
	uint64_t boot_address;
	uint64_t context;
	/** Number of the job or operation, from 1. */
	uint64_t message_tag;
	/** Type of the control block, 1 to 5 as in docs/control-blocks.md; 0 if unknown. */
	uint32_t message_type;
	/** Virtual function, 0 for the card itself. */
	uint32_t vf;
} spyre_ras_record;

/**
 * Writes @record as one line of JSON, without a newline, NUL-terminated, to @text of
 * @size bytes. 2048 bytes suffice unless the record's own strings are longer. Since
 * 0.1.
 * Errors: INVALID_ARGUMENT (unknown code, or @size is too small).
 */
SPYRE_API spyre_status spyre_ras_format(const spyre_ras_record *record, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_RAS_H */

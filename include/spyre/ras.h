/* SPDX-License-Identifier: MIT */
/*
 * RAS records: what went wrong, one JSON object on one line, with the codes
 * and field names that the public Spyre stack logs. docs/error-and-reset.md
 * says what each field means here.
 *
 * The library writes one when an asynchronous error is first seen on a stream,
 * and for unusable SPYRE_DEVICES, to the file that SPYRE_RAS_LOG names ("-":
 * standard error); without the variable it writes none.
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
	/** The card does not know a control block. */
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

/** What a record says besides what follows from its code. Since 0.1. */
typedef struct spyre_ras_record {
	/** sizeof(spyre_ras_record). */
	size_t struct_size;
	spyre_ras_code code;
	/** Control block in its job, from 0. */
	uint32_t step;
	/** What happened, in words; NULL: what the code stands for. */
	const char *message;
	/** The control block in words; NULL: none. */
	const char *cb_name;
	/** Device address at fault, 0: not known. */
	uint64_t address;
	/** 0 read, 1 write. */
	uint32_t mode;
	/** Queue or stream that it happened on. */
	uint32_t source;
	/** What the card gave as the reason. */
	uint64_t syndrome;
	/** Device address of the program, 0: programs have none. */
	uint64_t boot_address;
	uint64_t context;
	/** Job or operation, from 1. */
	uint64_t message_tag;
	/** Kind of control block, 1 to 5 as in docs/control-blocks.md; 0: not known. */
	uint32_t message_type;
	/** Virtual function, 0: the card itself. */
	uint32_t vf;
} spyre_ras_record;

/**
 * Writes @record as one line of JSON without its end, and a NUL, to @text.
 * INVALID_ARGUMENT for an unknown code or if @size bytes are too few; 2048
 * always do unless the texts are longer. Since 0.1.
 */
SPYRE_API spyre_status spyre_ras_format(const spyre_ras_record *record, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_RAS_H */

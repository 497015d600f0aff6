// SPDX-License-Identifier: MIT
/* Names and texts of status codes, and the version. */
#include <spyre/types.h>

struct status_info {
	const char *name;
	const char *text;
};

#define STATUS(code, what) [SPYRE_##code] = { "SPYRE_" #code, what }

static const struct status_info statuses[SPYRE_STATUS_COUNT] = {
	STATUS(SUCCESS, "The call succeeded."),
	STATUS(NOT_READY, "The asynchronous work has not finished yet."),
	STATUS(ERROR_INVALID_ARGUMENT, "An argument of the call is invalid."),
	STATUS(ERROR_NO_DEVICE, "There is no such card, or SPYRE_DEVICES hides it."),
	STATUS(ERROR_NO_DRIVER,
	       "The drm backend was requested, but no spyre_vdev node exists; load the module."),
	STATUS(ERROR_NO_PERMISSION, "This user may not open the card's node."),
	STATUS(ERROR_OUT_OF_DEVICE_MEMORY, "The card has too little free memory for the allocation."),
	STATUS(ERROR_OUT_OF_HOST_MEMORY, "The library could not allocate host memory."),
	STATUS(ERROR_INVALID_ADDRESS,
	       "A device address range is not within a live allocation of this context."),
	STATUS(ERROR_LAYOUT, "A layout does not fit its allocation or host tensor."),
	STATUS(ERROR_FORMAT, "These data formats cannot be used together here."),
	STATUS(ERROR_ARGUMENT_MISMATCH, "Arguments differ in number or shape from those expected."),
	STATUS(ERROR_FILE, "A file of the bundle is missing or cannot be read."),
	STATUS(ERROR_PARSE, "A file of the bundle is malformed."),
	STATUS(ERROR_UNSUPPORTED, "Well formed, but not supported (docs/unsupported.md)."),
	STATUS(ERROR_SPAN_LIMIT, "One core's span of a tensor is above 256 MiB."),
	STATUS(ERROR_LX_OVERFLOW, "The plan needs more LX scratchpad than a core has."),
	STATUS(ERROR_VERIFY, "The card's verifier rejected the program."),
	STATUS(ERROR_TIMEOUT, "Work exceeded its time limit (SPYRE_TIMEOUT_MS) and was stopped."),
	STATUS(ERROR_CANCELLED, "Work was cancelled by a reset, or because earlier work failed."),
	STATUS(ERROR_DEVICE_LOST, "The card was removed."),
	STATUS(ERROR_FORKED, "The object belongs to the parent process, before fork()."),
	STATUS(ERROR_BUSY, "The object is in use."),
	STATUS(ERROR_ABI_MISMATCH, "Kernel module and library have different interface versions; update the older one."),
	STATUS(ERROR_SYSTEM, "A system call failed."),
	STATUS(ERROR_CONFIGURATION, "An environment variable has an invalid value."),
	STATUS(ERROR_NO_TIMING, "The event was created without timing."),
	STATUS(ERROR_DEVICE_RESET,
	       "The card was reset since the context was created; create a new context."),
	STATUS(ERROR_CARD_FAULT, "Work failed on the card; spyre_context_reset() recovers the context."),
	STATUS(ERROR_CAPTURE, "A call cannot be part of a graph, and its stream is being captured."),
	STATUS(ERROR_PEER_LOST, "The other end of a copy between contexts failed, was reset or is gone."),
	STATUS(ERROR_REMOTE, "Another rank of a communicator failed, or its process ended."),
};

static const struct status_info *status_find(spyre_status status)
{
	static const struct status_info unknown = {
		"SPYRE_STATUS_UNKNOWN", "The library does not know this status code.",
	};

	if ((unsigned int)status >= SPYRE_STATUS_COUNT || !statuses[status].name)
		return &unknown;
	return &statuses[status];
}

const char *spyre_status_name(spyre_status status)
{
	return status_find(status)->name;
}

const char *spyre_status_text(spyre_status status)
{
	return status_find(status)->text;
}

uint32_t spyre_version(void)
{
	return SPYRE_VERSION_MAJOR << 16 | SPYRE_VERSION_MINOR << 8 | SPYRE_VERSION_PATCH;
}

// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The names of stop reasons, and the faults that they are.
 */
#include "program.h"

static const char *const stop_names[SPYRE_STOP_COUNT] = {
	[SPYRE_STOP_NONE] = "NONE",
	[SPYRE_STOP_TRUNCATED] = "TRUNCATED",
	[SPYRE_STOP_BAD_MAGIC] = "BAD_MAGIC",
	[SPYRE_STOP_BAD_VERSION] = "BAD_VERSION",
	[SPYRE_STOP_BAD_HEADER] = "BAD_HEADER",
	[SPYRE_STOP_BAD_STEP] = "BAD_STEP",
	[SPYRE_STOP_BAD_STREAM] = "BAD_STREAM",
	[SPYRE_STOP_BAD_OPCODE] = "BAD_OPCODE",
	[SPYRE_STOP_BAD_FUNC] = "BAD_FUNC",
	[SPYRE_STOP_BAD_SHAPE] = "BAD_SHAPE",
	[SPYRE_STOP_BAD_FORMAT] = "BAD_FORMAT",
	[SPYRE_STOP_BAD_VIEW] = "BAD_VIEW",
	[SPYRE_STOP_LX_OVERFLOW] = "LX_OVERFLOW",
	[SPYRE_STOP_EXTENT] = "EXTENT",
	[SPYRE_STOP_ACCESS] = "ACCESS",
	[SPYRE_STOP_TOO_LONG] = "TOO_LONG",
	[SPYRE_STOP_TOO_MANY_CORES] = "TOO_MANY_CORES",
	[SPYRE_STOP_DMA_SHAPE] = "DMA_SHAPE",
	[SPYRE_STOP_DMA_FORMAT] = "DMA_FORMAT",
	[SPYRE_STOP_DMA_RANGE] = "DMA_RANGE",
	[SPYRE_STOP_CANCELLED] = "CANCELLED",
	[SPYRE_STOP_INDEX] = "INDEX",
};

const char *spyre_stop_name(enum spyre_stop stop)
{
	if ((u32)stop >= SPYRE_STOP_COUNT)
		return "UNKNOWN";
	return stop_names[stop];
}

/*
 * An index beyond its extent is caused by the program's data. The verifier has ruled out
 * all others: access to memory that the operands do not name, beyond the bounds that it
 * has proved, or an instruction that the core cannot execute.
 */
enum spyre_fault_kind spyre_fault_of_stop(enum spyre_stop stop)
{
	switch (stop) {
	case SPYRE_STOP_ACCESS:
	case SPYRE_STOP_DMA_RANGE:
	case SPYRE_STOP_INDEX:
		return SPYRE_FAULT_KIND_ACCESS;
	case SPYRE_STOP_EXTENT:
	case SPYRE_STOP_LX_OVERFLOW:
	case SPYRE_STOP_TOO_LONG:
	case SPYRE_STOP_TOO_MANY_CORES:
		return SPYRE_FAULT_KIND_ESCAPE;
	default:
		return SPYRE_FAULT_KIND_COMPUTE;
	}
}

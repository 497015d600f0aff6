// SPDX-License-Identifier: MIT
/* Sticks: the 128-byte unit of device memory. */
#include "libspyre/layout/stick.h"

#include <spyre/layout.h>

int64_t spyre_stick_elements(spyre_format format)
{
	size_t bytes = spyre_format_bytes(format);

	switch (format) {
	case SPYRE_FORMAT_SENINT4:
		return 2 * SPYRE_STICK;
	case SPYRE_FORMAT_SENINT2:
	case SPYRE_FORMAT_SENUINT2:
		return 4 * SPYRE_STICK;
	case SPYRE_FORMAT_UINT8:
	case SPYRE_FORMAT_FP64:
		return 0;	/* a host format, which has no device form */
	default:
		break;
	}
	if (!bytes || SPYRE_STICK % bytes)
		return 0;
	return SPYRE_STICK / (int64_t)bytes;
}

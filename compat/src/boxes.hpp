/* SPDX-License-Identifier: MIT */
/* Converting copies. */
#ifndef SPYRE_COMPAT_BOXES_HPP
#define SPYRE_COMPAT_BOXES_HPP

#include <spyre/types.h>

#include <cstdint>

#include "spyrecode-host-functions/sendataconvert/sen_host_ops.h"

namespace spyre_compat
{
/*
 * Queues the copy that @dci describes, between host memory at @host and device memory at
 * @device, which has @device_bytes. Throws if the card's DMA engine cannot express it, or if a
 * box ends beyond the device memory.
 */
void copy_boxes(spyre_stream *stream, spyre_devptr device, std::uint64_t device_bytes, void *host,
		const data_conversion_info &dci);
}

#endif /* SPYRE_COMPAT_BOXES_HPP */

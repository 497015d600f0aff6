/* SPDX-License-Identifier: MIT */
/* Converting copies. */
#ifndef SPYRE_COMPAT_BOXES_HPP
#define SPYRE_COMPAT_BOXES_HPP

#include <spyre/types.h>

#include "spyrecode-host-functions/sendataconvert/sen_host_ops.h"

namespace spyre_compat
{
/*
 * Queues the copy that @dci describes, between host memory at @host and device memory at
 * @device. Throws if the card's DMA engine cannot express it.
 */
void copy_boxes(spyre_stream *stream, spyre_devptr device, void *host,
		const data_conversion_info &dci);
}

#endif /* SPYRE_COMPAT_BOXES_HPP */

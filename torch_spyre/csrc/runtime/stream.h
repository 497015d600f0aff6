// SPDX-License-Identifier: MIT
/* Streams of PyTorch and of libspyre have the same ids: 0 is the default one. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

c10::Stream make_stream(c10::DeviceIndex index, int id);
c10::Stream default_stream(c10::DeviceIndex index);
c10::Stream stream_from_pool(c10::DeviceIndex index, int priority);
c10::Stream exchange_stream(c10::Stream stream);
/* False while work is left; throws the stream's error. */
bool query_stream(c10::Stream stream);
void synchronize_stream(c10::Stream stream);
void synchronize_device(c10::DeviceIndex index);

} // namespace torch_spyre

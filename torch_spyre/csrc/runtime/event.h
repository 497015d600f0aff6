// SPDX-License-Identifier: MIT
/* Events behind the opaque pointers that PyTorch keeps. */
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "spyre.h"

namespace torch_spyre {

void record_event(void **event, c10::Stream stream, c10::EventFlag flag);
void block_on_event(void *event, c10::Stream stream);
bool query_event(void *event);
void synchronize_event(void *event);
/* Milliseconds between two events with timing that were reached. */
double elapsed_time(void *start, void *end);
void destroy_event(void *event) noexcept;

} // namespace torch_spyre

// SPDX-License-Identifier: MIT
/*
 * Graphs of PyTorch (torch.accelerator.Graph) are captures of libspyre; here is
 * what the other files have to know while one is made.
 */
#pragma once

#include <atomic>

#include "spyre.h"

namespace torch_spyre {

/* Number of captures in progress on all cards and threads. */
extern std::atomic<unsigned> captures;

/* The capture that a stream is part of, 0 for none; 0 if the card is not open. */
uint64_t capture_of(c10::DeviceIndex device, int stream);
/* True if the current stream of @device is captured; costs one load if no capture exists. */
bool current_stream_is_captured(c10::DeviceIndex device);

inline bool is_capturing(c10::DeviceIndex device)
{
	return __builtin_expect(captures.load(std::memory_order_relaxed) != 0, 0) &&
	       current_stream_is_captured(device);
}

/* Marks captures of this thread or its current stream as failed after a refused call. */
void capture_failed(const std::string &why);

[[noreturn]] void refuse_in_graph(const char *what, const char *instead);

/* Throws if the current stream of @device is captured, because @what needs results of the
 * card or differs in each replay; @instead is the remedy. */
inline void not_in_graph(c10::DeviceIndex device, const char *what, const char *instead)
{
	if (is_capturing(device))
		refuse_in_graph(what, instead);
}

/* Records a use of pinned memory at @pointer on @stream, so that a graph that captures the
 * stream keeps the memory for its replays. */
void keep_pinned(const void *pointer, c10::Stream stream);

} // namespace torch_spyre

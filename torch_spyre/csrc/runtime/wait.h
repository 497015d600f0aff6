// SPDX-License-Identifier: MIT
/* Waits that Ctrl-C ends. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

/*
 * In Python's main thread, waits for the present work of @stream, or raises the exception
 * of a signal handler, usually KeyboardInterrupt. In other threads it returns at once. It
 * does not report errors of the work: synchronize afterwards.
 */
void wait_for_signals_too(spyre_stream *stream);
/* stream.cpp: waits for all streams of a card unless one is captured. */
void wait_for_signals_too(c10::DeviceIndex device);
void wait_for_signals_too(spyre_event *event);

/* In Python's main thread, raises the exception of a signal handler, for loops that wait. */
void raise_signals_too();

/* Keeps @host alive until queued copies of @stream are done. */
void keep_until_done(const at::Tensor &host, spyre_stream *stream) noexcept;

} // namespace torch_spyre

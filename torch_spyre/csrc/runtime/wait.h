// SPDX-License-Identifier: MIT
/* Waits that Ctrl-C ends. */
#pragma once

#include "spyre.h"

namespace torch_spyre {

/*
 * In Python's main thread: returns once what @stream holds now is done, or raises what
 * a signal handler of Python's does, KeyboardInterrupt above all. In other threads it
 * returns at once. Says nothing of errors: synchronize afterwards.
 */
void wait_for_signals_too(spyre_stream *stream);
/* stream.cpp: for all streams of a card, where no capture forbids it. */
void wait_for_signals_too(c10::DeviceIndex device);
void wait_for_signals_too(spyre_event *event);

/* @host, which a copy of @stream reads or writes, lives until that is over. */
void keep_until_done(const at::Tensor &host, spyre_stream *stream) noexcept;

} // namespace torch_spyre

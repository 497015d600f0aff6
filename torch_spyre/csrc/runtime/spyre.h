// SPDX-License-Identifier: MIT
/*
 * Declarations that the plugin's files share. It is the boundary of PyTorch's
 * interfaces and libspyre's public headers; libspyre does all work.
 *
 * The Placement of a storage describes its bytes on the card: a host tensor (size,
 * stride, dtype), divided into sticks by a layout. All views of the storage share it and
 * are plain PyTorch metadata (size, stride, storage offset in elements of that host
 * tensor); operand_of() finds the operand of a view.
 */
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <spyre/spyre.h>

#include "range.h"

namespace torch_spyre {

/* error.cpp: a status as an exception, with libspyre's own text, led by @what.
 * OUT_OF_DEVICE_MEMORY becomes torch.OutOfMemoryError (requested, free, largest
 * block), what failed on the card torch.AcceleratorError, the rest RuntimeError. */
[[noreturn]] void fail(spyre_status status, const char *what);

inline void check(spyre_status status, const char *what)
{
	if (__builtin_expect(status != SPYRE_SUCCESS, 0))
		fail(status, what);
}

/* device.cpp: one context per card, opened by its first use, never at import. */
c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device() noexcept;
void set_current_device(c10::DeviceIndex index);
/* Opens the card; throws in a forked child of a process that had it open. */
spyre_context *context(c10::DeviceIndex index = -1);
bool is_initialized() noexcept;
bool has_context(c10::DeviceIndex index) noexcept;
/* In a forked child of a process that had a card open. */
bool in_bad_fork() noexcept;

/* stream.cpp */
c10::Stream current_stream(c10::DeviceIndex index = -1);
spyre_stream *native_stream(c10::Stream stream);
spyre_stream *current_native_stream(c10::DeviceIndex index = -1);

/* layout.cpp: dtypes and formats. float64 and complex throw with a remedy. */
spyre_format host_format(c10::ScalarType dtype);
spyre_format device_format(c10::ScalarType dtype);
/* The layout of a dense row-major tensor (constructor 1). */
spyre_layout default_layout(at::IntArrayRef size, c10::ScalarType dtype);

/* The contents of a storage. Immutable: a change replaces it by a new one. */
struct Placement {
	c10::ScalarType dtype;
	std::vector<int64_t> size, stride;
	int64_t storage_offset = 0;
	spyre_layout layout;
};

/* allocator.cpp: device memory behind a DataPtr; data() is the device address. */
struct Block {
	c10::DeviceIndex device;
	spyre_devptr address;
	uint64_t bytes;
	std::shared_ptr<const Placement> placement;
	/* The lanes beyond the host tensor are zeros, as after a copy from the host. */
	bool clean_padding;
	/* Replays of a graph may write it without a notice to the plugin. */
	bool in_graph = false;
	/* The last capture that used it; @range is what that capture has written. */
	uint64_t capture = 0;
	/* Other blocks have the same memory, or other libraries may write it. */
	bool shared = false;
	/* Of its numbers, if they are int64. */
	Range range;

	bool padding_is_clean() const
	{
		return clean_padding && !in_graph;
	}
	/* The numbers that were written are not known. */
	void forget()
	{
		clean_padding = false;
		range = Range();
	}
};
Block *block_of(const c10::Storage &storage);

/* A tensor as a kernel sees it. */
struct Operand {
	spyre_sdsc_operand desc;	/* host size of the view, layout with dim_map */
	spyre_devptr address;		/* of its first stick */
	bool clean_padding;
	/* A kernel that writes whole sticks of the operand writes no other elements. */
	bool whole_sticks;
};

} // namespace torch_spyre

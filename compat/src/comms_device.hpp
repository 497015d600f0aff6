/* SPDX-License-Identifier: MIT */
/* Copies between device memory and messages, and sums on the card. */
#ifndef SPYRE_COMMS_DEVICE_HPP
#define SPYRE_COMMS_DEVICE_HPP

#include <cstdint>
#include <map>
#include <vector>

#include <spyre/spyre.h>

namespace spyre_comms
{

/**
 * All functions queue work on the stream of the group and wait until it has run, and throw
 * std::runtime_error. Any thread may call read(), write() and wait().
 */
class Device
{
public:
	explicit Device(spyre_stream *on);
	~Device();
	Device(const Device &) = delete;
	Device &operator=(const Device &) = delete;

	std::vector<uint8_t> read(spyre_devptr source, uint64_t bytes);
	void write(spyre_devptr target, const std::vector<uint8_t> &data);
	void copy(spyre_devptr target, spyre_devptr source, uint64_t bytes);

	/** Waits for the work that is queued so far. */
	void wait();

	/**
	 * Adds @bytes, a multiple of 128 and at most PIECE_BYTES, at the addresses in
	 * @terms, in this order, and stores the sum at @target, which may be one of them.
	 * @format is IEEE_FP16, for tensors that the card holds as DL16, or IEEE_FP32.
	 */
	void sum(spyre_devptr target, const std::vector<spyre_devptr> &terms, uint64_t bytes,
		 spyre_format format);

	/** Device memory for term @number of a sum: PIECE_BYTES. One thread may use it. */
	spyre_devptr slot(size_t number);

private:
	struct Shape {
		spyre_format format;
		size_t terms;
		uint64_t bytes;

		auto operator<=>(const Shape &) const = default;
	};

	spyre_kernel *kernel(const Shape &shape);

	spyre_stream *stream;
	spyre_context *context;
	std::map<Shape, spyre_kernel *> kernels;
	std::vector<spyre_devptr> slots;
};

} // namespace spyre_comms

#endif /* SPYRE_COMMS_DEVICE_HPP */

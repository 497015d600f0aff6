/* SPDX-License-Identifier: MIT */
/* Copies between device memory and messages. */
#ifndef SPYRE_COMMS_DEVICE_HPP
#define SPYRE_COMMS_DEVICE_HPP

#include <cstdint>
#include <vector>

#include <spyre/spyre.h>

namespace spyre_comms
{

/**
 * All functions queue work on the stream of the group and wait until it has run, and throw
 * std::runtime_error. Any thread may call them.
 */
class Device
{
public:
	explicit Device(spyre_stream *on);

	std::vector<uint8_t> read(spyre_devptr source, uint64_t bytes);
	void write(spyre_devptr target, const std::vector<uint8_t> &data);

private:
	void wait();

	spyre_stream *stream;
	spyre_context *context;
};

} // namespace spyre_comms

#endif /* SPYRE_COMMS_DEVICE_HPP */

// SPDX-License-Identifier: MIT
/* Copies between device memory and messages. */
#include "comms_device.hpp"

#include <stdexcept>
#include <string>

namespace spyre_comms
{

namespace
{

void check(spyre_status status, const char *operation)
{
	if (status != SPYRE_SUCCESS)
		throw std::runtime_error(std::string("cannot ") + operation +
					 " of a message: " + spyre_last_error());
}

} // namespace

Device::Device(spyre_stream *on) : stream(on), context(spyre_stream_context(on))
{
}

void Device::wait()
{
	spyre_event *event;

	check(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &event), "wait for the work");

	spyre_status status = spyre_event_record(event, stream);

	if (status == SPYRE_SUCCESS)
		status = spyre_event_synchronize(event);
	check(status, "wait for the work");
	(void)spyre_event_destroy(event);
}

std::vector<uint8_t> Device::read(spyre_devptr source, uint64_t bytes)
{
	std::vector<uint8_t> data(bytes);

	check(spyre_memcpy_d2h_async(stream, data.data(), source, bytes), "read the tensor");
	wait();
	return data;
}

void Device::write(spyre_devptr target, const std::vector<uint8_t> &data)
{
	check(spyre_memcpy_h2d_async(stream, target, data.data(), data.size()), "write the tensor");
	wait();
}

} // namespace spyre_comms

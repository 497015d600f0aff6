// SPDX-License-Identifier: MIT
/* The card of the process: enumeration, its context, its streams. */
#include <spyre/device.h>
#include <spyre/stream.h>

#include <cstdlib>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "error.hpp"
#include "flex/flex.hpp"
#include "records.h"

namespace flex
{
using spyre_compat::check;

namespace
{
struct Process {
	/* Protects the other members. */
	std::mutex mutex;
	std::shared_ptr<RuntimeContext> runtime;
	int device = -1;
};

/*
 * Never destroyed: the front-end frees tensors, and other libraries use streams, after the
 * destructors of static objects. The kernel releases the card when the process ends.
 */
Process &process()
{
	static Process *const only = new Process;

	return *only;
}

bool is_mock()
{
	const char *device = std::getenv("FLEX_DEVICE");

	return device && std::string_view(device) == "MOCK";
}
}

RuntimeContext::RuntimeContext(int logical_device)
{
	const spyre_compat::CallReport report(spyre_compat::Call::Initialize);
	spyre_stream *stream;

	check(spyre_context_create(logical_device, 0, &context_), "cannot open the card");
	check(spyre_stream_get(context_, SPYRE_STREAM_DEFAULT, &stream), "cannot open the card");
	streams_.push_back(std::make_unique<RuntimeStream>(stream));
	allocator_ = std::make_shared<FlexAllocator>(context_);
}

RuntimeStream *RuntimeContext::getDefaultStream()
{
	const std::lock_guard guard(mutex_);

	return streams_.front().get();
}

RuntimeStream *RuntimeContext::createStream(RuntimeStreamPriority priority)
{
	const std::lock_guard guard(mutex_);
	spyre_stream *stream;

	check(spyre_stream_create(context_, priority == RuntimeStreamPriority::HIGH ? -1 : 0,
				  &stream),
	      "cannot create a stream");
	streams_.push_back(std::make_unique<RuntimeStream>(stream));
	return streams_.back().get();
}

bool RuntimeContext::hasStreamError()
{
	spyre_context_state state = {};

	state.struct_size = sizeof(state);
	check(spyre_context_get_state(context_, &state), "cannot read the state of the card");
	return state.health != SPYRE_CONTEXT_OK;
}

std::shared_ptr<FlexAllocator> RuntimeContext::getAllocator()
{
	return allocator_;
}

std::ostream &operator<<(std::ostream &out, const RuntimeStatus &status)
{
	return out << (status.ok ? "success" : "failure: " + status.text);
}

RuntimeStatus initializeRuntime(std::shared_ptr<RuntimeContext> *runtime, int logical_device)
{
	Process &p = process();
	const std::lock_guard guard(p.mutex);

	*runtime = nullptr;
	if (p.runtime && p.device != logical_device)
		return { false, "cannot open card " + std::to_string(logical_device) +
				": this process uses card " + std::to_string(p.device) +
				"; start one process for each card" };
	try {
		if (!p.runtime) {
			p.runtime = std::make_shared<RuntimeContext>(logical_device);
			p.device = logical_device;
		}
	} catch (const std::exception &error) {
		return { false, error.what() };
	}
	*runtime = p.runtime;
	return { true, "" };
}

std::shared_ptr<RuntimeContext> getFlexRuntimeContext()
{
	Process &p = process();
	const std::lock_guard guard(p.mutex);

	if (!p.runtime)
		throw std::runtime_error("cannot use the card: call initializeRuntime() first");
	return p.runtime;
}

int getNumDevices()
{
	int count = 0;

	check(spyre_device_count(&count), "cannot count the cards");
	if (count < 1 && is_mock())
		throw std::runtime_error(
			"cannot count the cards: FLEX_DEVICE=MOCK shows none of them; set "
			"AIU_WORLD_SIZE to 1 or more");
	return count;
}
}

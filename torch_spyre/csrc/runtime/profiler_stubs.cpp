// SPDX-License-Identifier: MIT
/* torch.autograd.profiler with use_device="spyre": times by events. */
#include <chrono>

#include <torch/csrc/profiler/stubs/base.h>

#include "device.h"
#include "event.h"
#include "stream.h"

namespace torch_spyre {

namespace {

struct Stubs final : torch::profiler::impl::ProfilerStubs {
	void record(c10::DeviceIndex *device, torch::profiler::impl::ProfilerVoidEventStub *event,
		    int64_t *cpu_ns) const override
	{
		void *native = nullptr;

		if (device)
			*device = current_device();
		record_event(&native, current_stream(), c10::EventFlag::BACKEND_DEFAULT);
		*event = std::shared_ptr<void>(native, destroy_event);
		if (cpu_ns)
			*cpu_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
					  std::chrono::system_clock::now().time_since_epoch())
					  .count();
	}

	/* Returns microseconds. */
	float elapsed(const torch::profiler::impl::ProfilerVoidEventStub *start,
		      const torch::profiler::impl::ProfilerVoidEventStub *end) const override
	{
		synchronize_event(start->get());
		synchronize_event(end->get());
		return static_cast<float>(elapsed_time(start->get(), end->get()) * 1000);
	}

	/* The card keeps no marks or ranges; the profiler's own rows have them. */
	void mark(const char *) const override
	{
	}

	void rangePush(const char *) const override
	{
	}

	void rangePop() const override
	{
	}

	bool enabled() const override
	{
		return true;
	}

	void onEachDevice(std::function<void(int)> op) const override
	{
		c10::DeviceIndex previous = current_device();

		for (c10::DeviceIndex i = 0; i < device_count(); i++) {
			set_current_device_unchecked(i);
			op(i);
		}
		set_current_device_unchecked(previous);
	}

	void synchronize() const override
	{
		synchronize_device(current_device());
	}
};

const bool registered = [] {
	static Stubs stubs;

	torch::profiler::impl::registerPrivateUse1Methods(&stubs);
	return true;
}();

} // namespace

} // namespace torch_spyre

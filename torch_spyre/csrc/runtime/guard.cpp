// SPDX-License-Identifier: MIT
/* What PyTorch asks of any device: which is current, streams, events. */
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "allocator.h"
#include "device.h"
#include "event.h"
#include "stream.h"

namespace torch_spyre {

namespace {

c10::Device device(c10::DeviceIndex index)
{
	return c10::Device(c10::DeviceType::PrivateUse1, index);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
	c10::DeviceType type() const override
	{
		return c10::DeviceType::PrivateUse1;
	}

	c10::Device exchangeDevice(c10::Device d) const override
	{
		c10::Device old = getDevice();

		setDevice(d);
		return old;
	}

	c10::Device getDevice() const override
	{
		return device(current_device());
	}

	void setDevice(c10::Device d) const override
	{
		TORCH_CHECK(d.is_privateuseone(), "spyre: expected a spyre device, got ", d);
		if (d.has_index() && d.index() != current_device())
			set_current_device(d.index());
	}

	void uncheckedSetDevice(c10::Device d) const noexcept override
	{
		if (d.has_index())
			set_current_device_unchecked(d.index());
	}

	c10::DeviceIndex deviceCount() const noexcept override
	{
		return device_count();
	}

	c10::DeviceCapability getDeviceCapability(c10::Device) const override
	{
		c10::DeviceCapability capability;
		auto &types = capability.capability_data.supported_scalar_types;

		capability.capability_data.capability_bits = 0;
		types.has_Half = types.has_BFloat16 = types.has_Float = 1;
		types.has_Float8_e4m3fn = types.has_Float8_e5m2 = 1;
		types.has_Bool = types.has_Byte = types.has_Char = 1;
		types.has_Short = types.has_Int = types.has_Long = 1;
		return capability;
	}

	c10::Stream getStream(c10::Device d) const override
	{
		return current_stream(d.index());
	}

	c10::Stream getDefaultStream(c10::Device d) const override
	{
		return default_stream(d.index());
	}

	c10::Stream getStreamFromGlobalPool(c10::Device d, bool high) const override
	{
		return stream_from_pool(d.index(), high ? -1 : 0);
	}

	c10::Stream getNewStream(c10::Device d, int priority) const override
	{
		return stream_from_pool(d.index(), priority);
	}

	c10::Stream exchangeStream(c10::Stream stream) const override
	{
		return exchange_stream(stream);
	}

	void *getStreamNativeHandle(const c10::Stream stream) const override
	{
		return native_stream(stream);
	}

	bool queryStream(const c10::Stream &stream) const override
	{
		return query_stream(stream);
	}

	void synchronizeStream(const c10::Stream &stream) const override
	{
		synchronize_stream(stream);
	}

	void synchronizeDevice(const c10::DeviceIndex index) const override
	{
		synchronize_device(index);
	}

	void recordDataPtrOnStream(const c10::DataPtr &ptr,
				   const c10::Stream &stream) const override
	{
		device_allocator()->recordStream(ptr, stream);
	}

	void record(void **event, const c10::Stream &stream, const c10::DeviceIndex,
		    const c10::EventFlag flag) const override
	{
		record_event(event, stream, flag);
	}

	void block(void *event, const c10::Stream &stream) const override
	{
		block_on_event(event, stream);
	}

	bool queryEvent(void *event) const override
	{
		return query_event(event);
	}

	void synchronizeEvent(void *event) const override
	{
		synchronize_event(event);
	}

	double elapsedTime(void *start, void *end, const c10::DeviceIndex) const override
	{
		return elapsed_time(start, end);
	}

	void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override
	{
		destroy_event(event);
	}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

} // namespace

} // namespace torch_spyre

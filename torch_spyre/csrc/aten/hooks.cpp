// SPDX-License-Identifier: MIT
/* Hooks that torch.accelerator and other device-independent code call. */
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "alias.h"
#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/host_allocator.h"

namespace torch_spyre {

namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
	bool isBuilt() const override
	{
		return true;
	}

	bool isAvailable() const override
	{
		return device_count() > 0;
	}

	bool hasPrimaryContext(c10::DeviceIndex device) const override
	{
		return has_context(device);
	}

	void init() const override
	{
		context(current_device());
	}

	c10::DeviceIndex deviceCount() const override
	{
		return device_count();
	}

	void setCurrentDevice(c10::DeviceIndex device) const override
	{
		set_current_device(device);
	}

	c10::DeviceIndex getCurrentDevice() const override
	{
		return current_device();
	}

	c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override
	{
		c10::DeviceIndex old = current_device();

		set_current_device(device);
		return old;
	}

	/* Selecting a card does not open it, so the exchange has no cost to avoid. */
	c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override
	{
		c10::DeviceIndex old = current_device();

		if (device >= 0)
			set_current_device(device);
		return old;
	}

	bool isPinnedPtr(const void *data) const override
	{
		return is_pinned(data);
	}

	c10::Allocator *getPinnedMemoryAllocator() const override
	{
		return host_allocator();
	}

	at::Device getDeviceFromPtr(void *data) const override
	{
		c10::DeviceIndex device = device_of_address(reinterpret_cast<spyre_devptr>(data));

		TORCH_CHECK(device >= 0, "spyre: ", data, " is not memory of a spyre device");
		return at::Device(c10::DeviceType::PrivateUse1, device);
	}

	const at::Generator &getDefaultGenerator(c10::DeviceIndex device) const override
	{
		return default_generator(device);
	}

	at::Generator getNewGenerator(c10::DeviceIndex device) const override
	{
		return new_generator(device);
	}

	void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override
	{
		resize_storage_bytes(storage, static_cast<int64_t>(bytes));
	}
};

/* Not destroyed, because PyTorch keeps the pointer until the end. */
const bool registered = [] {
	at::RegisterPrivateUse1HooksInterface(new Hooks);
	return true;
}();

} // namespace

} // namespace torch_spyre

// SPDX-License-Identifier: MIT
/* Generators of spyre devices. */
#include "generator.h"

#include <array>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GeneratorImpl.h>

#include "device.h"

namespace torch_spyre {

namespace {

class SpyreGenerator final : public c10::GeneratorImpl {
public:
	SpyreGenerator(c10::DeviceIndex device, at::Generator host)
		: c10::GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, device),
				     c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
		  host(std::move(host))
	{
	}

	static c10::DeviceType device_type()
	{
		return c10::DeviceType::PrivateUse1;
	}

	void set_current_seed(uint64_t seed) override
	{
		host.set_current_seed(seed);
	}

	void set_offset(uint64_t offset) override
	{
		host.set_offset(offset);
	}

	uint64_t get_offset() const override
	{
		return host.get_offset();
	}

	uint64_t current_seed() const override
	{
		return host.current_seed();
	}

	uint64_t seed() override
	{
		return host.seed();
	}

	void set_state(const c10::TensorImpl &state) override
	{
		host.unsafeGetGeneratorImpl()->set_state(state);
	}

	c10::intrusive_ptr<c10::TensorImpl> get_state() const override
	{
		return host.unsafeGetGeneratorImpl()->get_state();
	}

	at::Generator host;

private:
	SpyreGenerator *clone_impl() const override
	{
		return new SpyreGenerator(device().index(), host.clone());
	}
};

} // namespace

at::Generator new_generator(c10::DeviceIndex device)
{
	return at::make_generator<SpyreGenerator>(check_index(device),
						  at::detail::createCPUGenerator());
}

const at::Generator &default_generator(c10::DeviceIndex device)
{
	static auto *generators = new std::array<at::Generator, MAX_DEVICES>;
	static std::array<std::once_flag, MAX_DEVICES> once;

	device = check_index(device);
	std::call_once(once[device], [&] {
		(*generators)[device] = new_generator(device);
		(*generators)[device].seed();
	});
	return (*generators)[device];
}

at::Generator host_generator(const std::optional<at::Generator> &generator,
			     c10::DeviceIndex device)
{
	if (!generator || !generator->defined())
		return default_generator(device).get<SpyreGenerator>()->host;
	TORCH_CHECK(generator->device().is_privateuseone(),
		    "spyre: expected a generator of spyre, got one of ", generator->device(),
		    "; make it with torch.Generator(\"spyre\")");
	return generator->get<SpyreGenerator>()->host;
}

} // namespace torch_spyre

// SPDX-License-Identifier: MIT
/* Program memory: binaries, correction flits and launches. See docs/bundles.md for the form. */
#include "program.hpp"

#include <spyre/kernel.h>
#include <spyre/stream.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "error.hpp"

namespace spyre_compat
{
namespace
{
/* init_binary.bin: the fields that a launch needs, all little endian. */
constexpr std::size_t image_bytes_at = 8;
constexpr std::size_t num_args_at = 64;
constexpr std::size_t num_operands_at = 68;
constexpr std::size_t args_at = 256;
constexpr std::size_t arg_bytes = 80;
constexpr std::size_t operand_bytes = 16;

constexpr std::size_t flit_bytes = 128;
constexpr std::size_t flit_words = 16;

std::uint64_t little(const std::uint8_t *bytes, int count)
{
	std::uint64_t value = 0;

	while (count--)
		value = value << 8 | bytes[count];
	return value;
}

std::vector<Operand> read_operands(const std::uint8_t *image)
{
	const std::uint64_t count = little(image + num_operands_at, 4);
	const std::uint8_t *entry = image + args_at + arg_bytes * little(image + num_args_at, 4);
	std::vector<Operand> operands;

	for (std::uint64_t i = 0; i < count; i++, entry += operand_bytes)
		operands.push_back({ little(entry, 4) != 0,
				     static_cast<std::uint32_t>(little(entry + 4, 4)),
				     little(entry + 8, 8) });
	return operands;
}
}

LoadedKernel::LoadedKernel(spyre_context *context, const std::uint8_t *image, std::size_t bytes)
    : bytes_(bytes)
{
	spyre_kernel_info info = {};

	info.struct_size = sizeof(info);
	/* libspyre checks every field, so that the tables are within the image afterwards. */
	check(spyre_kernel_load_image(context, image, bytes, &kernel_),
	      "cannot load a program");
	spyre_status status = spyre_kernel_get_info(kernel_, &info);
	symbols_.resize(status ? 0 : info.num_symbols);
	for (std::size_t i = 0; i < symbols_.size() && !status; i++)
		status = spyre_kernel_get_symbol(kernel_, i, &symbols_[i]);
	if (status) {
		spyre_kernel_unload(kernel_);
		fail(status, "cannot load a program");
	}
	num_args_ = info.num_args;
	operands_ = read_operands(image);
}

LoadedKernel::~LoadedKernel()
{
	spyre_kernel_unload(kernel_);
}

std::size_t LoadedKernel::correction_bytes() const noexcept
{
	const std::size_t words = operands_.size() + symbols_.size();
	const std::size_t flits = (words + flit_words - 1) / flit_words;

	return flits * flit_bytes;
}

std::vector<spyre_binding> LoadedKernel::values(const std::uint8_t *flits) const
{
	std::vector<spyre_binding> bindings;

	for (std::size_t i = 0; i < symbols_.size(); i++) {
		const std::uint8_t *word = flits + (operands_.size() + i) * 8;

		bindings.push_back({ symbols_[i].name,
				     static_cast<std::int64_t>(little(word, 8)) });
	}
	return bindings;
}

std::vector<spyre_devptr> LoadedKernel::arguments(const std::uint8_t *flits) const
{
	std::vector<spyre_devptr> args(num_args_, 0);

	for (std::size_t i = 0; i < operands_.size(); i++) {
		const Operand &operand = operands_[i];
		const std::uint64_t address = little(flits + i * sizeof(address), 8);

		if (operand.is_pool)
			continue;
		spyre_devptr &arg = args.at(operand.arg);
		if (arg && arg != address - operand.offset)
			throw std::runtime_error(
				"cannot launch a program: its correction flits name two addresses "
				"for argument " + std::to_string(operand.arg) + ", " +
				std::to_string(arg) + " and " +
				std::to_string(address - operand.offset));
		arg = address - operand.offset;
	}
	/* No operand reads an argument that the bundle skips, but it needs an allocated address. */
	const auto used = std::find_if(args.begin(), args.end(),
				       [](spyre_devptr arg) { return arg; });
	const spyre_devptr live = used == args.end() ? 0 : *used;
	std::replace(args.begin(), args.end(), spyre_devptr{ 0 }, live);
	return args;
}

void ProgramMemory::write(std::uint64_t offset, const void *source, std::size_t bytes)
{
	const std::lock_guard guard(mutex_);

	std::memcpy(bytes_.data() + offset, source, bytes);
	std::erase_if(kernels_, [&](const auto &entry) {
		return entry.first < offset + bytes && offset < entry.first + entry.second->bytes();
	});
}

void ProgramMemory::read(std::uint64_t offset, void *target, std::size_t bytes) const
{
	const std::lock_guard guard(mutex_);

	std::memcpy(target, bytes_.data() + offset, bytes);
}

std::shared_ptr<LoadedKernel> ProgramMemory::kernel_at(spyre_context *context,
						       std::uint64_t offset)
{
	const std::uint8_t *image = bytes_.data() + offset;
	std::size_t bytes = bytes_.size() - offset;
	auto &kernel = kernels_[offset];

	if (kernel)
		return kernel;
	/* The allocation may be longer than the binary; a wrong length is left to libspyre. */
	if (bytes >= args_at && little(image + image_bytes_at, 8) < bytes)
		bytes = little(image + image_bytes_at, 8);
	try {
		kernel = std::make_shared<LoadedKernel>(context, image, bytes);
	} catch (...) {
		kernels_.erase(offset);
		throw;
	}
	return kernel;
}

void ProgramMemory::launch(spyre_stream *stream, std::uint64_t offset,
			   const std::vector<spyre_devptr> &addresses)
{
	std::shared_ptr<LoadedKernel> kernel;
	std::vector<spyre_devptr> used = addresses;
	std::vector<spyre_binding> values;
	std::vector<spyre_launch_arg> args;
	spyre_launch_params params = {};

	{
		const std::lock_guard guard(mutex_);

		if (offset >= bytes_.size())
			throw std::runtime_error(
				"cannot launch a program: it starts at byte " +
				std::to_string(offset) + " of an allocation of " +
				std::to_string(bytes_.size()) + " bytes");
		kernel = kernel_at(spyre_stream_context(stream), offset);
		if ((addresses.empty() || kernel->has_symbols()) &&
		    offset < kernel->correction_bytes())
			throw std::runtime_error(
				"cannot launch a program: it starts at byte " +
				std::to_string(offset) + ", its correction flits need " +
				std::to_string(kernel->correction_bytes()) + " bytes in front of it");
		if (addresses.empty())
			used = kernel->arguments(bytes_.data());
		values = kernel->values(bytes_.data());
	}
	for (const spyre_devptr address : used)
		args.push_back({ address, nullptr, nullptr });
	params.struct_size = sizeof(params);
	params.args = args.data();
	params.num_args = args.size();
	params.bindings = values.data();
	params.num_bindings = values.size();
	check(spyre_launch_ex(stream, kernel->kernel(), &params), "cannot launch a program");
}
}

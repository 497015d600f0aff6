/* SPDX-License-Identifier: MIT */
/*
 * Program memory. libspyre loads programs itself, from the bytes of init_binary.bin, so that
 * an allocation of segment 7 is a copy in host memory: transfers to it are made at the call,
 * and a launch reads the binary and the correction flits in front of it.
 */
#ifndef SPYRE_COMPAT_PROGRAM_HPP
#define SPYRE_COMPAT_PROGRAM_HPP

#include <spyre/kernel.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace spyre_compat
{
/* A word of the correction flits: an address in argument @arg, or in the pool. Symbols follow. */
struct Operand {
	bool is_pool;
	std::uint32_t arg;
	std::uint64_t offset;
};

/* A kernel that was loaded from program memory. */
class LoadedKernel
{
public:
	LoadedKernel(spyre_context *context, const std::uint8_t *image, std::size_t bytes);
	LoadedKernel(const LoadedKernel &) = delete;
	LoadedKernel &operator=(const LoadedKernel &) = delete;
	~LoadedKernel();

	spyre_kernel *kernel() const noexcept
	{
		return kernel_;
	}
	std::size_t bytes() const noexcept
	{
		return bytes_;
	}
	std::uint32_t num_args() const noexcept
	{
		return num_args_;
	}
	/* Bytes of the correction flits in front of the binary. */
	std::size_t correction_bytes() const noexcept;
	/* Returns the argument addresses that the flits at @flits name. */
	std::vector<spyre_devptr> arguments(const std::uint8_t *flits) const;
	/* Returns the values of the kernel's symbols that the flits at @flits name. */
	std::vector<spyre_binding> values(const std::uint8_t *flits) const;
	bool has_symbols() const noexcept
	{
		return !symbols_.empty();
	}

private:
	spyre_kernel *kernel_ = nullptr;
	std::size_t bytes_;
	std::uint32_t num_args_ = 0;
	std::vector<Operand> operands_;
	std::vector<spyre_symbol_info> symbols_;
};

class ProgramMemory
{
public:
	explicit ProgramMemory(std::uint64_t bytes) : bytes_(bytes)
	{
	}

	void write(std::uint64_t offset, const void *source, std::size_t bytes);
	void read(std::uint64_t offset, void *target, std::size_t bytes) const;
	/*
	 * Queues a launch of the binary at @offset on @stream. The argument addresses are
	 * @addresses, or those of the correction flits if it is empty. The sizes of
	 * dimensions are always those of the correction flits.
	 */
	void launch(spyre_stream *stream, std::uint64_t offset,
		    const std::vector<spyre_devptr> &addresses);

private:
	std::shared_ptr<LoadedKernel> kernel_at(spyre_context *context, std::uint64_t offset);

	/* Protects bytes_ and kernels_. */
	mutable std::mutex mutex_;
	std::vector<std::uint8_t> bytes_;
	std::map<std::uint64_t, std::shared_ptr<LoadedKernel>> kernels_;
};
}

#endif /* SPYRE_COMPAT_PROGRAM_HPP */

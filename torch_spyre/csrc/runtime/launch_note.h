// SPDX-License-Identifier: MIT
/*
 * Notes on launches for torch.profiler: names, shapes and costs that libspyre's
 * records lack. While no session records, a launch reads one flag.
 */
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "spyre.h"

namespace torch_spyre {

/* A kernel, as a trace shows it. */
struct KernelNote {
	/* The operations of ATen that it computes, "aten.mm+aten.gelu". */
	std::string title;
	/* The key of its bundle and the folder; empty if it has none. */
	std::string key, directory;
	/* Sizes and formats of its operands, inputs first. */
	std::string shapes;
	spyre_kernel_info info;
	/* While the session lasts no other kernel can have this one's address. */
	std::shared_ptr<spyre_kernel> kernel;
};

extern std::atomic<bool> launches_noted;

/* Starts and ends the notes of a session. Notes from before are dropped. */
void start_notes();
void stop_notes();

/*
 * Returns the note of the launch that has a record's correlation number, and replaces the number by
 * that of the operation around the launch; NULL if the number is an operation's.
 */
const KernelNote *noted(uint64_t *correlation);

/* "2x64x256 SEN169_FP16": the host's size of an operand and the card's format. */
std::string shape_text(const int64_t *size, uint32_t rank, spyre_format format);

/* The launches of this thread, while it exists, are those of @kernel, which @describe describes. */
class NotedLaunch {
public:
	template <class Describe>
	NotedLaunch(const std::shared_ptr<spyre_kernel> &kernel, const Describe &describe)
	{
		if (__builtin_expect(launches_noted.load(std::memory_order_relaxed), 0))
			begin(kernel, describe);
	}
	~NotedLaunch()
	{
		if (__builtin_expect(active_, 0))
			spyre_activity_correlate(outer_);
	}
	NotedLaunch(const NotedLaunch &) = delete;
	NotedLaunch &operator=(const NotedLaunch &) = delete;

private:
	bool active_ = false;
	uint64_t outer_ = 0;

	void begin(const std::shared_ptr<spyre_kernel> &kernel,
		   const std::function<void(KernelNote *)> &describe);
};

} // namespace torch_spyre

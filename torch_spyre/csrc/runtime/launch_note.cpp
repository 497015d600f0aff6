// SPDX-License-Identifier: MIT
/*
 * Notes on launches. A noted launch has a correlation number of its own, by which the
 * profiler finds the kernel and the operation that launched it.
 */
#include "launch_note.h"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace torch_spyre {

std::atomic<bool> launches_noted{ false };

namespace {

/* Marks numbers of launches; those of operations are smaller. A session and an index follow. */
constexpr uint64_t MARK = UINT64_C(1) << 62;
constexpr unsigned INDEX_BITS = 40;
constexpr uint64_t INDEX_MASK = (UINT64_C(1) << INDEX_BITS) - 1;
constexpr uint64_t SESSION_MASK = (UINT64_C(1) << 20) - 1;

struct Launch {
	const KernelNote *note;
	uint64_t outer;
};

/* Protects everything below. */
std::mutex lock;
uint64_t session;
std::unordered_map<const spyre_kernel *, std::unique_ptr<KernelNote>> notes;
std::vector<Launch> launches;

const KernelNote *note_of(const std::shared_ptr<spyre_kernel> &kernel,
			  const std::function<void(KernelNote *)> &describe)
{
	std::unique_ptr<KernelNote> &note = notes[kernel.get()];

	if (!note) {
		note = std::make_unique<KernelNote>();
		note->kernel = kernel;
		note->info.struct_size = sizeof(note->info);
		if (spyre_kernel_get_info(kernel.get(), &note->info) != SPYRE_SUCCESS)
			note->info = {};
		describe(note.get());
	}
	return note.get();
}

} // namespace

void start_notes()
{
	std::lock_guard<std::mutex> hold(lock);

	session = (session + 1) & SESSION_MASK;
	launches.clear();
	notes.clear();
	launches_noted = true;
}

void stop_notes()
{
	launches_noted = false;
}

void NotedLaunch::begin(const std::shared_ptr<spyre_kernel> &kernel,
			const std::function<void(KernelNote *)> &describe)
{
	std::lock_guard<std::mutex> hold(lock);
	const KernelNote *note = note_of(kernel, describe);

	if (launches.size() > INDEX_MASK)
		return;
	active_ = true;
	outer_ = spyre_activity_correlate(MARK | session << INDEX_BITS | launches.size());
	launches.push_back({ note, outer_ });
}

const KernelNote *noted(uint64_t *correlation)
{
	std::lock_guard<std::mutex> hold(lock);
	uint64_t number = *correlation, index = number & INDEX_MASK;

	if (!(number & MARK))
		return nullptr;
	*correlation = 0;
	if ((number >> INDEX_BITS & SESSION_MASK) != session || index >= launches.size())
		return nullptr;
	*correlation = launches[index].outer;
	return launches[index].note;
}

std::string shape_text(const int64_t *size, uint32_t rank, spyre_format format)
{
	const char *name = spyre_format_name(format);
	std::string text;

	for (uint32_t d = 0; d < rank; d++)
		text += (d ? "x" : "") + std::to_string(size[d]);
	if (!rank)
		text = "1";
	return text + " " + (name ? name : "?");
}

} // namespace torch_spyre

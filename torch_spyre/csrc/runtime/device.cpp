// SPDX-License-Identifier: MIT
/* Cards: one context each, opened by its first use and never at import. */
#include "device.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include <pthread.h>

#include <c10/util/Exception.h>

#include "program.h"
#include "trace_level.h"

namespace torch_spyre {

namespace {

/* True in a forked child that inherits contexts, until it ends. */
std::atomic<bool> forked{false};
std::atomic<bool> initialized{false};

struct Card {
	std::mutex lock;
	std::atomic<spyre_context *> context{nullptr};
	std::atomic<uint64_t> generation{1};
	/* Number of threads that have got the context and may hold objects of it. */
	unsigned users = 0;
};

Card &card(c10::DeviceIndex index)
{
	/* Not destroyed, because static tensors outlive this file's statics. */
	static auto *cards = new Card[MAX_DEVICES];

	return cards[index];
}

/* The card that a thread begins with: torchrun gives LOCAL_RANK to each process of a group. */
c10::DeviceIndex first_card() noexcept
{
	const char *text = std::getenv("LOCAL_RANK");
	char *end;
	long rank;

	if (!text)
		return 0;
	rank = std::strtol(text, &end, 10);
	if (end == text || *end || rank < 0 || rank >= device_count())
		return 0;
	return static_cast<c10::DeviceIndex>(rank);
}

thread_local c10::DeviceIndex current = first_card();
/* The generation of each card's context that this thread is a user of. */
thread_local uint64_t used[MAX_DEVICES];

struct Leaving {
	~Leaving()
	{
		if (in_bad_fork())
			return;
		for (int i = 0; i < MAX_DEVICES; i++) {
			if (!used[i])
				continue;

			std::lock_guard<std::mutex> guard(card(i).lock);

			if (used[i] == card(i).generation.load())
				card(i).users--;
			used[i] = 0;
		}
	}
};

/* Caller holds the card's lock. */
void become_user(c10::DeviceIndex index)
{
	static thread_local Leaving leaving;

	(void)leaving;
	if (used[index] == card(index).generation.load())
		return;
	used[index] = card(index).generation.load();
	card(index).users++;
}

void in_child()
{
	if (initialized.load())
		forked.store(true);
}

void watch_forks()
{
	static std::once_flag once;

	std::call_once(once, [] { pthread_atfork(nullptr, nullptr, in_child); });
}

void check_fork()
{
	TORCH_CHECK(!in_bad_fork(),
		    "Cannot re-initialize spyre in forked subprocess. To use spyre with "
		    "multiprocessing, you must use the 'spawn' start method");
}

} // namespace

c10::DeviceIndex device_count() noexcept
{
	/* The environment determines the visible cards once per process. */
	static const int count = [] {
		int n;

		return spyre_device_count(&n) == SPYRE_SUCCESS ? std::min(n, MAX_DEVICES) : 0;
	}();

	return static_cast<c10::DeviceIndex>(count);
}

c10::DeviceIndex check_index(int index)
{
	if (index == -1)
		return current;
	if (index < 0 || index >= device_count()) {
		int n;

		/* If the configuration hides all cards, libspyre's error says so. */
		check(spyre_device_count(&n), "counting devices");
		TORCH_CHECK(false, "spyre: device index ", index, " is out of range: ", n,
			    n == 1 ? " card is" : " cards are",
			    " visible (SPYRE_DEVICES, AIU_WORLD_SIZE)");
	}
	return static_cast<c10::DeviceIndex>(index);
}

c10::DeviceIndex current_device() noexcept
{
	return current;
}

void set_current_device(c10::DeviceIndex index)
{
	TORCH_CHECK(index >= 0, "spyre: device index ", static_cast<int>(index),
		    " is out of range");
	current = check_index(index);
}

void set_current_device_unchecked(c10::DeviceIndex index) noexcept
{
	current = index;
}

bool is_initialized() noexcept
{
	return initialized.load() && !forked.load();
}

bool in_bad_fork() noexcept
{
	return forked.load(std::memory_order_relaxed);
}

bool has_context(c10::DeviceIndex index) noexcept
{
	return index >= 0 && index < device_count() && !in_bad_fork() &&
	       card(index).context.load() != nullptr;
}

uint64_t generation(c10::DeviceIndex index) noexcept
{
	return card(index).generation.load(std::memory_order_acquire);
}

static spyre_context *open_card(c10::DeviceIndex index)
{
	Card &c = card(check_index(index));
	std::lock_guard<std::mutex> guard(c.lock);
	spyre_context *context = c.context.load();

	if (!context) {
		watch_forks();
		read_trace_level();
		check(spyre_context_create(index, 0, &context), "opening the card");
		initialized.store(true);
		c.context.store(context, std::memory_order_release);
	}
	become_user(index);
	return context;
}

spyre_context *context(c10::DeviceIndex index)
{
	spyre_context *context;

	check_fork();
	if (index < 0)
		index = check_index(index);
	else if (index >= MAX_DEVICES)
		check_index(index);
	context = card(index).context.load(std::memory_order_acquire);
	if (__builtin_expect(context && used[index] == generation(index), 1))
		return context;
	return open_card(index);
}

spyre_context *leave_context(c10::DeviceIndex index)
{
	Card &c = card(index);
	std::lock_guard<std::mutex> guard(c.lock);
	spyre_context *context = c.context.exchange(nullptr);
	unsigned self = used[index] == c.generation.load() ? 1 : 0;
	bool shared = c.users > self;

	/* Kernels belong to the ending context, also those that were compiled meanwhile. */
	program_cache_clear(index);
	c.generation.fetch_add(1);
	program_cache_clear(index);
	c.users = 0;
	return shared ? nullptr : context;
}

void share_context(c10::DeviceIndex index)
{
	std::lock_guard<std::mutex> guard(card(index).lock);

	card(index).users++;
}

std::shared_ptr<spyre_kernel> keep_kernel(spyre_kernel *kernel, c10::DeviceIndex index,
					  uint64_t since)
{
	return {kernel, [index, since](spyre_kernel *k) {
		if (since == generation(index) && !in_bad_fork())
			(void)spyre_kernel_unload(k);
	}};
}

} // namespace torch_spyre

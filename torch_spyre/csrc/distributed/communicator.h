// SPDX-License-Identifier: MIT
/* Communicators of libspyre, created through the store of a process group. */
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <spyre/collective.h>

#include "runtime/spyre.h"

namespace torch_spyre {

/* As check(), but failures of a communicator are torch.distributed.DistBackendError. */
[[noreturn]] void fail_communicator(spyre_status status, const std::string &what);

inline void check_communicator(spyre_status status, const char *what)
{
	if (__builtin_expect(status != SPYRE_SUCCESS, 0))
		fail_communicator(status, what);
}

/* The ranks that create a communicator, and how they find each other. */
struct Meeting {
	c10::intrusive_ptr<c10d::Store> store;
	/* Under which rank 0 publishes the id. */
	std::string key;
	/* For messages. */
	std::string name;
	int rank, size;
	std::chrono::milliseconds timeout;
	/*
	 * If not NULL, true ends the wait for the others: rank 0 then begins after the other one of
	 * two ranks has come, since the wait of libspyre cannot be ended.
	 */
	const std::atomic<bool> *cancelled = nullptr;
};

/* Owns a spyre_comm of one card. All functions may be called from any thread. */
class Communicator {
public:
	/* Waits for the other ranks of @meeting, without the GIL. Throws DistBackendError. */
	static std::shared_ptr<Communicator> meet(const Meeting &meeting,
						  c10::DeviceIndex device);
	/* Owns @comm. */
	Communicator(spyre_comm *comm, c10::DeviceIndex device);
	/* Ends what is pending: other ranks may never finish it. */
	~Communicator();
	Communicator(const Communicator &) = delete;
	Communicator &operator=(const Communicator &) = delete;

	/* Throws if the card was reset since, which has ended the communicator. */
	spyre_comm *get() const;
	c10::DeviceIndex device() const { return device_; }
	/* The first failure or SUCCESS, with its text. */
	spyre_status error(std::string *text) const;
	/* Throws the first failure. */
	void check(const char *what) const;
	/* Sets the time limit of the calls from now on. */
	void limit(std::chrono::milliseconds timeout) const;
	void abort() noexcept;
	/* Waits for queued collectives, then leaves the communicator. */
	void shutdown();
	/* Ends the communicator, since the card's context ends. */
	void drop() noexcept;

private:
	mutable std::mutex lock_;
	spyre_comm *comm_;
	const c10::DeviceIndex device_;
	const uint64_t generation_;
};

/* Ends the communicators of a card before its context is destroyed. */
void drop_communicators(c10::DeviceIndex device);

} // namespace torch_spyre

// SPDX-License-Identifier: MIT
/*
 * The communicator of two ranks for their sends and receives. A thread creates it, so that a send
 * does not wait for the receiver: in a ring, all ranks send before they receive.
 */
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "communicator.h"

namespace torch_spyre {

class Channel {
public:
	/* Called with the communicator, or with NULL and the reason. */
	using Job = std::function<void(const std::shared_ptr<Communicator> &,
				       std::exception_ptr)>;

	Channel(Meeting meeting, c10::DeviceIndex device);
	/* Cancels the creation. */
	~Channel();

	/* Calls @job now, or on the thread once the communicator exists. In order. */
	void run(Job job);
	/* Waits for the communicator; throws the reason if there is none. */
	std::shared_ptr<Communicator> wait();

	/* The communicator, NULL while there is none. */
	std::shared_ptr<Communicator> communicator();
	void cancel() { cancelled_ = true; }

private:
	void start();
	void create();

	Meeting meeting_;
	const c10::DeviceIndex device_;
	std::atomic<bool> cancelled_{ false };
	std::mutex lock_;
	std::condition_variable changed_;
	/* Protected by lock_. */
	std::shared_ptr<Communicator> communicator_;
	std::exception_ptr failure_;
	std::vector<Job> jobs_;
	bool running_ = false;
	std::thread thread_;
};

} // namespace torch_spyre

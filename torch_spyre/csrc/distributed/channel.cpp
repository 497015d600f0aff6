// SPDX-License-Identifier: MIT
/* Channels: the communicators of two ranks. */
#include "channel.h"

#include "runtime/device.h"
#include "runtime/gil.h"
#include "runtime/wait.h"

namespace torch_spyre {

Channel::Channel(Meeting meeting, c10::DeviceIndex device)
	: meeting_(std::move(meeting)), device_(device)
{
	meeting_.cancelled = &cancelled_;
}

Channel::~Channel()
{
	ReleaseGil no_gil;

	cancel();
	if (thread_.joinable())
		thread_.join();
}

/* Caller holds the lock. */
void Channel::start()
{
	if (running_ || communicator_ || failure_)
		return;
	running_ = true;
	thread_ = std::thread([this] { create(); });
}

void Channel::create()
{
	std::shared_ptr<Communicator> made;
	std::exception_ptr failure;

	try {
		set_current_device(device_);
		made = Communicator::meet(meeting_, device_);
	} catch (...) {
		failure = std::current_exception();
	}

	std::unique_lock<std::mutex> guard(lock_);

	/* Later jobs follow the earlier ones, so they are queued while those run. */
	communicator_ = made;
	failure_ = failure;
	for (size_t i = 0; i < jobs_.size(); i++) {
		Job job = std::move(jobs_[i]);

		guard.unlock();
		job(made, failure);
		guard.lock();
	}
	jobs_.clear();
	running_ = false;
	changed_.notify_all();
}

void Channel::run(Job job)
{
	std::unique_lock<std::mutex> guard(lock_);

	if (!running_ && (communicator_ || failure_)) {
		guard.unlock();
		job(communicator_, failure_);
		return;
	}
	jobs_.push_back(std::move(job));
	start();
}

std::shared_ptr<Communicator> Channel::wait()
{
	std::unique_lock<std::mutex> guard(lock_);

	start();
	/* Until the thread's jobs are queued, too, which precede those of the caller. */
	while (running_) {
		changed_.wait_for(guard, std::chrono::milliseconds(40));
		guard.unlock();
		raise_signals_too();
		guard.lock();
	}
	if (failure_)
		std::rethrow_exception(failure_);
	return communicator_;
}

std::shared_ptr<Communicator> Channel::communicator()
{
	std::lock_guard<std::mutex> guard(lock_);

	return communicator_;
}

} // namespace torch_spyre

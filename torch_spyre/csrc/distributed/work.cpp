// SPDX-License-Identifier: MIT
/* Work: the events at which a collective ends, and those who wait for them. */
#include "work.h"

#include <algorithm>
#include <thread>

#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include "runtime/stream.h"
#include "runtime/wait.h"

namespace torch_spyre {

namespace {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

c10::Device card(c10::DeviceIndex index)
{
	return c10::Device(c10::DeviceType::PrivateUse1, index);
}

} // namespace

SpyreWork::SpyreWork(int rank, c10d::OpType type, const char *title, uint64_t sequence,
		     Milliseconds timeout, const std::vector<at::Tensor> &inputs,
		     std::vector<at::Tensor> outputs, c10::DeviceIndex device)
	: Work(rank, type, title, inputs), sequence_(sequence), timeout_(timeout),
	  outputs_(std::move(outputs)), device_(device),
	  future_(c10::make_intrusive<c10::ivalue::Future>(
		  c10::ListType::create(c10::TensorType::get()),
		  std::vector<c10::Device>{ card(device) }))
{
}

void SpyreWork::add_outputs(const std::vector<at::Tensor> &outputs)
{
	outputs_.insert(outputs_.end(), outputs.begin(), outputs.end());
}

void SpyreWork::use(std::shared_ptr<Communicator> communicator)
{
	std::lock_guard<std::mutex> guard(mutex_);

	communicators_.push_back(std::move(communicator));
}

void SpyreWork::time_from(c10::Event start)
{
	std::lock_guard<std::mutex> guard(mutex_);

	start_ = std::move(start);
}

void SpyreWork::ends_at(c10::Event end, c10::Stream stream)
{
	std::lock_guard<std::mutex> guard(mutex_);

	ends_->push_back(std::move(end));
	streams_.push_back(stream);
}

void SpyreWork::submitted()
{
	{
		/* The future records events on the current stream, so it waits for all streams. */
		c10::Stream stream = streams_.empty() ? current_stream(device_) : streams_.back();
		c10::StreamGuard guard(stream);

		for (size_t i = 0; i + 1 < ends_->size(); i++)
			(*ends_)[i].block(stream);
		future_->markCompleted(c10::IValue(outputs_));
	}
	if (recordFunctionEndCallback_)
		std::exchange(recordFunctionEndCallback_, nullptr)();
	for (uint64_t flight : flights_)
		flight_queued(flight, ends_);

	std::lock_guard<std::mutex> guard(mutex_);

	completed_ = true;
	cv_.notify_all();
}

void SpyreWork::failed(std::exception_ptr why)
{
	{
		std::lock_guard<std::mutex> guard(mutex_);

		if (completed_)
			return;
		exception_ = why;
		completed_ = true;
	}
	cv_.notify_all();
	future_->setErrorIfNeeded(why);
	if (recordFunctionEndCallback_)
		std::exchange(recordFunctionEndCallback_, nullptr)();
}

bool SpyreWork::isCompleted()
{
	std::lock_guard<std::mutex> guard(mutex_);

	if (!completed_)
		return false;
	if (exception_)
		return true;
	try {
		return std::all_of(ends_->begin(), ends_->end(),
				   [](const c10::Event &end) { return end.query(); });
	} catch (...) {
		exception_ = std::current_exception();
		return true;
	}
}

bool SpyreWork::isSuccess() const
{
	return const_cast<SpyreWork *>(this)->isCompleted() && !exception();
}

std::exception_ptr SpyreWork::exception() const
{
	std::lock_guard<std::mutex> guard(mutex_);

	return exception_;
}

int SpyreWork::sourceRank() const
{
	return source_ >= 0 ? source_ : Work::sourceRank();
}

std::vector<at::Tensor> SpyreWork::result()
{
	return outputs_;
}

void SpyreWork::wait_until_submitted()
{
	std::unique_lock<std::mutex> guard(mutex_);

	while (!completed_) {
		cv_.wait_for(guard, Milliseconds(40));
		guard.unlock();
		raise_signals_too();
		guard.lock();
	}
	if (exception_)
		std::rethrow_exception(exception_);
}

/* The failure of a communicator has the text that names the rank. */
void SpyreWork::check_communicators() const
{
	for (const auto &communicator : communicators_)
		communicator->check(c10d::opTypeToString(opType_).c_str());
}

void SpyreWork::synchronize()
{
	wait_until_submitted();
	check_communicators();

	c10::Stream current = current_stream(device_);

	for (size_t i = 0; i < ends_->size(); i++)
		if (streams_[i] != current)
			(*ends_)[i].block(current);
}

void SpyreWork::wait_on_host(Milliseconds timeout)
{
	auto deadline = Clock::now() + timeout;
	auto pause = std::chrono::microseconds(20);

	while (!isCompleted()) {
		check_communicators();
		TORCH_CHECK_WITH(DistBackendError, Clock::now() < deadline, "spyreccl: ",
				 c10d::opTypeToString(opType_), " of sequence number ", sequence_,
				 " has not finished within ", timeout.count(), " ms");
		raise_signals_too();
		std::this_thread::sleep_for(pause);
		pause = std::min(pause * 2, std::chrono::microseconds(2000));
	}
	check_communicators();
	if (exception_)
		std::rethrow_exception(exception_);
}

bool SpyreWork::wait(Milliseconds timeout)
{
	synchronize();
	if (timeout != kNoTimeout)
		wait_on_host(timeout);
	else if (blocking_)
		wait_on_host(timeout_);
	return true;
}

/* The card ends the work, so that its streams need no help of the host. */
void SpyreWork::blockCurrentStream()
{
	synchronize();
}

void SpyreWork::abort()
{
	for (const auto &communicator : communicators_)
		communicator->abort();
}

c10::intrusive_ptr<c10::ivalue::Future> SpyreWork::getFuture()
{
	return future_;
}

float SpyreWork::getDuration() const
{
	TORCH_CHECK(start_, "spyreccl: the work has no times; call "
		    "_enable_collectives_timing() of the group's back end before it");
	return static_cast<float>(start_->elapsedTime(ends_->back()));
}

uint64_t SpyreWork::getSequencenumber() const
{
	return sequence_;
}

} // namespace torch_spyre

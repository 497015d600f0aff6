// SPDX-License-Identifier: MIT
/*
 * The Work of a collective, or of several that were queued together. It is queued at once, except
 * that a send or receive whose communicator does not exist yet is queued when it does, and a
 * coalesced one when the coalescing ends.
 */
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "communicator.h"
#include "flight_recorder.h"

namespace torch_spyre {

class SpyreWork final : public c10d::Work {
public:
	SpyreWork(int rank, c10d::OpType type, const char *title, uint64_t sequence,
		  std::chrono::milliseconds timeout, const std::vector<at::Tensor> &inputs,
		  std::vector<at::Tensor> outputs, c10::DeviceIndex device);

	bool isCompleted() override;
	bool isSuccess() const override;
	std::exception_ptr exception() const override;
	int sourceRank() const override;
	std::vector<at::Tensor> result() override;
	void synchronize() override;
	bool wait(std::chrono::milliseconds timeout) override;
	void blockCurrentStream() override;
	void abort() override;
	c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
	float getDuration() const override;
	uint64_t getSequencenumber() const override;

	/* Of the back end. */
	void set_source(int rank) { source_ = rank; }
	void set_blocking() { blocking_ = true; }
	void add_outputs(const std::vector<at::Tensor> &outputs);
	void use(std::shared_ptr<Communicator> communicator);
	void time_from(c10::Event start);
	/* The work is queued on @stream, too; @end is recorded behind it. */
	void ends_at(c10::Event end, c10::Stream stream);
	/* Numbers of the recorder's entries. */
	void record_as(uint64_t flight) { flights_.push_back(flight); }
	/* Everything is queued. */
	void submitted();
	void failed(std::exception_ptr why);

private:
	void wait_until_submitted();
	void wait_on_host(std::chrono::milliseconds timeout);
	void check_communicators() const;

	const uint64_t sequence_;
	const std::chrono::milliseconds timeout_;
	std::vector<at::Tensor> outputs_;
	const c10::DeviceIndex device_;
	int source_ = -1;
	/* wait() waits on the host, as for a barrier. */
	bool blocking_ = false;
	/* The rest is protected by mutex_, and constant once completed_, which means submitted. */
	std::vector<std::shared_ptr<Communicator>> communicators_;
	const std::shared_ptr<Ends> ends_ = std::make_shared<Ends>();
	std::vector<c10::Stream> streams_;
	std::optional<c10::Event> start_;
	std::vector<uint64_t> flights_;
	c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace torch_spyre

// SPDX-License-Identifier: MIT
/*
 * spyreccl, the back end of torch.distributed for cards. It checks arguments, brings tensors into
 * the form that ranks exchange (wire.h), and queues the collectives of libspyre on streams.
 *
 * With asyncOp=false a collective is part of the caller's current stream and has no Work. With
 * asyncOp=true it is queued on a stream of the group, which waits for the present work of the
 * caller's; Work::wait() makes the then current stream wait. Sends and receives have a stream for
 * each peer and direction, and a communicator of the two ranks, so that no other rank takes part.
 */
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <tuple>

#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "channel.h"
#include "communicator.h"
#include "work.h"

namespace torch_spyre {

/* What the body of an operation fills: what follows it on its stream. */
struct GroupCall {
	spyre_comm *comm;
	spyre_stream *stream;
	/* Calls of collectives, which several operations make as one group. */
	std::vector<std::function<void()>> issue;
	/* Copies of results to the caller's tensors, after the collectives. */
	std::vector<std::function<void()>> finish;
};

struct Operation {
	c10d::OpType type;
	const char *name;
	/* The name in profiles, a literal. */
	const char *title;
	std::vector<at::Tensor> inputs, outputs;
	bool async;
	c10::DeviceIndex device;
	std::function<void(GroupCall &)> body;
	std::chrono::milliseconds timeout{ c10d::kUnsetTimeout };
	/* Of sends and receives. */
	int peer = -1;
	bool sends = false;
	std::vector<int64_t> input_splits{}, output_splits{};
	/* Number of the recorder's entry, if it records. */
	uint64_t flight = 0;

	bool is_p2p() const { return peer >= 0; }
};

class ProcessGroupSpyre final : public c10d::Backend {
public:
	static constexpr const char *kName = "spyreccl";

	struct Options final : c10d::Backend::Options {
		explicit Options(std::chrono::milliseconds timeout = kBackendDefaultTimeout,
				 bool high_priority = false);

		/* Streams of the group are of priority -1. */
		bool is_high_priority_stream;
	};

	using Tensors = std::vector<at::Tensor>;
	using WorkPtr = c10::intrusive_ptr<c10d::Work>;

	ProcessGroupSpyre(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
			  c10::intrusive_ptr<Options> options);
	~ProcessGroupSpyre() override;

	const std::string getBackendName() const override { return kName; }
	c10::intrusive_ptr<Options> options() const { return options_; }
	c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override;
	void setTimeout(std::chrono::milliseconds timeout) override;
	void eagerConnectSingleDevice(at::Device device) override;

	WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override;
	WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
	WorkPtr allreduce_coalesced(Tensors &tensors,
				    const c10d::AllreduceCoalescedOptions &opts) override;
	WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override;
	WorkPtr allgather(std::vector<Tensors> &outputs, Tensors &inputs,
			  const c10d::AllgatherOptions &opts) override;
	WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
				const c10d::AllgatherOptions &opts) override;
	WorkPtr allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
				    const c10d::AllgatherOptions &opts) override;
	WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
						const c10d::AllgatherOptions &opts) override;
	WorkPtr gather(std::vector<Tensors> &outputs, Tensors &inputs,
		       const c10d::GatherOptions &opts) override;
	WorkPtr scatter(Tensors &outputs, std::vector<Tensors> &inputs,
			const c10d::ScatterOptions &opts) override;
	WorkPtr reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
			       const c10d::ReduceScatterOptions &opts) override;
	WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
				     const c10d::ReduceScatterOptions &opts) override;
	WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
						const c10d::ReduceScatterOptions &opts) override;
	WorkPtr alltoall(Tensors &outputs, Tensors &inputs,
			 const c10d::AllToAllOptions &opts) override;
	WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input,
			      std::vector<int64_t> &output_splits,
			      std::vector<int64_t> &input_splits,
			      const c10d::AllToAllOptions &opts) override;
	WorkPtr barrier(const c10d::BarrierOptions &opts) override;
	WorkPtr send(Tensors &tensors, int peer, int tag) override;
	WorkPtr recv(Tensors &tensors, int peer, int tag) override;
	WorkPtr recvAnysource(Tensors &tensors, int tag) override;

	bool supportsCoalescing() const override { return true; }
	void startCoalescing() override;
	WorkPtr endCoalescing() override;

	bool supportsSplitting() const override { return true; }
	c10::intrusive_ptr<c10d::Backend>
	split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
	      const c10::intrusive_ptr<c10d::Backend::Options> &opts) override;
	bool supportsShrinking() const override { return true; }
	c10::intrusive_ptr<c10d::Backend>
	shrink(const std::vector<int64_t> &ranks, int flags,
	       const c10::intrusive_ptr<c10d::Backend::Options> &opts) override;

	/* The counter begins in the constructor, at 0 on all ranks. */
	void setSequenceNumberForGroup() override {}
	uint64_t getSequenceNumberForGroup() override;

	void abort() override;
	void shutdown() override;
	c10d::ErrorType getError() override;
	void enableCollectivesTiming() override;

private:
	WorkPtr submit(Operation op);
	WorkPtr run(Operation op, const c10::intrusive_ptr<SpyreWork> &work);
	void launch(std::vector<Operation> &ops,
		    const std::vector<std::shared_ptr<Communicator>> &communicators,
		    const c10::Event *begin, SpyreWork &work);
	void record(Operation &op, uint64_t sequence);
	uint64_t record_in_flight(const Operation &op, uint64_t sequence) const;

	std::shared_ptr<Communicator> communicator(c10::DeviceIndex device);
	Channel &channel(c10::DeviceIndex device, int peer);
	c10::Stream stream_of(const Operation &op);
	std::chrono::milliseconds limit_of(const Operation &op) const;
	std::string name() const;
	void check_usable() const;
	c10::DeviceIndex device_for_barrier(const c10d::BarrierOptions &opts) const;
	void check_root(int64_t root, const char *name) const;
	void check_count(size_t count, const char *name) const;
	WorkPtr reduce_all(Tensors &tensors, const c10d::AllreduceOptions &opts,
			   c10d::OpType type);

	const c10::intrusive_ptr<c10d::Store> store_;
	const c10::intrusive_ptr<Options> options_;

	mutable std::mutex lock_;
	/* The rest is protected by lock_, what coalesces by its thread. */
	std::map<c10::DeviceIndex, std::shared_ptr<Communicator>> communicators_;
	std::map<std::pair<c10::DeviceIndex, int>, std::unique_ptr<Channel>> channels_;
	std::map<std::tuple<c10::DeviceIndex, int, bool>, c10::Stream> streams_;
	unsigned meetings_ = 0;
	unsigned shrinks_ = 0;
	bool ended_ = false;

	std::atomic<uint64_t> collectives_{ 0 };
	std::atomic<uint64_t> transfers_{ 0 };
	std::atomic<bool> timing_{ false };

	bool coalescing_ = false;
	std::vector<Operation> coalesced_;
};

} // namespace torch_spyre

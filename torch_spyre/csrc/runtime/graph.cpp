// SPDX-License-Identifier: MIT
/* torch.accelerator.Graph: captures of libspyre, with memory that stays for replays. */
#include "graph.h"

#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include <ATen/core/GraphImplInterface.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include "cache.h"
#include "device.h"
#include "gil.h"
#include "host_allocator.h"
#include "stream.h"

namespace torch_spyre {

std::atomic<unsigned> captures{0};

namespace {

/* Counts the pools of all graphs of the process. */
std::atomic<uint64_t> pools{0};

class CapturedGraph final : public at::GraphImplInterface {
public:
	explicit CapturedGraph(const at::GraphImplArgs &args) : keep_graph_(args.keep_graph)
	{
	}
	~CapturedGraph() override;

	void capture_begin(at::MempoolId_t pool, at::GraphCaptureMode mode) override;
	void capture_end() override;
	void instantiate() override;
	void replay() override;
	void reset() override;
	at::MempoolId_t pool() const override;
	void enable_debug_mode() override { debug_ = true; }
	void debug_dump(const std::string &path) override;

	/* Caller holds the lock of the captures in progress. */
	bool is_capture(uint64_t number) const { return capture_ == number; }
	bool is_of_thread(std::thread::id id) const { return thread_ == id; }
	void note_failure(const std::string &why);
	void keep(void *pinned) { pinned_.push_back(pinned); }

private:
	bool is_current() const { return generation_ == generation(device_) && !in_bad_fork(); }
	void check_current() const;
	void release() noexcept;

	const bool keep_graph_;
	bool debug_ = false;
	spyre_graph *graph_ = nullptr;
	bool instantiated_ = false;
	/* The card of the capture, and its context. */
	c10::DeviceIndex device_ = 0;
	int stream_ = 0;
	uint64_t generation_ = 0;
	at::MempoolId_t pool_{0, 0};
	bool has_pool_ = false;
	/* Number of the capture while it is in progress, else 0. */
	uint64_t capture_ = 0;
	std::thread::id thread_;
	/* Reason why the capture has failed. */
	std::string failure_;
	/* Pinned memory that its copies use, and the streams that may use it. */
	std::vector<void *> pinned_;
	std::set<int> streams_;
};

struct InProgress {
	std::mutex lock;
	std::set<CapturedGraph *> graphs;
};

InProgress &in_progress()
{
	static auto *p = new InProgress;

	return *p;
}

template <typename F> void each_in_progress(F &&f)
{
	std::lock_guard<std::mutex> guard(in_progress().lock);

	for (CapturedGraph *graph : in_progress().graphs)
		f(graph);
}

void enter(CapturedGraph *graph)
{
	std::lock_guard<std::mutex> guard(in_progress().lock);

	in_progress().graphs.insert(graph);
	captures.fetch_add(1);
}

void leave(CapturedGraph *graph)
{
	std::lock_guard<std::mutex> guard(in_progress().lock);

	if (in_progress().graphs.erase(graph))
		captures.fetch_sub(1);
}

spyre_stream *stream_of(c10::DeviceIndex device, int id)
{
	return native_stream(make_stream(device, id));
}

} // namespace

uint64_t capture_of(c10::DeviceIndex device, int stream)
{
	uint64_t capture = 0;
	spyre_stream *native;

	if (has_context(device) &&
	    spyre_stream_get(context(device), stream, &native) == SPYRE_SUCCESS)
		(void)spyre_stream_get_capture(native, &capture);
	return capture;
}

bool current_stream_is_captured(c10::DeviceIndex device)
{
	return capture_of(device, static_cast<int>(current_stream(device).id())) != 0;
}

void CapturedGraph::note_failure(const std::string &why)
{
	if (failure_.empty())
		failure_ = why;
}

void capture_failed(const std::string &why)
{
	if (!captures.load())
		return;

	/* Threads of autograd also submit to the captured stream. */
	c10::DeviceIndex device = current_device();
	uint64_t capture = capture_of(device, static_cast<int>(current_stream(device).id()));

	each_in_progress([&](CapturedGraph *graph) {
		if (graph->is_of_thread(std::this_thread::get_id()) || graph->is_capture(capture))
			graph->note_failure(why);
	});
}

void refuse_in_graph(const char *what, const char *instead)
{
	std::string text = c10::str("spyre: ", what, " cannot be part of a graph: ", instead);

	capture_failed(text);
	TORCH_CHECK(false, text);
}

void keep_pinned(const void *pointer, c10::Stream stream)
{
	if (!captures.load())
		return;

	uint64_t capture = capture_of(stream.device_index(), static_cast<int>(stream.id()));

	if (capture)
		each_in_progress([&](CapturedGraph *graph) {
			if (graph->is_capture(capture))
				graph->keep(hold_pinned(pointer));
		});
}

namespace {

CapturedGraph::~CapturedGraph()
{
	if (!capture_) {
		release();
		return;
	}
	/* Ends a capture that the program did not end. */
	try {
		capture_end();
	} catch (const std::exception &) {
	}
	release();
}

/* libspyre captures a stream from any thread, so the mode is ignored. */
void CapturedGraph::capture_begin(at::MempoolId_t pool, at::GraphCaptureMode)
{
	TORCH_CHECK(!capture_, "spyre: Graph.capture_begin: the graph is being captured; call "
		    "capture_end() first");
	TORCH_CHECK(!graph_, "spyre: Graph.capture_begin: this object has a graph already; call "
		    "reset() to capture another one, or make another Graph");
	release();
	failure_.clear();

	c10::Stream stream = current_stream();
	spyre_stream *native = native_stream(stream);

	device_ = stream.device_index();
	stream_ = static_cast<int>(stream.id());
	generation_ = generation(device_);
	check(spyre_stream_begin_capture(native), "Graph.capture_begin");
	check(spyre_stream_get_capture(native, &capture_), "Graph.capture_begin");
	thread_ = std::this_thread::get_id();
	pool_ = pool.first || pool.second ? pool : at::MempoolId_t{++pools, 0};
	cache(device_).begin_capture(capture_, pool_);
	has_pool_ = true;
	streams_ = {stream_};
	enter(this);
}

void CapturedGraph::capture_end()
{
	TORCH_CHECK(capture_, "spyre: cannot end a capture: none has begun; call capture_begin() "
		    "first");

	uint64_t capture = std::exchange(capture_, 0);
	spyre_status status = SPYRE_SUCCESS;

	leave(this);
	if (!is_current()) {
		release();
		failure_ = "the device was reset during the capture";
		TORCH_CHECK(false, "spyre: Graph.capture_end: ", failure_, "; capture again");
	}
	cache(device_).end_capture(capture);
	status = spyre_stream_end_capture(stream_of(device_, stream_), &graph_);
	if (status != SPYRE_SUCCESS) {
		std::string text = spyre_last_error();

		release();
		failure_ = text;
		fail(status, "Graph.capture_end");
	}
	if (!failure_.empty()) {
		/* The refused call has raised an error; the incomplete graph is destroyed. */
		(void)spyre_graph_destroy(std::exchange(graph_, nullptr));
		release();
	} else if (!keep_graph_) {
		instantiated_ = true;
	}
}

void CapturedGraph::check_current() const
{
	TORCH_CHECK(graph_, "spyre: cannot use the graph: ", failure_.empty() ?
		    "it is empty; capture one with capture_begin() and capture_end()" :
		    "its capture failed: " + failure_);
	TORCH_CHECK(is_current(), "spyre: the graph was lost when the device was reset; capture it "
		    "again");
}

/* Nothing to do: captured graphs of libspyre can be launched. */
void CapturedGraph::instantiate()
{
	check_current();
	TORCH_CHECK(!instantiated_ || keep_graph_, "spyre: Graph.instantiate is for graphs with "
		    "keep_graph=True; capture_end() has done it");
	instantiated_ = true;
}

void CapturedGraph::replay()
{
	check_current();
	instantiated_ = true;

	c10::Stream stream = current_stream(device_);
	spyre_stream *native = native_stream(stream);

	RECORD_FUNCTION("Graph.replay", c10::ArrayRef<const c10::IValue>{});
	streams_.insert(static_cast<int>(stream.id()));
	ReleaseGil no_gil;

	check(spyre_graph_launch(graph_, native), "Graph.replay");
}

/* Releases all resources; running replays hold references of their own. */
void CapturedGraph::release() noexcept
{
	bool current = is_current();

	if (graph_ && current)
		(void)spyre_graph_destroy(graph_);
	graph_ = nullptr;
	instantiated_ = false;
	for (void *pinned : pinned_)
		release_pinned(pinned, device_, streams_);
	pinned_.clear();
	if (has_pool_ && current)
		cache(device_).release_pool(pool_);
	has_pool_ = false;
}

void CapturedGraph::reset()
{
	TORCH_CHECK(!capture_, "spyre: Graph.reset: the graph is being captured; call capture_end() "
		    "first");
	release();
	failure_.clear();
}

at::MempoolId_t CapturedGraph::pool() const
{
	TORCH_CHECK(has_pool_, "spyre: Graph.pool: the graph has no memory; capture it first");
	return pool_;
}

void write_dot(std::ostream &out, spyre_graph *graph)
{
	spyre_graph_info info{};

	info.struct_size = sizeof(info);
	check(spyre_graph_get_info(graph, &info), "Graph.debug_dump");
	out << "digraph spyre {\n\trankdir=TB;\n\tnode [shape=box];\n";
	for (uint32_t i = 0; i < info.operations; i++) {
		spyre_graph_operation operation{};

		operation.struct_size = sizeof(operation);
		check(spyre_graph_get_operation(graph, i, &operation), "Graph.debug_dump");
		out << "\tn" << i << " [label=\"" << operation.name << "\\nsubmission "
		    << operation.submission << ", " << operation.commands << " commands\"];\n";
		if (i)
			out << "\tn" << i - 1 << " -> n" << i << ";\n";
	}
	out << "}\n";
}

void CapturedGraph::debug_dump(const std::string &path)
{
	if (!debug_ && !keep_graph_) {
		TORCH_WARN("spyre: Graph.debug_dump writes nothing unless enable_debug_mode() was "
			   "called or keep_graph is set");
		return;
	}
	check_current();

	std::ofstream out(path);

	write_dot(out, graph_);
	out.close();
	TORCH_CHECK(out, "spyre: Graph.debug_dump: cannot write ", path);
}

} // namespace

} // namespace torch_spyre

namespace at {

/* Registered under the device's name, c10::DeviceTypeName(). */
REGISTER_GRAPH_IMPL(SPYRE, torch_spyre::CapturedGraph)

} // namespace at

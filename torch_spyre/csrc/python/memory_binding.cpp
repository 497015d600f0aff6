// SPDX-License-Identifier: MIT
/* The memory history and snapshots, in the form that PyTorch's viewer of memory reads. */
#include "module.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include "runtime/cache.h"
#include "runtime/device.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::SegmentInfo;

/* Dicts whose stacks are symbolized together at the end, since they share most frames. */
class Frames {
public:
	void add(const py::dict &dict, const CallStack &stack)
	{
		if (!stack) {
			dict["frames"] = py::list();
			return;
		}
		dicts.push_back(dict);
		stacks.push_back(torch::getCapturedTracebackFromContext(stack));
	}

	void symbolize()
	{
		torch::SymbolizedTracebacks symbolized = torch::symbolize(stacks);
		std::vector<py::dict> frames;

		for (const torch::unwind::Frame &frame : symbolized.all_frames) {
			py::dict d;

			d["filename"] = frame.filename;
			d["line"] = frame.lineno;
			d["name"] = frame.funcname;
			frames.push_back(d);
		}
		for (size_t i = 0; i < dicts.size(); i++) {
			py::list list;

			for (uint64_t frame : symbolized.tracebacks[i])
				list.append(frames[frame]);
			dicts[i]["frames"] = list;
		}
	}

private:
	std::vector<py::dict> dicts;
	std::vector<torch::CapturedTraceback *> stacks;
};

py::tuple pool_id(const c10::MempoolId_t &pool)
{
	return py::make_tuple(pool.first, pool.second);
}

int64_t stream_id(void *stream)
{
	return reinterpret_cast<intptr_t>(stream);
}

py::list blocks_of(const SegmentInfo &segment, Frames &frames)
{
	size_t address = segment.address;
	py::list list;

	for (const BlockInfo &block : segment.blocks) {
		py::dict d;

		d["address"] = address;
		d["size"] = block.size;
		d["requested_size"] = block.requested_size;
		d["state"] = block.allocated ? "active_allocated" :
			     block.active    ? "active_pending_free" :
					       "inactive";
		frames.add(d, block.context_when_allocated);
		list.append(d);
		address += block.size;
	}
	return list;
}

py::dict segment_dict(const SegmentInfo &segment, Frames &frames)
{
	py::dict d;

	d["device"] = static_cast<int>(segment.device);
	d["address"] = segment.address;
	d["total_size"] = segment.total_size;
	d["allocated_size"] = segment.allocated_size;
	d["active_size"] = segment.active_size;
	d["requested_size"] = segment.requested_size;
	d["stream"] = stream_id(segment.stream);
	d["segment_type"] = segment.is_large ? "large" : "small";
	d["segment_pool_id"] = pool_id(segment.owner_private_pool_id);
	d["is_expandable"] = segment.is_expandable;
	frames.add(d, segment.context_when_allocated);
	d["blocks"] = blocks_of(segment, frames);
	return d;
}

const char *action_name(TraceEntry::Action action)
{
	switch (action) {
	case TraceEntry::ALLOC:
		return "alloc";
	case TraceEntry::FREE_REQUESTED:
		return "free_requested";
	case TraceEntry::FREE_COMPLETED:
		return "free_completed";
	case TraceEntry::SEGMENT_ALLOC:
		return "segment_alloc";
	case TraceEntry::SEGMENT_FREE:
		return "segment_free";
	case TraceEntry::SEGMENT_MAP:
		return "segment_map";
	case TraceEntry::SEGMENT_UNMAP:
		return "segment_unmap";
	case TraceEntry::SNAPSHOT:
		return "snapshot";
	case TraceEntry::OOM:
		return "oom";
	}
	return "unknown";
}

py::dict entry_dict(const TraceEntry &entry, Frames &frames)
{
	py::dict d;

	d["action"] = action_name(entry.action_);
	d[entry.action_ == TraceEntry::OOM ? "device_free" : "addr"] = entry.addr_;
	d["size"] = entry.size_;
	d["stream"] = stream_id(entry.stream_);
	d["time_us"] = entry.time_.t_ / 1000;
	d["pool_id"] = pool_id(entry.mempool_);
	frames.add(d, entry.context_);
	return d;
}

py::dict snapshot(std::optional<c10::MempoolId_t> pool, bool entries)
{
	std::vector<CardSnapshot> cards;
	py::list segments, traces;
	Frames frames;
	py::dict result;

	for (c10::DeviceIndex i = 0; i < device_count(); i++)
		cards.push_back(cache(i).snapshot(pool ? &*pool : nullptr, entries));
	for (const CardSnapshot &card : cards) {
		py::list trace;

		for (const SegmentInfo &segment : card.segments)
			segments.append(segment_dict(segment, frames));
		for (const TraceEntry &entry : card.entries)
			trace.append(entry_dict(entry, frames));
		traces.append(trace);
	}
	frames.symbolize();
	result["segments"] = segments;
	result["device_traces"] = traces;
	result["allocator_settings"] = py::dict();
	result["external_annotations"] = py::list();
	return result;
}

RecordContext context_of(const std::optional<std::string> &name)
{
	if (!name)
		return RecordContext::NEVER;
	if (*name == "state")
		return RecordContext::STATE;
	if (*name == "alloc")
		return RecordContext::ALLOC;
	TORCH_CHECK_VALUE(*name == "all", "spyre: invalid context '", *name,
			  "' of a memory history: expected 'state', 'alloc', 'all' or None");
	return RecordContext::ALL;
}

void record(const std::optional<std::string> &enabled, const std::optional<std::string> &context,
	    const std::string &stacks, size_t max_entries, bool clear,
	    const std::vector<std::string> &skipped)
{
	HistoryOptions options;

	TORCH_CHECK_VALUE(!enabled || *enabled == "state" || *enabled == "all",
			  "spyre: cannot record a memory history of '", enabled.value_or(""),
			  "': expected 'state', 'all' or None");
	TORCH_CHECK_VALUE(stacks == "python" || stacks == "all", "spyre: invalid stacks '", stacks,
			  "' of a memory history: expected 'python' or 'all'");
	options.enabled = enabled.has_value();
	options.when = context_of(context);
	options.cpp_frames = stacks == "all";
	/* As for CUDA, "state" keeps one entry: the stacks are those of the blocks. */
	options.max_entries = enabled == "all" ? max_entries : 1;
	options.clear = clear;
	options.skipped = skipped;
	record_history(options);
}

/* The error of the observer must not replace that of the allocation. */
void call_observer(const py::object &observer, int64_t device, size_t requested, size_t total,
		   size_t free)
{
	py::gil_scoped_acquire gil;
	py::error_scope error;

	try {
		observer(device, requested, total, free);
	} catch (py::error_already_set &e) {
		/* KeyboardInterrupt and SystemExit go to the caller. */
		if (!e.matches(PyExc_Exception))
			throw;
		e.discard_as_unraisable("spyre: observer of out of memory");
	}
}

void attach(py::object observer)
{
	/* Never released: observers stay attached, and the last copy may die without the GIL. */
	auto *kept = new py::object(std::move(observer));

	attach_out_of_memory_observer([kept](int64_t device, size_t requested, size_t total,
					     size_t free) {
		if (Py_IsInitialized())
			call_observer(*kept, device, requested, total, free);
	});
}

void define(py::module_ &m)
{
	m.def("_record_memory_history", record);
	m.def("_memory_snapshot", snapshot);
	m.def("_attach_out_of_memory_observer", attach);
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre

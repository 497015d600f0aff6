// SPDX-License-Identifier: MIT
/* The ring of the latest collectives. */
#include "flight_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>

namespace torch_spyre {

namespace {

struct Flight {
	FlightEntry entry;
	/* NULL until it is queued, and once it is known to have finished. */
	std::shared_ptr<Ends> ends;
};

struct Ring {
	std::mutex lock;
	std::deque<Flight> flights;
	uint64_t next = 0;
};

/* Not destroyed, because process groups may outlive this file's statics. */
Ring &ring()
{
	static auto *r = new Ring;

	return *r;
}

size_t capacity()
{
	static const size_t entries = [] {
		const char *text = std::getenv("TORCH_FR_BUFFER_SIZE");

		if (!text)
			text = std::getenv("TORCH_NCCL_TRACE_BUFFER_SIZE");
		return text ? std::max(std::atol(text), 0L) : 0;
	}();

	return entries;
}

void describe(const std::vector<at::Tensor> &tensors, std::vector<std::vector<int64_t>> *sizes,
	      std::vector<std::string> *dtypes)
{
	for (const at::Tensor &tensor : tensors) {
		sizes->push_back(tensor.sizes().vec());
		dtypes->push_back(c10::toString(tensor.scalar_type()));
	}
}

/* Caller holds the ring's lock. A stream in error leaves the state as it was. */
void update(Flight &flight)
{
	if (!flight.ends)
		return;
	try {
		if (!std::all_of(flight.ends->begin(), flight.ends->end(),
				 [](const c10::Event &end) { return end.query(); }))
			return;
	} catch (const std::exception &) {
		return;
	}
	flight.entry.state = "completed";
	flight.ends = nullptr;
}

} // namespace

bool records_flights()
{
	return capacity() > 0;
}

uint64_t record_flight(FlightEntry entry, const std::vector<at::Tensor> &inputs,
		       const std::vector<at::Tensor> &outputs)
{
	std::lock_guard<std::mutex> guard(ring().lock);

	describe(inputs, &entry.input_sizes, &entry.input_dtypes);
	describe(outputs, &entry.output_sizes, &entry.output_dtypes);
	entry.created_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
		std::chrono::system_clock::now().time_since_epoch()).count();
	entry.record_id = ring().next++;
	entry.state = "scheduled";
	ring().flights.push_back({ std::move(entry), nullptr });
	if (ring().flights.size() > capacity())
		ring().flights.pop_front();
	return ring().next - 1;
}

void flight_queued(uint64_t record_id, std::shared_ptr<Ends> ends)
{
	std::lock_guard<std::mutex> guard(ring().lock);
	uint64_t first = ring().next - ring().flights.size();

	if (record_id < first)
		return;

	Flight &flight = ring().flights[record_id - first];

	flight.entry.state = "started";
	flight.ends = std::move(ends);
}

std::vector<FlightEntry> flights()
{
	std::lock_guard<std::mutex> guard(ring().lock);
	std::vector<FlightEntry> entries;

	for (Flight &flight : ring().flights) {
		update(flight);
		entries.push_back(flight.entry);
	}
	return entries;
}

} // namespace torch_spyre

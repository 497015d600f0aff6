// SPDX-License-Identifier: MIT
/*
 * A ring of the latest collectives of the process, for the analysis of jobs that hang. It is kept
 * if TORCH_FR_BUFFER_SIZE, or TORCH_NCCL_TRACE_BUFFER_SIZE, is a number of entries above 0. Field
 * names of a dump are those of PyTorch's own recorder.
 */
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

namespace torch_spyre {

/* Ends of an operation on its streams, empty until it is queued. */
using Ends = std::vector<c10::Event>;

struct FlightEntry {
	uint64_t record_id;
	std::string group, description, name;
	uint64_t collective_sequence, p2p_sequence;
	bool is_p2p;
	std::vector<std::vector<int64_t>> input_sizes, output_sizes;
	std::vector<std::string> input_dtypes, output_dtypes;
	int64_t created_ns, timeout_ms;
	std::string state;
};

/* True if entries are kept. */
bool records_flights();
/* Adds an entry, whose number and state are set here. Returns its number. */
uint64_t record_flight(FlightEntry entry, const std::vector<at::Tensor> &inputs,
		       const std::vector<at::Tensor> &outputs);
/* The operation of entry @record_id is queued, and finished when all of @ends are reached. */
void flight_queued(uint64_t record_id, std::shared_ptr<Ends> ends);
/* The latest entries, oldest first, with their present states. */
std::vector<FlightEntry> flights();

} // namespace torch_spyre

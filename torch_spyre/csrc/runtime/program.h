// SPDX-License-Identifier: MIT
/*
 * Programs and calls. A Call has a program, its numbers and its operands; calls that
 * agree in all of these share one kernel of the program cache. The program's build()
 * is called only if the cache lacks the kernel.
 */
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "spyre.h"

namespace torch_spyre {

class Graph;
struct Call;

/* Thrown if the builder does not support a call, so that the CPU has to compute it. */
struct Refused : std::runtime_error {
	using std::runtime_error::runtime_error;
};

/* A kind of operation. Its address is part of a kernel's key. */
struct Program {
	const char *aten;	/* PyTorch's name, for errors */
	const char *op;		/* the builder's name */
	void (*build)(Graph &graph, const Call &call);
	/* Zero padding of the inputs gives zero padding of the output. */
	bool keeps_zero;
};

struct Call {
	static constexpr unsigned kOperands = 10, kAttributes = 12;

	const Program *program;
	unsigned num_operands = 0, num_attributes = 0;
	/* The format of the computation, which the program interprets. */
	spyre_format format = SPYRE_FORMAT_INVALID;
	/* Inputs, then the output. Not initialised. */
	Operand operand[kOperands];
	/* Names are compared by address, so they have to be literals. */
	spyre_sdsc_attribute attribute[kAttributes];

	explicit Call(const Program &what) : program(&what) {}
	void add(const char *name, double value);
	Operand &add_operand();
	unsigned num_inputs() const { return num_operands - 1; }
	const Operand &output() const { return operand[num_operands - 1]; }
};

/* A graph of the builder under construction; errors throw and name the operation. */
class Graph {
public:
	using Tensor = uint32_t;
	using Attributes = std::initializer_list<spyre_sdsc_attribute>;
	static constexpr Tensor kNew = SPYRE_SDSC_NEW;

	/* An operation as it was added. */
	struct Step {
		std::string op;
		std::vector<Tensor> inputs;
		std::vector<std::pair<std::string, double>> attributes;
		Tensor result;
	};

	explicit Graph(const Call &call);
	~Graph();
	Graph(const Graph &) = delete;
	Graph &operator=(const Graph &) = delete;

	Tensor argument(unsigned index) const { return argument_[index]; }
	Tensor output() const { return argument_[call_.num_operands - 1]; }
	Tensor add(const char *op, std::initializer_list<Tensor> inputs,
		   Attributes attributes = {}, Tensor out = kNew);
	Tensor add(const char *op, const Tensor *inputs, unsigned num_inputs,
		   const spyre_sdsc_attribute *attributes, unsigned num_attributes,
		   Tensor out = kNew);
	/* Converts @tensor to @format, or returns it if it has that format. */
	Tensor cast(Tensor tensor, spyre_format format);
	/* Stores @tensor in the output and converts it to the output's format. */
	void store(Tensor tensor);
	spyre_format format(Tensor tensor) const;
	spyre_kernel *load(spyre_context *context);
	/* Each operation from now on is noted in @steps, too. */
	void record(std::vector<Step> *steps) { steps_ = steps; }

private:
	const Call &call_;
	spyre_sdsc_graph *graph_ = nullptr;
	Tensor argument_[Call::kOperands];
	std::vector<Step> *steps_ = nullptr;

	void add_argument(unsigned index);
	void check(spyre_status status) const;
};

/* The most common program: inputs in call.format, one operation, the output's format. */
void build_one(Graph &graph, const Call &call);

/* program_cache.cpp */
struct ProgramCacheStats {
	uint64_t hits, misses, evictions, kernels, bytes, limit_bytes;
};
ProgramCacheStats program_cache_stats();
/* Drops the kernels of @device (-1: all), for example after a reset of its context. */
void program_cache_clear(c10::DeviceIndex device = -1);

/* A reference that keeps a kernel loaded. */
using Kernel = std::shared_ptr<spyre_kernel>;
Kernel program_for(const Call &call, c10::DeviceIndex device);

/* launch.cpp: runs the call on the current stream of @device. */
void launch(const Call &call, c10::DeviceIndex device);
/* The same, but false and one warning for each program if the builder refuses. */
bool launch_or_refuse(const Call &call, c10::DeviceIndex device);

} // namespace torch_spyre

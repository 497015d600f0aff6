// SPDX-License-Identifier: MIT
/*
 * From an operation to its kernel. A Call names a program, the numbers it takes
 * and its operands; calls that agree in all of these share one kernel, which
 * the program cache keeps. Building a kernel is the program's own function,
 * called only when the cache has none.
 */
#pragma once

#include <initializer_list>
#include <stdexcept>

#include "spyre.h"

namespace torch_spyre {

class Graph;
struct Call;

/* The builder does not make it: not an error, something else has to compute it. */
struct Refused : std::runtime_error {
	using std::runtime_error::runtime_error;
};

/* What a kind of operation is made of. Its address is part of a kernel's key. */
struct Program {
	const char *aten;	/* as PyTorch calls it, for errors */
	const char *op;		/* as the builder does */
	void (*build)(Graph &graph, const Call &call);
	/* Padding that is zero before is zero behind it. */
	bool keeps_zero;
};

struct Call {
	static constexpr unsigned kOperands = 10, kAttributes = 12;

	const Program *program;
	unsigned num_operands = 0, num_attributes = 0;
	/* The format that floats are computed in; what that means is the program's. */
	spyre_format format = SPYRE_FORMAT_INVALID;
	/* Inputs, then the output. Not initialised. */
	Operand operand[kOperands];
	/* Names are compared by address: literals. */
	spyre_sdsc_attribute attribute[kAttributes];

	explicit Call(const Program &what) : program(&what) {}
	void add(const char *name, double value);
	Operand &add_operand();
	unsigned num_inputs() const { return num_operands - 1; }
	const Operand &output() const { return operand[num_operands - 1]; }
};

/* A graph of the builder in the making; errors throw and name the operation. */
class Graph {
public:
	using Tensor = uint32_t;
	using Attributes = std::initializer_list<spyre_sdsc_attribute>;
	static constexpr Tensor kNew = SPYRE_SDSC_NEW;

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
	/* @tensor in @format; itself if it has that. */
	Tensor cast(Tensor tensor, spyre_format format);
	/* Into the output, whatever its format. */
	void store(Tensor tensor);
	spyre_format format(Tensor tensor) const;
	spyre_kernel *load(spyre_context *context);

private:
	const Call &call_;
	spyre_sdsc_graph *graph_ = nullptr;
	Tensor argument_[Call::kOperands];

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
/* Forgets the kernels of @device (-1: all), as after a reset of its context. */
void program_cache_clear(c10::DeviceIndex device = -1);

/* A kernel that stays loaded while it is held. */
using Kernel = std::shared_ptr<spyre_kernel>;
Kernel program_for(const Call &call, c10::DeviceIndex device);

/* launch.cpp: runs the call on the current stream of @device. */
void launch(const Call &call, c10::DeviceIndex device);
/* The same, but false and one warning for each program if the builder refuses. */
bool launch_or_refuse(const Call &call, c10::DeviceIndex device);

} // namespace torch_spyre

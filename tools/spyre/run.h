/* SPDX-License-Identifier: MIT */
/* Runs a launch on the card. */
#ifndef SPYRE_TOOL_RUN_H
#define SPYRE_TOOL_RUN_H

#include "tensor.h"

#define RUN_MAX_BINDINGS 16

struct run_options {
	const char *directory;
	int device;
	int stream;
	uint32_t repeat;
	uint32_t num_bindings;
	spyre_binding bindings[RUN_MAX_BINDINGS];
};

struct run_sample {
	/* From the call of spyre_launch() until the stream is idle. */
	uint64_t wall_ns;
	/* The part of it in which the host executed the program. */
	uint64_t host_ns;
	uint64_t cycles;
};

struct run {
	spyre_context *context;
	spyre_stream *stream;
	spyre_kernel *kernel;
	spyre_device_properties device;
	spyre_kernel_info kernel_info;
	/* One per launch. */
	struct run_sample *samples;
	uint32_t launches;
};

/*
 * Loads the bundle, chooses the layouts of the operands and checks them against the
 * kernel's arguments; allocates and copies nothing. Prints errors to stderr and
 * returns an exit_code, as run_bundle() does. The caller closes @run in any case.
 */
int run_open(struct run *run, const struct run_options *options, struct tensor_list *list);
/* Copies the inputs to the card, launches options->repeat times, copies the outputs back. */
int run_bundle(struct run *run, const struct run_options *options, struct tensor_list *list);
void run_close(struct run *run);

#endif /* SPYRE_TOOL_RUN_H */

/* SPDX-License-Identifier: MIT */
/* The part of a launch that happens on the card. */
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
	/* From the call of spyre_launch() to the end of the stream's work. */
	uint64_t wall_ns;
	/* Of which the host executed the program. */
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
 * Loads the bundle, chooses how operands lie on the card and checks them against
 * the kernel's arguments; nothing is allocated or copied. Says on stderr what
 * failed and returns an exit_code, as run_bundle() does. @run is to be closed in
 * any case.
 */
int run_open(struct run *run, const struct run_options *options, struct tensor_list *list);
/* Copies the inputs to the card, launches options->repeat times, copies the outputs back. */
int run_bundle(struct run *run, const struct run_options *options, struct tensor_list *list);
void run_close(struct run *run);

#endif /* SPYRE_TOOL_RUN_H */

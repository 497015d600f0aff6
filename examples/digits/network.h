/* SPDX-License-Identifier: MIT */
/*
 * The network on the card: five SDSC bundles, their tensors, four streams.
 *
 *	hidden = relu(images @ w1 + b1)
 *	logits = hidden @ w2 + b2
 */
#ifndef DIGITS_NETWORK_H
#define DIGITS_NETWORK_H

#include <spyre/spyre.h>

#include "dataset.h"

#define NUM_STREAMS 4
#define NUM_LAYERS 5
/* Batches that each stream has queued before the host waits. */
#define STREAM_DEPTH 2

/* A tensor on the card. */
struct placed {
	uint32_t rank;
	int64_t size[2];
	spyre_layout layout;
	spyre_devptr address;
};

/* A stream with the tensors of the batch that it works on. */
struct lane {
	spyre_stream *stream;
	struct placed images;
	/* Of the layers, the last one being the logits. */
	struct placed results[NUM_LAYERS];
	/* The ends of the batches in flight. */
	spyre_event *ends[STREAM_DEPTH];
	uint32_t queued;
};

struct network {
	spyre_context *context;
	spyre_device_properties device;
	uint32_t batch;
	spyre_kernel *kernels[NUM_LAYERS];
	uint32_t cores;
	/* w1, b1, nothing (relu), w2, b2 */
	struct placed parameters[NUM_LAYERS];
	struct lane lanes[NUM_STREAMS];
	/* Host bytes of all copies. */
	uint64_t bytes_to_card;
	uint64_t bytes_from_card;
};

/* Totals of all streams. */
struct network_totals {
	uint64_t launches;
	uint64_t copies;
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
};

/*
 * Opens the card, writes the bundles to @directory, loads them and copies the
 * weights. All functions print what failed to stderr and return -1;
 * network_close() is due in any case.
 */
int network_open(struct network *network, int device, const char *directory,
		 const struct weights *weights, uint32_t batch);

/* Pinned host memory for @rows rows of @columns half floats, zeroed. */
int network_host_memory(struct network *network, uint32_t rows, uint32_t columns,
			uint16_t **memory);

/*
 * Logits of @batches whole batches. Copies and launches are queued round robin
 * on the streams, so that one batch comes in while another computes; @done is
 * called as batches end.
 */
int network_run(struct network *network, const uint16_t *images, uint16_t *logits, uint32_t batches,
		void (*done)(void *data), void *data);

int network_get_totals(struct network *network, struct network_totals *totals);
void network_close(struct network *network);

#endif /* DIGITS_NETWORK_H */

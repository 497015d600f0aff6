// SPDX-License-Identifier: MIT
/* The network on the card. */
#include <stdio.h>
#include <string.h>

#include "network.h"

/* The operations in order, and whether they take a parameter. */
static const struct {
	const char *op;
	const char *name;
	bool parameter;
} layers[NUM_LAYERS] = {
	{"matmul", "0_matmul", true}, {"add", "1_bias", true}, {"relu", "2_relu", false},
	{"matmul", "3_matmul", true}, {"add", "4_bias", true},
};

static int check(spyre_status status, const char *what, const char *which)
{
	if (status == SPYRE_SUCCESS)
		return 0;
	fprintf(stderr, "digits: %s %s: %s: %s\n", what, which, spyre_status_name(status),
		spyre_last_error());
	return -1;
}

static uint64_t host_bytes(const struct placed *t)
{
	return 2 * (uint64_t)t->size[0] * (t->rank > 1 ? t->size[1] : 1);
}

/* An fp16 tensor with its layout, and memory for it. */
static int place(struct network *network, struct placed *t, const char *name, uint32_t rank,
		 int64_t rows, int64_t columns)
{
	spyre_status status;

	t->rank = rank;
	t->size[0] = rank > 1 ? rows : columns;
	t->size[1] = columns;
	status = spyre_layout_init(&t->layout, rank, t->size, SPYRE_FORMAT_IEEE_FP16);
	if (!status)
		status = spyre_mem_alloc(
			network->context,
			spyre_layout_alloc_bytes(&t->layout, rank, t->size, SPYRE_FORMAT_IEEE_FP16),
			&t->address);
	return check(status, "placing", name);
}

static spyre_status host_tensor(spyre_host_tensor *host, const struct placed *t, const void *data)
{
	return spyre_host_tensor_dense(host, (void *)(uintptr_t)data, SPYRE_FORMAT_IEEE_FP16,
				       t->rank, t->size);
}

static int place_parameter(struct network *network, int layer, uint32_t rank, int64_t rows,
			   int64_t columns, const uint16_t *values)
{
	struct placed *t = &network->parameters[layer];
	spyre_host_tensor host;
	spyre_status status;

	if (place(network, t, layers[layer].name, rank, rows, columns))
		return -1;
	status = host_tensor(&host, t, values);
	if (!status)
		status = spyre_copy_h2d(network->context, t->address, &t->layout, &host);
	network->bytes_to_card += host_bytes(t);
	return check(status, "copying the weights of", layers[layer].name);
}

static int place_lane(struct network *network, struct lane *lane, int index, int64_t hidden)
{
	spyre_status status =
		spyre_stream_get(network->context, SPYRE_STREAM_LOW_FIRST + index, &lane->stream);

	for (int i = 0; i < STREAM_DEPTH && !status; i++)
		status =
			spyre_event_create(network->context, SPYRE_EVENT_NO_TIMING, &lane->ends[i]);
	if (check(status, "making", "a stream and its events") ||
	    place(network, &lane->images, "images", 2, network->batch, PIXELS))
		return -1;
	for (int i = 0; i < NUM_LAYERS; i++)
		if (place(network, &lane->results[i], layers[i].name, 2, network->batch,
			  i < 3 ? hidden : CLASSES))
			return -1;
	return 0;
}

static void operand_of(spyre_sdsc_operand *operand, const struct placed *t)
{
	memset(operand, 0, sizeof(*operand));
	operand->rank = t->rank;
	memcpy(operand->size, t->size, sizeof(t->size));
	operand->layout = t->layout;
}

/* Writes the layer's bundle and loads it. The lanes are all alike. */
static int build_layer(struct network *network, int layer, const char *directory)
{
	const struct lane *lane = &network->lanes[0];
	spyre_kernel_info info = {.struct_size = sizeof(info)};
	spyre_sdsc_operand operands[3];
	uint32_t count = 0;
	spyre_status status;
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/%s", directory, layers[layer].name) >=
	    (int)sizeof(path)) {
		fprintf(stderr, "digits: %.64s…: the path is too long\n", directory);
		return -1;
	}
	operand_of(&operands[count++], layer ? &lane->results[layer - 1] : &lane->images);
	if (layers[layer].parameter)
		operand_of(&operands[count++], &network->parameters[layer]);
	operand_of(&operands[count++], &lane->results[layer]);
	status = spyre_sdsc_build(layers[layer].op, operands, count, 0, path);
	if (!status)
		status = spyre_kernel_load(network->context, path, &network->kernels[layer]);
	if (!status)
		status = spyre_kernel_get_info(network->kernels[layer], &info);
	if (info.num_cores > network->cores)
		network->cores = info.num_cores;
	return check(status, "building", path);
}

int network_open(struct network *network, int device, const char *directory,
		 const struct weights *weights, uint32_t batch)
{
	int64_t hidden = weights->hidden;
	spyre_status status;

	memset(network, 0, sizeof(*network));
	network->batch = batch;
	network->device.struct_size = sizeof(network->device);
	status = spyre_context_create(device, 0, &network->context);
	if (!status)
		status = spyre_context_get_properties(network->context, &network->device);
	if (check(status, "opening", "the card"))
		return -1;
	if (place_parameter(network, 0, 2, PIXELS, hidden, weights->w1) ||
	    place_parameter(network, 1, 1, 1, hidden, weights->b1) ||
	    place_parameter(network, 3, 2, hidden, CLASSES, weights->w2) ||
	    place_parameter(network, 4, 1, 1, CLASSES, weights->b2))
		return -1;
	for (int i = 0; i < NUM_STREAMS; i++)
		if (place_lane(network, &network->lanes[i], i, hidden))
			return -1;
	for (int i = 0; i < NUM_LAYERS; i++)
		if (build_layer(network, i, directory))
			return -1;
	return 0;
}

int network_host_memory(struct network *network, uint32_t rows, uint32_t columns, uint16_t **memory)
{
	size_t bytes = (size_t)rows * columns * sizeof(**memory);
	void *address;

	if (check(spyre_host_alloc(network->context, bytes, &address), "allocating",
		  "pinned host memory"))
		return -1;
	memset(address, 0, bytes);
	*memory = address;
	return 0;
}

static spyre_status launch_layer(struct network *network, struct lane *lane, int layer)
{
	const struct placed *input = layer ? &lane->results[layer - 1] : &lane->images;
	const struct placed *parameter = &network->parameters[layer];
	const struct placed *output = &lane->results[layer];
	spyre_arg args[3];
	uint32_t count = 0;

	args[count++] = (spyre_arg){input->address, &input->layout};
	if (layers[layer].parameter)
		args[count++] = (spyre_arg){parameter->address, &parameter->layout};
	args[count++] = (spyre_arg){output->address, &output->layout};
	return spyre_launch(lane->stream, network->kernels[layer], args, count);
}

/* In, through all layers, out, and an event at the end; nothing waits. */
static int queue_batch(struct network *network, struct lane *lane, const uint16_t *images,
		       uint16_t *logits)
{
	const struct placed *result = &lane->results[NUM_LAYERS - 1];
	spyre_host_tensor from, to;
	spyre_status status;

	status = host_tensor(&from, &lane->images, images);
	if (!status)
		status = host_tensor(&to, result, logits);
	if (!status)
		status = spyre_copy_h2d_async(lane->stream, lane->images.address,
					      &lane->images.layout, &from);
	for (int i = 0; i < NUM_LAYERS && !status; i++)
		status = launch_layer(network, lane, i);
	if (!status)
		status = spyre_copy_d2h_async(lane->stream, &to, result->address, &result->layout);
	if (!status)
		status = spyre_event_record(lane->ends[lane->queued % STREAM_DEPTH], lane->stream);
	lane->queued++;
	network->bytes_to_card += host_bytes(&lane->images);
	network->bytes_from_card += host_bytes(result);
	return check(status, "queueing", "a batch");
}

int network_run(struct network *network, const uint16_t *images, uint16_t *logits, uint32_t batches,
		void (*done)(void *data), void *data)
{
	uint32_t in_flight = NUM_STREAMS * STREAM_DEPTH;
	spyre_status status = SPYRE_SUCCESS;

	/* Starting each run at event 0 of each stream makes batch b's known. */
	for (int i = 0; i < NUM_STREAMS; i++)
		network->lanes[i].queued = 0;
	for (uint32_t b = 0; b < batches + in_flight && !status; b++) {
		struct lane *lane = &network->lanes[b % NUM_STREAMS];

		if (b >= in_flight && b - in_flight < batches) {
			uint32_t end = (b - in_flight) / NUM_STREAMS % STREAM_DEPTH;

			status = spyre_event_synchronize(lane->ends[end]);
			if (!status)
				done(data);
		}
		if (b < batches && !status &&
		    queue_batch(network, lane, images + (size_t)b * network->batch * PIXELS,
				logits + (size_t)b * network->batch * CLASSES))
			return -1;
	}
	/* An event is reached when its work ended, well or not: the streams know. */
	for (int i = 0; i < NUM_STREAMS && !status; i++)
		status = spyre_stream_synchronize(network->lanes[i].stream);
	return check(status, "running", "the batches");
}

int network_get_totals(struct network *network, struct network_totals *totals)
{
	memset(totals, 0, sizeof(*totals));
	for (int i = 0; i < NUM_STREAMS; i++) {
		spyre_stream_stats stats = {.struct_size = sizeof(stats)};

		if (check(spyre_stream_get_stats(network->lanes[i].stream, &stats), "reading",
			  "the totals of a stream"))
			return -1;
		totals->launches += stats.launches;
		totals->copies += stats.copies;
		totals->cycles += stats.cycles;
		totals->bytes_read += stats.bytes_read;
		totals->bytes_written += stats.bytes_written;
		totals->macs += stats.macs;
	}
	return 0;
}

void network_close(struct network *network)
{
	for (int i = 0; i < NUM_LAYERS; i++)
		spyre_kernel_unload(network->kernels[i]);
	for (int i = 0; i < NUM_STREAMS; i++)
		for (int j = 0; j < STREAM_DEPTH; j++)
			spyre_event_destroy(network->lanes[i].ends[j]);
	/* Waits for what is still queued; frees device and pinned memory. */
	spyre_context_destroy(network->context);
	memset(network, 0, sizeof(*network));
}

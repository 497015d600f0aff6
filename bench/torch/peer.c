// SPDX-License-Identifier: MIT
/*
 * The peer of bench/torch/overhead.py: what torch.add, mm and copy_ do, as plain
 * calls of libspyre in the same process. Loaded by ctypes; each run is one call
 * of Python's for many of libspyre's.
 */
#include <spyre/spyre.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIRST, SECOND, RESULT, ARGUMENTS };

struct peer {
	char op[8];
	spyre_context *context;
	spyre_stream *stream;
	spyre_kernel *kernel;
	spyre_sdsc_operand operand[ARGUMENTS];
	spyre_arg argument[ARGUMENTS];
	spyre_host_tensor host;
	void *pageable;
};

struct peer *peer_open(const char *op, int64_t rows, int64_t inner, int64_t columns, void *data);
double peer_run(struct peer *peer, int count);
void peer_close(struct peer *peer);

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static bool failed(spyre_status status, const char *what)
{
	if (status == SPYRE_SUCCESS)
		return false;
	fprintf(stderr, "bench/torch: %s: %s\n", what, spyre_last_error());
	return true;
}

static bool make_operand(struct peer *peer, int i, int64_t rows, int64_t columns)
{
	spyre_sdsc_operand *operand = &peer->operand[i];
	spyre_arg *argument = &peer->argument[i];

	operand->rank = 2;
	operand->size[0] = rows;
	operand->size[1] = columns;
	argument->layout = &operand->layout;
	return !failed(spyre_layout_init(&operand->layout, 2, operand->size,
					 SPYRE_FORMAT_IEEE_FP16), "layout") &&
	       !failed(spyre_mem_alloc(peer->context, spyre_layout_bytes(&operand->layout),
				       &argument->address), "memory");
}

static bool make_kernel(struct peer *peer)
{
	const bool product = !strcmp(peer->op, "mm");
	uint32_t tensor[ARGUMENTS];
	spyre_sdsc_graph *graph;
	bool ok;

	if (failed(spyre_sdsc_graph_create(&graph), "graph"))
		return false;
	ok = true;
	for (int i = 0; ok && i < ARGUMENTS; i++)
		ok = !failed(spyre_sdsc_graph_add_argument(graph, &peer->operand[i], &tensor[i]),
			     "argument");
	ok = ok && !failed(spyre_sdsc_graph_add_op(graph, product ? "matmul" : "add", NULL, 0,
						   tensor, 2, &tensor[RESULT]), peer->op) &&
	     !failed(spyre_sdsc_graph_load(peer->context, graph, 0, &peer->kernel), "load");
	spyre_sdsc_graph_destroy(graph);
	return ok;
}

/* The caller's, pinned, or as PyTorch's allocator does it. */
static bool make_memory(struct peer *peer, size_t bytes, void **data)
{
	if (*data)
		return true;
	if (!strcmp(peer->op, "async"))
		return !failed(spyre_host_alloc(peer->context, bytes, data), "host memory");
	peer->pageable = aligned_alloc(64, (bytes + 63) / 64 * 64);
	*data = peer->pageable;
	return peer->pageable;
}

/* Ones on both sides: memory that nobody wrote is one page of zeros, and quicker to read. */
static bool fill(struct peer *peer, int64_t elements)
{
	uint16_t *data = peer->host.data;

	for (int64_t i = 0; i < elements; i++)
		data[i] = 0x3c00;
	for (int i = 0; i < ARGUMENTS; i++) {
		const spyre_sdsc_operand *operand = &peer->operand[i];
		spyre_host_tensor host;

		if (failed(spyre_host_tensor_dense(&host, data, SPYRE_FORMAT_IEEE_FP16, 2,
						   operand->size), "tensor") ||
		    failed(spyre_copy_h2d(peer->context, peer->argument[i].address,
					  &operand->layout, &host), "fill"))
			return false;
	}
	return true;
}

/* @op: add, mm, h2d, d2h, d2d, async (h2d of pinned memory) or row (d2h of one), of
 * rows x columns (mm: rows x inner x columns) in fp16. @data: the host's memory, or NULL;
 * how fast 16 MiB of it are depends on where its pages lie, by a factor of two. */
struct peer *peer_open(const char *op, int64_t rows, int64_t inner, int64_t columns, void *data)
{
	const bool product = !strcmp(op, "mm");
	struct peer *peer = calloc(1, sizeof(*peer));
	const int64_t size[2] = { rows, columns };
	int64_t elements = rows * columns;

	if (!peer)
		return NULL;
	snprintf(peer->op, sizeof(peer->op), "%s", op);
	/* Of the largest operand. */
	if (product && elements < rows * inner)
		elements = rows * inner;
	if (product && elements < inner * columns)
		elements = inner * columns;
	if (failed(spyre_context_create(0, 0, &peer->context), "context") ||
	    !make_memory(peer, elements * 2, &data) ||
	    failed(spyre_stream_get(peer->context, SPYRE_STREAM_DEFAULT, &peer->stream), "stream") ||
	    failed(spyre_host_tensor_dense(&peer->host, data, SPYRE_FORMAT_IEEE_FP16, 2, size),
		   "tensor") ||
	    !make_operand(peer, FIRST, rows, product ? inner : columns) ||
	    !make_operand(peer, SECOND, product ? inner : rows, columns) ||
	    !make_operand(peer, RESULT, rows, columns) ||
	    !fill(peer, elements) ||
	    ((product || !strcmp(op, "add")) && !make_kernel(peer))) {
		peer_close(peer);
		return NULL;
	}
	return peer;
}

/* The second row, of which a stick lies with each of the columns' sticks. */
static spyre_status read_row(struct peer *peer)
{
	const spyre_arg *a = &peer->argument[FIRST];
	const int64_t rows = peer->host.size[0], columns = peer->host.size[1];
	spyre_host_tensor host = peer->host;
	spyre_layout layout = *a->layout;
	const int64_t lanes = layout.device_size[layout.device_rank - 1];
	spyre_status status = SPYRE_SUCCESS;

	for (uint32_t i = 0; i + 1 < layout.device_rank; i++)
		layout.device_size[i] = 1;
	host.size[0] = 1;
	for (int64_t at = 0; !status && at < columns; at += lanes) {
		host.size[1] = columns - at < lanes ? columns - at : lanes;
		host.storage_offset = at;
		status = spyre_copy_d2h_async(peer->stream, &host, a->address +
					      (at / lanes * rows + 1) * SPYRE_STICK, &layout);
	}
	return status ? status : spyre_stream_synchronize(peer->stream);
}

static spyre_status once(struct peer *peer)
{
	const spyre_arg *a = &peer->argument[FIRST], *r = &peer->argument[RESULT];

	if (peer->kernel)
		return spyre_launch(peer->stream, peer->kernel, peer->argument, ARGUMENTS);
	if (!strcmp(peer->op, "h2d"))
		return spyre_copy_h2d(peer->context, a->address, a->layout, &peer->host);
	if (!strcmp(peer->op, "d2h"))
		return spyre_copy_d2h(peer->context, &peer->host, a->address, a->layout);
	if (!strcmp(peer->op, "async"))
		return spyre_copy_h2d_async(peer->stream, a->address, a->layout, &peer->host);
	if (!strcmp(peer->op, "row"))
		return read_row(peer);
	return spyre_copy_d2d_async(peer->stream, r->address, r->layout, a->address, a->layout,
				    peer->host.rank, peer->host.size);
}

/* Seconds of @count operations and one synchronization; negative if one failed. */
double peer_run(struct peer *peer, int count)
{
	const double start = now();

	for (int i = 0; i < count; i++)
		if (failed(once(peer), peer->op))
			return -1;
	if (failed(spyre_stream_synchronize(peer->stream), "synchronize"))
		return -1;
	return now() - start;
}

void peer_close(struct peer *peer)
{
	if (!peer)
		return;
	spyre_kernel_unload(peer->kernel);
	spyre_context_destroy(peer->context);
	free(peer->pageable);
	free(peer);
}

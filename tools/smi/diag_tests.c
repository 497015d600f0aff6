/* SPDX-License-Identifier: MIT */
/* The tests of spyre-smi diag. Each compares all bytes with the expected ones. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <spyre/peer.h>
#include <spyre/sdsc.h>

#include "tools/smi/diag.h"

#define MIB (UINT64_C(1) << 20)
#define CHUNK_BYTES (16 * MIB)

static void describe(struct diag_card *card, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void describe(struct diag_card *card, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(card->detail, sizeof(card->detail), format, args);
	va_end(args);
}

/* Returns true and describes the error if a call of the library failed. */
static bool failed(struct diag_card *card, spyre_status status, const char *what)
{
	if (status)
		describe(card, "%s: %s", what, spyre_last_error());
	return status != SPYRE_SUCCESS;
}

static enum diag_result no_memory(struct diag_card *card)
{
	describe(card, "no memory of the host");
	return DIAG_FAIL;
}

static enum diag_result test_properties(struct diag_card *card)
{
	const spyre_device_properties *p = &card->properties;

	describe(card, "%u cores, %" PRIu64 " MiB of memory, %u KiB of scratchpad, %u MHz",
		 p->num_cores, p->memory_bytes / MIB, p->lx_bytes / 1024, p->clock_khz / 1000);
	if (!p->num_cores || !p->memory_bytes || !p->lx_bytes || !p->clock_khz)
		return DIAG_FAIL;
	return DIAG_PASS;
}

/* Fills words with their index, which @seed changes. */
static void fill(uint64_t *words, size_t count, uint64_t first, uint64_t seed)
{
	for (size_t i = 0; i < count; i++)
		words[i] = ((first + i) * UINT64_C(0x9e3779b97f4a7c15)) ^ seed;
}

/* Compares bytes that came from the card with those that were sent. */
static bool equal(struct diag_card *card, const void *sent, const void *got, uint64_t bytes,
		  uint64_t address)
{
	const unsigned char *a = sent, *b = got;
	uint64_t i = 0;

	if (!memcmp(sent, got, bytes))
		return true;
	while (a[i] == b[i])
		i++;
	describe(card, "byte %" PRIu64 " at 0x%" PRIx64 " is 0x%02x, not 0x%02x", i, address + i,
		 b[i], a[i]);
	return false;
}

/* Sizes around those of a stick, a page and a bounce buffer. */
static enum diag_result test_dma(struct diag_card *card)
{
	static const uint32_t sizes[] = { 1, 127, 128, 129, 4095, 4096, 65537, 1 << 20, 3000001 };
	const size_t words = sizes[8] / 8 + 1;
	uint64_t *sent = malloc(2 * words * 8), *got = sent + words, moved = 0;
	enum diag_result result = DIAG_FAIL;
	spyre_devptr address;

	if (!sent)
		return no_memory(card);
	if (failed(card, spyre_mem_alloc(card->context, words * 8, &address), "allocating")) {
		free(sent);
		return DIAG_FAIL;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill(sent, words, 0, sizes[i]);
		memset(got, 0, words * 8);
		if (failed(card, spyre_memcpy_h2d(card->context, address, sent, sizes[i]),
			   "copying to the card") ||
		    failed(card, spyre_memcpy_d2h(card->context, got, address, sizes[i]),
			   "copying from the card") ||
		    !equal(card, sent, got, sizes[i], address))
			goto out;
		moved += 2 * sizes[i];
	}
	describe(card, "%" PRIu64 " bytes in %zu sizes, both ways", moved,
		 sizeof(sizes) / sizeof(sizes[0]));
	result = DIAG_PASS;
out:
	spyre_mem_free(card->context, address);
	free(sent);
	return result;
}

/* Writes a chunk, or (@check) reads and compares it. */
static bool march_step(struct diag_card *card, spyre_devptr address, uint64_t *words,
		       uint64_t *got, uint64_t number, uint64_t seed, bool check)
{
	fill(words, CHUNK_BYTES / 8, number * (CHUNK_BYTES / 8), seed);
	if (!check)
		return !failed(card, spyre_memcpy_h2d(card->context, address, words, CHUNK_BYTES),
			       "writing memory");
	return !failed(card, spyre_memcpy_d2h(card->context, got, address, CHUNK_BYTES),
		       "reading memory") &&
	       equal(card, words, got, CHUNK_BYTES, address);
}

/* Writes all chunks and then reads all, with each word's number and then its complement. */
static bool march(struct diag_card *card, const spyre_devptr *chunks, uint64_t count)
{
	uint64_t *words = malloc(2 * CHUNK_BYTES);
	bool good = words != NULL;

	if (!words)
		no_memory(card);
	for (int round = 0; good && round < 4; round++)
		for (uint64_t i = 0; good && i < count; i++)
			good = march_step(card, chunks[i], words, words + CHUNK_BYTES / 8, i,
					  round < 2 ? 0 : UINT64_MAX, round & 1);
	free(words);
	return good;
}

/* The memory of a virtual card is the host's, so a test must not take all of it. */
static enum diag_result test_memory(struct diag_card *card)
{
	static const uint64_t most[] = { 32 * MIB, 256 * MIB, 1024 * MIB };
	spyre_memory_info info = { .struct_size = sizeof(info) };
	enum diag_result result = DIAG_FAIL;
	uint64_t count, got = 0;
	spyre_devptr *chunks;

	if (failed(card, spyre_mem_info(card->context, &info), "asking for free memory"))
		return DIAG_FAIL;
	count = info.free / 2 < most[card->level - 1] ? info.free / 2 : most[card->level - 1];
	count /= CHUNK_BYTES;
	if (!count) {
		describe(card, "%" PRIu64 " bytes are free, less than two chunks of %" PRIu64,
			 info.free, CHUNK_BYTES);
		return DIAG_SKIP;
	}
	chunks = calloc(count, sizeof(*chunks));
	if (!chunks)
		return no_memory(card);
	while (got < count && !failed(card, spyre_mem_alloc(card->context, CHUNK_BYTES,
							    &chunks[got]), "allocating"))
		got++;
	if (got == count && march(card, chunks, count)) {
		describe(card, "%" PRIu64 " MiB written and read twice", count * CHUNK_BYTES / MIB);
		result = DIAG_PASS;
	}
	while (got)
		spyre_mem_free(card->context, chunks[--got]);
	free(chunks);
	return result;
}

/* Operands of an operation: two inputs and the output, as fp32 on the host. */
struct operation {
	const char *name;
	int64_t size[3][2];
	spyre_format format;		/* the card's number format follows from this one */
	float (*input)(int operand, int64_t row, int64_t column);
	/* Exact in the card's format. */
	float (*output)(const struct operation *o, const float *a, const float *b, int64_t row,
			int64_t column);
};

static float small(int operand, int64_t row, int64_t column)
{
	return (float)((row * 7 + column * 3 + operand) % 16);
}

static float bit(int operand, int64_t row, int64_t column)
{
	return (float)((row * (operand + 3) + column * 5) % 7 < 3);
}

static float sum(const struct operation *o, const float *a, const float *b, int64_t row,
		 int64_t column)
{
	int64_t i = row * o->size[0][1] + column;

	return a[i] + b[i];
}

static float product(const struct operation *o, const float *a, const float *b, int64_t row,
		     int64_t column)
{
	int64_t i = row * o->size[0][1] + column;

	return a[i] * b[i];
}

static float dot(const struct operation *o, const float *a, const float *b, int64_t row,
		 int64_t column)
{
	float total = 0;

	for (int64_t k = 0; k < o->size[0][1]; k++)
		total += a[row * o->size[0][1] + k] * b[k * o->size[1][1] + column];
	return total;
}

/* Enough rows and columns that each of 32 cores has a part. */
static const struct operation operations[] = {
	{ "add", { { 256, 512 }, { 256, 512 }, { 256, 512 } }, SPYRE_FORMAT_IEEE_FP16, small,
	  sum },
	{ "mul", { { 256, 512 }, { 256, 512 }, { 256, 512 } }, SPYRE_FORMAT_IEEE_FP32, small,
	  product },
	{ "matmul", { { 256, 256 }, { 256, 512 }, { 256, 512 } }, SPYRE_FORMAT_IEEE_FP16, bit,
	  dot },
};

struct tensors {
	float *host[3];
	spyre_devptr device[3];
	spyre_sdsc_operand operand[3];
	spyre_host_tensor described[3];
	size_t bytes[3];
	uint32_t count;
};

static void tensors_free(struct diag_card *card, struct tensors *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		spyre_mem_free(card->context, t->device[i]);
	for (int i = 0; i < 3; i++)
		free(t->host[i]);
}

/* Makes operand @i; an input is copied to the card. */
static bool tensor_make(struct diag_card *card, const struct operation *o, struct tensors *t,
			int i)
{
	const int64_t *size = o->size[i];
	uint64_t bytes;

	t->bytes[i] = (size_t)(size[0] * size[1]) * sizeof(float);
	t->host[i] = malloc(t->bytes[i]);
	if (!t->host[i]) {
		no_memory(card);
		return false;
	}
	t->operand[i].rank = 2;
	memcpy(t->operand[i].size, size, 2 * sizeof(*size));
	for (int64_t row = 0; row < size[0]; row++)
		for (int64_t column = 0; column < size[1]; column++)
			t->host[i][row * size[1] + column] = o->input(i, row, column);
	if (failed(card, spyre_layout_init(&t->operand[i].layout, 2, size, o->format),
		   "a layout") ||
	    failed(card, spyre_host_tensor_dense(&t->described[i], t->host[i],
						 SPYRE_FORMAT_IEEE_FP32, 2, size), "a tensor"))
		return false;
	bytes = spyre_layout_alloc_bytes(&t->operand[i].layout, 2, size, o->format);
	if (failed(card, spyre_mem_alloc(card->context, bytes, &t->device[i]), "allocating"))
		return false;
	t->count++;
	return i == 2 || !failed(card, spyre_copy_h2d(card->context, t->device[i],
						      &t->operand[i].layout, &t->described[i]),
				 "copying an input");
}

/* Compiles the operation for all cores of the card. */
static spyre_kernel *compile(struct diag_card *card, const struct operation *o, struct tensors *t)
{
	spyre_sdsc_graph *graph = NULL;
	spyre_kernel *kernel = NULL;
	uint32_t number[3] = { 0 };
	spyre_status status = spyre_sdsc_graph_create(&graph);

	for (int i = 0; i < 3 && !status; i++)
		status = spyre_sdsc_graph_add_argument(graph, &t->operand[i], &number[i]);
	if (!status)
		status = spyre_sdsc_graph_add_op(graph, o->name, NULL, 0, number, 2, &number[2]);
	if (!status)
		status = spyre_sdsc_graph_load(card->context, graph, card->properties.num_cores,
					       &kernel);
	failed(card, status, o->name);
	spyre_sdsc_graph_destroy(graph);
	return status ? NULL : kernel;
}

/* Launches the kernel once and compares its result with the host's. */
static bool launch(struct diag_card *card, const struct operation *o, struct tensors *t,
		   spyre_kernel *kernel)
{
	const int64_t columns = o->size[2][1];
	spyre_arg args[3];

	for (int i = 0; i < 3; i++)
		args[i] = (spyre_arg){ t->device[i], &t->operand[i].layout };
	memset(t->host[2], 0xff, t->bytes[2]);
	if (failed(card, spyre_launch(card->stream, kernel, args, 3), o->name) ||
	    failed(card, spyre_stream_synchronize(card->stream), o->name) ||
	    failed(card, spyre_copy_d2h(card->context, &t->described[2], t->device[2],
					&t->operand[2].layout), "copying a result"))
		return false;
	for (int64_t i = 0; i < o->size[2][0] * columns; i++) {
		float wanted = o->output(o, t->host[0], t->host[1], i / columns, i % columns);

		if (t->host[2][i] == wanted)
			continue;
		describe(card, "%s: element [%" PRId64 ", %" PRId64 "] is %g, not %g", o->name,
			 i / columns, i % columns, (double)t->host[2][i], (double)wanted);
		return false;
	}
	return true;
}

static bool operate(struct diag_card *card, const struct operation *o, int times)
{
	struct tensors t = { 0 };
	spyre_kernel *kernel = NULL;
	bool good = true;

	for (int i = 0; i < 3 && good; i++)
		good = tensor_make(card, o, &t, i);
	if (good)
		kernel = compile(card, o, &t);
	for (int i = 0; i < times && good; i++)
		good = kernel && launch(card, o, &t, kernel);
	if (kernel)
		spyre_kernel_unload(kernel);
	tensors_free(card, &t);
	return good;
}

static enum diag_result run_operations(struct diag_card *card, int times)
{
	const size_t count = sizeof(operations) / sizeof(operations[0]);

	for (size_t i = 0; i < count; i++)
		if (!operate(card, &operations[i], times))
			return DIAG_FAIL;
	describe(card, "%zu kernels on %u cores, launches of each: %d, all exact", count,
		 card->properties.num_cores, times);
	return DIAG_PASS;
}

static enum diag_result test_arithmetic(struct diag_card *card)
{
	return run_operations(card, 1);
}

static enum diag_result test_repetition(struct diag_card *card)
{
	return run_operations(card, 200);
}

/* Copies a chunk from @card to @other and back. */
static bool visit(struct diag_card *card, spyre_context *other)
{
	uint64_t *sent = malloc(2 * MIB), *got = sent + MIB / 8;
	spyre_devptr here = 0, there = 0;
	bool good = sent != NULL;

	if (!sent) {
		no_memory(card);
		return false;
	}
	fill(sent, MIB / 8, 0, MIB);
	good = !failed(card, spyre_mem_alloc(card->context, MIB, &here), "allocating") &&
	       !failed(card, spyre_mem_alloc(other, MIB, &there), "allocating on the peer") &&
	       !failed(card, spyre_memcpy_h2d(card->context, here, sent, MIB), "writing memory") &&
	       !failed(card, spyre_memcpy_peer_async(card->stream, other, there, card->context,
						     here, MIB), "copying to the peer") &&
	       !failed(card, spyre_stream_synchronize(card->stream), "copying to the peer") &&
	       !failed(card, spyre_memcpy_d2h(other, got, there, MIB), "reading the peer") &&
	       equal(card, sent, got, MIB, there);
	if (there)
		spyre_mem_free(other, there);
	if (here)
		spyre_mem_free(card->context, here);
	free(sent);
	return good;
}

static enum diag_result test_peers(struct diag_card *card)
{
	int peers = 0;

	for (int i = 0; i < card->num_cards; i++) {
		spyre_peer_path path = SPYRE_PEER_NONE;
		spyre_context *other = NULL;
		bool good;

		if (i == card->index || spyre_device_get_peer_path(card->index, i, &path) ||
		    path == SPYRE_PEER_NONE)
			continue;
		if (failed(card, spyre_context_create(i, 0, &other), "opening a peer"))
			return DIAG_FAIL;
		good = visit(card, other);
		spyre_context_destroy(other);
		if (!good)
			return DIAG_FAIL;
		peers++;
	}
	describe(card, peers ? "1 MiB to each of %d" : "no other card within reach", peers);
	return peers ? DIAG_PASS : DIAG_SKIP;
}

const struct diag_test diag_tests[] = {
	{ "properties", 1, test_properties },
	{ "dma", 1, test_dma },
	{ "memory", 1, test_memory },
	{ "arithmetic", 1, test_arithmetic },
	{ "peer copies", 2, test_peers },
	{ "repetition", 3, test_repetition },
	{ NULL, 0, NULL },
};

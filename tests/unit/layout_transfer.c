// SPDX-License-Identifier: MIT
/*
 * Transfers: every published round-trip vector through a byte-exact reading of
 * the DMA descriptor, and mapped layouts on views of all kinds.
 */
#include <spyre/spyre.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/layout/transfer.h"
#include "suite.h"

#define DL16 SPYRE_FORMAT_SEN169_FP16
#define END -9

/*
 * Interprets a descriptor like the DMA engine, for two-byte elements of one format.
 * Fails the test on any access outside the two spans.
 */
static void run_dma(const struct spyre_transfer *x, uint8_t *device)
{
	const struct spyre_dma_desc *d = &x->desc;
	uint64_t c[SPYRE_DMA_MAX_DIMS] = { 0 };

	for (uint64_t at = 0; at < x->device_bytes; at += 2) {
		uint64_t host = d->host_offset;
		bool real = true;

		for (uint32_t i = 0; i < d->num_dims; i++)
			host += c[i] * d->dim[i].host_stride;
		for (uint32_t b = 0; b < d->num_bounds; b++) {
			uint64_t sum = 0;

			for (uint32_t i = 0; i < d->num_dims; i++)
				sum += c[i] * d->bound[b].coef[i];
			real &= sum < d->bound[b].limit;
		}
		/* ck_assert() itself is too slow for each element. */
		if (real && host + 2 > x->host_bytes)
			ck_abort_msg("access at %llu beyond the host span",
				     (unsigned long long)host);
		if (d->direction == SPYRE_DMA_H2D && real)
			memcpy(device + at, x->host + host, 2);
		else if (d->direction == SPYRE_DMA_H2D)
			memset(device + at, 0, 2);
		else if (real)
			memcpy(x->host + host, device + at, 2);
		for (uint32_t i = d->num_dims; i-- > 0;) {
			if (++c[i] < d->dim[i].count)
				break;
			c[i] = 0;
		}
	}
}

static uint64_t numel(const spyre_host_tensor *t)
{
	uint64_t n = 1;

	for (uint32_t d = 0; d < t->rank; d++)
		n *= t->size[d];
	return n;
}

/* Element offset of the n-th element of a tensor, row-major in its sizes. */
static uint64_t element(const spyre_host_tensor *t, uint64_t n)
{
	uint64_t at = t->storage_offset;

	for (uint32_t d = t->rank; d-- > 0;) {
		at += n % t->size[d] * t->stride[d];
		n /= t->size[d];
	}
	return at;
}

/*
 * Copies H2D, then D2H into a poisoned copy of the storage: the view must come back
 * and nothing else may change. Returns the device image.
 */
static uint8_t *round_trip(const spyre_layout *l, spyre_host_tensor *t, size_t storage)
{
	uint16_t *from = malloc(storage * 2), *to = malloc(storage * 2);
	struct spyre_transfer x;
	bool *mine = calloc(storage, 1);
	uint64_t device_bytes;
	uint8_t *device;

	for (size_t i = 0; i < storage; i++) {
		from[i] = (uint16_t)(i * 40503u + 7) | 1;
		to[i] = 0xdead;
	}
	t->data = from;
	ck_assert_msg(spyre_transfer_init(&x, SPYRE_DMA_H2D, l, t) == SPYRE_SUCCESS, "%s",
		      spyre_last_error());
	ck_assert_uint_eq(x.device_bytes, spyre_layout_bytes(l));
	ck_assert_int_eq(spyre_dma_check(&x.desc, &device_bytes, NULL), SPYRE_STOP_NONE);
	ck_assert_uint_eq(device_bytes, x.device_bytes);
	device = malloc(x.device_bytes + 1);
	run_dma(&x, device);
	t->data = to;
	ck_assert_msg(spyre_transfer_init(&x, SPYRE_DMA_D2H, l, t) == SPYRE_SUCCESS, "%s",
		      spyre_last_error());
	ck_assert_int_eq(spyre_dma_check(&x.desc, &device_bytes, NULL), SPYRE_STOP_NONE);
	run_dma(&x, device);
	for (uint64_t n = 0; n < numel(t); n++) {
		uint64_t at = element(t, n);

		if (at >= storage || to[at] != from[at])
			ck_abort_msg("element %llu did not come back", (unsigned long long)n);
		mine[at] = true;
	}
	for (size_t i = 0; i < storage; i++)
		if (!mine[i] && to[i] != 0xdead)
			ck_abort_msg("byte %zu outside the view was written", i * 2);
	free(from);
	free(to);
	free(mine);
	return device;
}

struct vector {
	int64_t size[4];
	int64_t stride[4];
	int64_t device_size[7];
	int64_t stride_map[6];
	int64_t offset;
};

#define ROW1(n) { n, END }, { 1 }
#define ROW2(m, n) { m, n, END }, { n, 1 }

static const struct vector vectors[] = {
	/* plain */
	{ ROW1(60), { 1, 64, END }, { 64, 1 }, 0 },
	{ ROW1(64), { 1, 64, END }, { 64, 1 }, 0 },
	{ ROW1(120), { 2, 64, END }, { 64, 1 }, 0 },
	{ ROW1(128), { 2, 64, END }, { 64, 1 }, 0 },
	{ ROW1(240), { 4, 64, END }, { 64, 1 }, 0 },
	{ ROW1(256), { 4, 64, END }, { 64, 1 }, 0 },
	/* 2-D */
	{ ROW2(40, 60), { 1, 60, 64, END }, { 3840, 1, 60 }, 0 },
	{ ROW2(40, 60), { 1, 40, 64, END }, { 64, 60, 1 }, 0 },
	{ ROW2(40, 64), { 1, 64, 64, END }, { 4096, 1, 64 }, 0 },
	{ ROW2(40, 64), { 1, 40, 64, END }, { 64, 64, 1 }, 0 },
	{ ROW2(40, 120), { 1, 120, 64, END }, { 7680, 1, 120 }, 0 },
	{ ROW2(40, 120), { 2, 40, 64, END }, { 64, 120, 1 }, 0 },
	{ ROW2(40, 128), { 1, 128, 64, END }, { 8192, 1, 128 }, 0 },
	{ ROW2(40, 128), { 2, 40, 64, END }, { 64, 128, 1 }, 0 },
	{ ROW2(40, 240), { 1, 240, 64, END }, { 15360, 1, 240 }, 0 },
	{ ROW2(40, 240), { 4, 40, 64, END }, { 64, 240, 1 }, 0 },
	{ ROW2(40, 256), { 1, 256, 64, END }, { 16384, 1, 256 }, 0 },
	{ ROW2(40, 256), { 4, 40, 64, END }, { 64, 256, 1 }, 0 },
	{ ROW2(512, 512), { 8, 512, 64, END }, { 64, 512, 1 }, 0 },
	/* padding */
	{ ROW2(40, 60), { 1, 512, 64, END }, { 3840, 1, 60 }, 0 },
	{ ROW2(40, 60), { 1, 512, 64, END }, { 64, 60, 1 }, 0 },
	{ ROW2(40, 64), { 1, 512, 64, END }, { 4096, 1, 64 }, 0 },
	{ ROW2(40, 64), { 1, 512, 64, END }, { 64, 64, 1 }, 0 },
	{ ROW2(40, 120), { 1, 512, 64, END }, { 7680, 1, 120 }, 0 },
	{ ROW2(40, 120), { 2, 512, 64, END }, { 64, 120, 1 }, 0 },
	{ ROW2(40, 128), { 1, 512, 64, END }, { 8192, 1, 128 }, 0 },
	{ ROW2(40, 128), { 2, 512, 64, END }, { 64, 128, 1 }, 0 },
	{ ROW2(40, 240), { 1, 512, 64, END }, { 15360, 1, 240 }, 0 },
	{ ROW2(40, 240), { 4, 512, 64, END }, { 64, 240, 1 }, 0 },
	{ ROW2(40, 256), { 1, 512, 64, END }, { 16384, 1, 256 }, 0 },
	{ ROW2(40, 256), { 4, 512, 64, END }, { 64, 256, 1 }, 0 },
	/* expanding */
	{ ROW1(60), { 1, 512, 64, END }, { 64, 0, 1 }, 0 },
	/* folding */
	{ ROW2(40, 60), { 38, 64, END }, { 64, 1 }, 0 },
	/* leading 1 */
	{ ROW1(60), { 1, 1, 64, END }, { 64, 60, 1 }, 0 },
	{ ROW1(60), { 1, 1, 1, 64, END }, { 60, 64, 60, 1 }, 0 },
	{ ROW1(60), { 1, 1, 1, 1, 64, END }, { 60, 60, 64, 60, 1 }, 0 },
	{ ROW1(60), { 1, 1, 1, 1, 1, 64, END }, { 60, 60, 60, 64, 60, 1 }, 0 },
	/* trailing 1: one element per stick */
	{ ROW1(60), { 1, 60, 64, END }, { 64, 1, 1 }, 0 },
	{ ROW1(60), { 1, 1, 60, 64, END }, { 1, 64, 1, 1 }, 0 },
	{ ROW1(60), { 1, 1, 1, 60, 64, END }, { 1, 1, 64, 1, 1 }, 0 },
	{ ROW1(60), { 1, 1, 1, 1, 60, 64, END }, { 1, 1, 1, 64, 1, 1 }, 0 },
	/* viewing */
	{ ROW1(60), { 1, 2, 64, END }, { 64, 30, 1 }, 0 },
	{ ROW1(60), { 2, 1, 2, 64, END }, { 15, 64, 30, 1 }, 0 },
	{ ROW1(60), { 2, 1, 1, 2, 64, END }, { 15, 15, 64, 30, 1 }, 0 },
	{ ROW1(60), { 1, 2, 1, 2, 64, END }, { 30, 15, 64, 30, 1 }, 0 },
	{ ROW1(60), { 2, 2, 1, 1, 64, END }, { 30, 15, 64, 60, 1 }, 0 },
	{ ROW1(60), { 2, 1, 1, 1, 2, 64, END }, { 15, 15, 15, 64, 30, 1 }, 0 },
	{ ROW1(60), { 1, 2, 1, 1, 2, 64, END }, { 30, 15, 15, 64, 30, 1 }, 0 },
	{ ROW1(60), { 1, 1, 2, 1, 2, 64, END }, { 30, 30, 15, 64, 30, 1 }, 0 },
	{ ROW1(60), { 2, 2, 1, 1, 1, 64, END }, { 30, 15, 15, 64, 60, 1 }, 0 },
	{ ROW1(60), { 2, 1, 2, 1, 1, 64, END }, { 30, 30, 15, 64, 60, 1 }, 0 },
	{ ROW1(60), { 1, 2, 2, 1, 1, 64, END }, { 60, 30, 15, 64, 60, 1 }, 0 },
	/* tiling */
	{ ROW1(4800), { 3, 2, 14, 64, END }, { 120, 64, 360, 1 }, 0 },
	{ ROW2(40, 60), { 24, 1, 2, 64, END }, { 60, 64, 1440, 1 }, 0 },
	{ ROW2(40, 60), { 2, 12, 1, 2, 64, END }, { 720, 60, 64, 1200, 1 }, 0 },
	{ ROW2(40, 60), { 2, 6, 2, 1, 2, 64, END }, { 720, 120, 60, 64, 1200, 1 }, 0 },
	{ ROW2(40, 60), { 3, 4, 3, 1, 2, 64, END }, { 600, 180, 60, 64, 1800, 1 }, 0 },
	/* permuted */
	{ { 40, 60, END }, { 1, 40 }, { 1, 40, 64, END }, { 2560, 1, 40 }, 0 },
	{ { 40, 60, END }, { 1, 40 }, { 1, 60, 64, END }, { 64, 40, 1 }, 0 },
	/* slice: the second half of a storage */
	{ ROW1(60), { 1, 64, END }, { 64, 1 }, 60 },
	{ ROW1(64), { 1, 64, END }, { 64, 1 }, 64 },
	{ ROW1(120), { 2, 64, END }, { 64, 1 }, 120 },
	{ ROW1(128), { 2, 64, END }, { 64, 1 }, 128 },
	{ ROW1(240), { 4, 64, END }, { 64, 1 }, 240 },
	{ ROW1(256), { 4, 64, END }, { 64, 1 }, 256 },
	/* rows of a wider storage; rows in two layers, [2, 3, 40] of [2, 5, 50] */
	{ { 40, 60, END }, { 128, 1 }, { 1, 40, 64, END }, { 64, 128, 1 }, 7 },
	{ { 2, 3, 40, END }, { 250, 50, 1 }, { 3, 1, 2, 64, END }, { 50, 64, 250, 1 }, 3 },
	/* an expanded host dimension holds one element */
	{ { 512, 60, END }, { 0, 1 }, { 1, 512, 64, END }, { 64, 0, 1 }, 0 },
};

static uint32_t length(const int64_t *list)
{
	uint32_t n = 0;

	while (list[n] != END)
		n++;
	return n;
}

START_TEST(published)
{
	const struct vector *v = &vectors[_i];
	spyre_host_tensor t = { .format = DL16, .rank = length(v->size),
				.storage_offset = v->offset };
	size_t storage = v->offset + 1;
	spyre_layout l;

	for (uint32_t d = 0; d < t.rank; d++) {
		t.size[d] = v->size[d];
		t.stride[d] = v->stride[d];
		storage += (v->size[d] - 1) * v->stride[d];
	}
	ck_assert_int_eq(spyre_layout_init_explicit(&l, length(v->device_size), v->device_size,
						    v->stride_map, DL16, SPYRE_EA_STANDARD),
			 SPYRE_SUCCESS);
	free(round_trip(&l, &t, storage + 100));
}
END_TEST

/* Computes the source of each device element of mapped layouts, independently of transfer.c. */
static void check_image(const spyre_layout *l, const spyre_host_tensor *t, const uint8_t *device)
{
	uint64_t c[SPYRE_MAX_DEVICE_RANK] = { 0 };
	uint32_t last = l->device_rank - 1;

	for (uint64_t at = 0; at < spyre_layout_bytes(l) / 2; at++) {
		uint64_t index[SPYRE_MAX_RANK] = { 0 }, host = t->storage_offset;
		uint16_t got;
		bool real = true;

		for (uint32_t j = 0; j <= last; j++) {
			if (l->dim_map[j] < 0)
				real &= !c[j];
			else if (j < last && l->dim_map[j] == l->dim_map[last])
				index[l->dim_map[j]] += c[j] * 64;
			else
				index[l->dim_map[j]] += c[j];
		}
		for (uint32_t d = 0; d < t->rank; d++) {
			real &= index[d] < (uint64_t)t->size[d];
			host += index[d] * t->stride[d];
		}
		memcpy(&got, device + at * 2, 2);
		if (got != (real ? (uint16_t)((uint16_t)(host * 40503u + 7) | 1) : 0))
			ck_abort_msg("device byte %llu is wrong", (unsigned long long)at * 2);
		for (uint32_t j = last + 1; j-- > 0;) {
			if (++c[j] < (uint64_t)l->device_size[j])
				break;
			c[j] = 0;
		}
	}
}

struct mapped {
	int64_t size[7];
	int64_t stride[6];	/* of the tensor; the layout is built dense */
	int32_t order[7];
	int64_t offset;
};

static const struct mapped mapped[] = {
	{ { END }, { 0 }, { END }, 0 },
	{ { 1, END }, { 1 }, { END }, 0 },
	{ { 120, END }, { 1 }, { END }, 0 },
	{ { 120, END }, { 3 }, { END }, 5 },
	{ { 100, 150, END }, { 150, 1 }, { END }, 0 },
	{ { 100, 150, END }, { 1, 100 }, { END }, 0 },
	{ { 100, 150, END }, { 400, 2 }, { 1, 0, END }, 9 },
	{ { 5, 100, 150, END }, { 15000, 150, 1 }, { 1, 0, 2, END }, 0 },
	{ { 5, 10, 70, END }, { 1, 350, 5 }, { 2, 1, 0, END }, 0 },
	{ { 20, 30, END }, { 30, 1 }, { 0, 1, -1, END }, 0 },
	{ { 20, END }, { 2 }, { 0, -1, END }, 1 },
	{ { 10, 1, END }, { 1, 1 }, { END }, 0 },
	{ { 7, 90, END }, { 0, 1 }, { END }, 0 },
	{ { 7, 90, END }, { 1, 0 }, { END }, 0 },
	{ { 2, 3, 4, 2, 3, 70, END }, { 5040, 1680, 420, 210, 70, 1 }, { END }, 0 },
	{ { 256, 256, END }, { 256, 1 }, { END }, 65536 },
};

START_TEST(views)
{
	const struct mapped *m = &mapped[_i];
	spyre_host_tensor t = { .format = DL16, .rank = length(m->size),
				.storage_offset = m->offset };
	int64_t dense[7], step = 1;
	size_t storage = m->offset + 1;
	spyre_layout l;
	uint8_t *device;
	uint32_t order = 0;

	while (m->order[order] != END)
		order++;
	for (uint32_t d = t.rank; d-- > 0;) {
		t.size[d] = m->size[d];
		t.stride[d] = m->stride[d];
		storage += (m->size[d] - 1) * m->stride[d];
		dense[d] = step;
		step *= m->size[d];
	}
	if (order)
		ck_assert_int_eq(spyre_layout_init_strided(&l, t.rank, t.size, dense, DL16,
							   m->order, order), SPYRE_SUCCESS);
	else
		ck_assert_int_eq(spyre_layout_init(&l, t.rank, t.size, DL16), SPYRE_SUCCESS);
	device = round_trip(&l, &t, storage + 64);
	check_image(&l, &t, device);
	free(device);
}
END_TEST

/* A tensor is moved with the layout of another view of the same memory. */
START_TEST(other_shape)
{
	static const int64_t flat[] = { 131072 }, rows[] = { 512, 256 }, tail[] = { 512, 256, 1 };
	static const int64_t layers[] = { 2, 256, 256 };
	spyre_host_tensor t;
	spyre_layout l;

	ck_assert_int_eq(spyre_host_tensor_dense(&t, NULL, DL16, 2, rows), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_layout_init(&l, 1, flat, DL16), SPYRE_SUCCESS);
	free(round_trip(&l, &t, 131072));
	ck_assert_int_eq(spyre_layout_init(&l, 3, tail, DL16), SPYRE_SUCCESS);
	free(round_trip(&l, &t, 131072));
	ck_assert_int_eq(spyre_layout_init(&l, 3, layers, DL16), SPYRE_SUCCESS);
	free(round_trip(&l, &t, 131072));
}
END_TEST

/* Aligned shapes need no bounds, so the engine copies whole runs. */
START_TEST(no_bounds)
{
	static const int64_t rows[] = { 512, 256 }, size[] = { 4, 512, 64 }, map[] = { 64, 256, 1 };
	struct spyre_transfer x;
	spyre_host_tensor t;
	spyre_layout l;
	char byte;

	ck_assert_int_eq(spyre_host_tensor_dense(&t, &byte, DL16, 2, rows), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_layout_init(&l, 2, rows, DL16), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_H2D, &l, &t), SPYRE_SUCCESS);
	ck_assert_uint_eq(x.desc.num_bounds, 0);
	ck_assert_uint_eq(x.host_bytes, 512 * 256 * 2);
	ck_assert_uint_eq(x.desc.dim[0].host_stride, 128);
	ck_assert_uint_eq(x.desc.dim[1].host_stride, 512);
	ck_assert_uint_eq(x.desc.dim[2].host_stride, 2);
	ck_assert_int_eq(spyre_layout_init_explicit(&l, 3, size, map, DL16, SPYRE_EA_STANDARD),
			 SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_D2H, &l, &t), SPYRE_SUCCESS);
	ck_assert_uint_eq(x.desc.num_bounds, 0);
}
END_TEST

START_TEST(empty)
{
	static const int64_t none[] = { 3, 0, 5 };
	struct spyre_transfer x;
	spyre_host_tensor t;
	spyre_layout l;

	ck_assert_int_eq(spyre_host_tensor_dense(&t, NULL, DL16, 3, none), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_layout_init(&l, 3, none, DL16), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_H2D, &l, &t), SPYRE_SUCCESS);
	ck_assert_uint_eq(x.device_bytes, 0);
	ck_assert_uint_eq(x.host_bytes, 0);
}
END_TEST

struct refused {
	int64_t size[4];
	int64_t stride[4];
	int64_t device_size[5];
	int64_t stride_map[5];
	int status;
	const char *word;
};

static const struct refused refused[] = {
	/* not enough space: rows, lanes, a hole between digits */
	{ ROW2(40, 60), { 1, 39, 64, END }, { 64, 60, 1 }, SPYRE_ERROR_LAYOUT, "2340 of the 2400" },
	{ ROW2(40, 70), { 1, 40, 64, END }, { 64, 70, 1 }, SPYRE_ERROR_LAYOUT, "2560 of the 2800" },
	{ ROW1(60), { 2, 64, END }, { 80, 2 }, SPYRE_ERROR_LAYOUT, "30 of the 60" },
	{ ROW1(200), { 2, 64, END }, { 100, 1 }, SPYRE_ERROR_LAYOUT, "128 of the 200" },
	{ ROW1(60), { 1, 64, END }, { 64, -1 }, SPYRE_ERROR_LAYOUT, "1 of the 60" },
	/* a stride between the elements of a sparse host tensor */
	{ { 60, END }, { 2 }, { 1, 64, END }, { 64, 3 }, SPYRE_ERROR_LAYOUT, "not a multiple" },
	/* elements that share memory cannot be written */
	{ { 60, 60, END }, { 1, 1 }, { 60, 1, 64, END }, { 1, 64, 1 }, SPYRE_ERROR_LAYOUT, "overlaps" },
	/* numbers beyond 64 bits */
	{ { INT64_MAX, 2, END }, { INT64_MAX, 1 }, { 1, 64, END }, { 64, 1 },
	  SPYRE_ERROR_INVALID_ARGUMENT, "2^63" },
	{ ROW1(64), { 1ll << 32, 64, END }, { 64, 1 }, SPYRE_ERROR_LAYOUT, "2^31" },
	{ ROW1(64), { 1 << 30, 64, END }, { INT64_MAX, 1 }, SPYRE_ERROR_LAYOUT, "2^63" },
	{ { -1, END }, { 1 }, { 1, 64, END }, { 64, 1 }, SPYRE_ERROR_INVALID_ARGUMENT, "negative" },
	{ { 64, END }, { -1 }, { 1, 64, END }, { 64, 1 }, SPYRE_ERROR_INVALID_ARGUMENT, "negative" },
};

START_TEST(errors)
{
	const struct refused *r = &refused[_i];
	spyre_host_tensor t = { .format = DL16, .rank = length(r->size) };
	struct spyre_transfer x;
	spyre_layout l;
	char byte;

	t.data = &byte;
	for (uint32_t d = 0; d < t.rank; d++) {
		t.size[d] = r->size[d];
		t.stride[d] = r->stride[d];
	}
	ck_assert_int_eq(spyre_layout_init_explicit(&l, length(r->device_size), r->device_size,
						    r->stride_map, DL16, SPYRE_EA_STANDARD),
			 SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_D2H, &l, &t), r->status);
	ck_assert_msg(strstr(spyre_last_error(), r->word), "%s", spyre_last_error());
}
END_TEST

START_TEST(bad_arguments)
{
	static const int64_t size[] = { 64 };
	struct spyre_transfer x;
	spyre_host_tensor t;
	spyre_layout l, zero;

	memset(&zero, 0, sizeof(zero));
	ck_assert_int_eq(spyre_host_tensor_dense(&t, NULL, DL16, 1, size), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_layout_init(&l, 1, size, DL16), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_H2D, &l, &t),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	t.data = &x;
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_H2D, &zero, &t), SPYRE_ERROR_LAYOUT);
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_H2D, NULL, &t),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	/* Floats cannot be copied to integer sticks. */
	ck_assert_int_eq(spyre_layout_init(&l, 1, size, SPYRE_FORMAT_IEEE_INT32), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_H2D, &l, &t), SPYRE_ERROR_FORMAT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "IEEE_INT32"));
	ck_assert_int_eq(spyre_layout_init(&l, 1, size, DL16), SPYRE_SUCCESS);
	l.arrangement = SPYRE_EA_DL16_TO_FP32;
	ck_assert_int_eq(spyre_transfer_init(&x, SPYRE_DMA_H2D, &l, &t), SPYRE_ERROR_UNSUPPORTED);
}
END_TEST

#define COUNT(x) (int)(sizeof(x) / sizeof(x[0]))

int main(void)
{
	Suite *s = suite_create("transfer");
	TCase *t = tcase_create("transfer");

	tcase_add_loop_test(t, published, 0, COUNT(vectors));
	tcase_add_loop_test(t, views, 0, COUNT(mapped));
	tcase_add_test(t, other_shape);
	tcase_add_test(t, no_bounds);
	tcase_add_test(t, empty);
	tcase_add_loop_test(t, errors, 0, COUNT(refused));
	tcase_add_test(t, bad_arguments);
	suite_add_tcase(s, t);
	return suite_run(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * Tiled copies of random views through the public interface: permuted, sliced,
 * stepped, expanded, of all formats and dimension orders. The device image is
 * compared with the documented order of the layout, the result with the source, and
 * every other byte must be unchanged.
 */
#include <stdio.h>

#include "runtime_check.h"
#include "tests/order.h"

#define ROUNDS 24		/* tests, each in a separate process */
#define TRIALS 40
#define MAX_ELEMENTS 6000
#define MAX_STORAGE 60000	/* elements */
#define MAX_DEVICE (1u << 20)	/* bytes */
#define GUARD 256
#define HOST_POISON 0x5a
#define DEVICE_POISON 0xa5

static const spyre_format formats[] = {
	SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_IEEE_FP32, SPYRE_FORMAT_BFLOAT16,
	SPYRE_FORMAT_SEN169_FP16, SPYRE_FORMAT_SEN143_FP8, SPYRE_FORMAT_SENINT8,
	SPYRE_FORMAT_SENINT16, SPYRE_FORMAT_IEEE_INT32, SPYRE_FORMAT_IEEE_INT64,
	SPYRE_FORMAT_BOOL, SPYRE_FORMAT_UINT8,
};

/* A view and the storage around it, with guard bytes on both sides. */
struct view {
	spyre_host_tensor tensor;
	uint8_t *block;
	size_t block_bytes;
};

struct trial {
	uint64_t seed;
	spyre_format format;
	uint32_t rank;
	int64_t size[SPYRE_MAX_RANK];
	bool expanded[SPYRE_MAX_RANK];
	/* Host dimension of each device dimension, -1 for none; lanes last. */
	uint32_t device_rank;
	int map[SPYRE_MAX_DEVICE_RANK];
	spyre_layout layout;
};

static uint64_t dice(struct trial *t, uint64_t sides)
{
	return (random_next(&t->seed) >> 20) % sides;
}

static void shuffle(struct trial *t, int32_t *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i + dice(t, n - i);
		int32_t swap = list[i];

		list[i] = list[k];
		list[k] = swap;
	}
}

static int64_t elements(const struct trial *t)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < t->rank; d++)
		n *= t->size[d];
	return n;
}

/* Sizes near the stick's, small ones, ones, and sometimes zero. */
static void draw_shape(struct trial *t)
{
	static const int64_t sizes[] = {
		1, 1, 2, 3, 4, 5, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200,
	};

	do {
		t->rank = dice(t, SPYRE_MAX_RANK);
		for (uint32_t d = 0; d < t->rank; d++)
			t->size[d] = sizes[dice(t, sizeof(sizes) / sizeof(*sizes))];
	} while (elements(t) > MAX_ELEMENTS);
	if (t->rank && !dice(t, 50))
		t->size[dice(t, t->rank)] = 0;
	for (uint32_t d = 0; d < t->rank; d++)
		t->expanded[d] = !dice(t, 8);
}

/* Chooses memory order, step, start and remainder of each dimension at random. */
static void draw_view(struct trial *t, struct view *v)
{
	spyre_host_tensor *tensor = &v->tensor;
	size_t bytes = spyre_format_bytes(t->format);
	int32_t order[SPYRE_MAX_RANK];
	int64_t extent;

	do {
		uint64_t most = 1 + dice(t, 3);

		*tensor = (spyre_host_tensor){ .format = t->format, .rank = t->rank };
		extent = 1;
		for (uint32_t d = 0; d < t->rank; d++)
			order[d] = d;
		shuffle(t, order, t->rank);
		for (uint32_t i = 0; i < t->rank; i++) {
			uint32_t d = order[i];
			int64_t step = 1 + dice(t, most), start = dice(t, most);

			tensor->size[d] = t->size[d];
			if (t->expanded[d])
				continue;
			tensor->stride[d] = extent * step;
			tensor->storage_offset += extent * start;
			if (t->size[d])
				extent *= start + (t->size[d] - 1) * step + 1 + dice(t, most);
		}
	} while (extent > MAX_STORAGE);
	v->block_bytes = extent * bytes + 2 * GUARD;
	v->block = malloc(v->block_bytes);
	ck_assert_ptr_nonnull(v->block);
	memset(v->block, HOST_POISON, v->block_bytes);
	tensor->data = v->block + GUARD;
}

/* Byte offset in the block of the n-th element, row-major in the sizes. */
static size_t place(const struct trial *t, const struct view *v, int64_t n)
{
	int64_t at = v->tensor.storage_offset;

	for (uint32_t d = t->rank; d-- > 0;) {
		at += n % t->size[d] * v->tensor.stride[d];
		n /= t->size[d];
	}
	return GUARD + at * spyre_format_bytes(t->format);
}

/* Values that the device format holds exactly. */
static void draw_value(struct trial *t, uint8_t *at)
{
	int64_t number = (int64_t)dice(t, 513) - 256;
	const double real = (double)number;
	uint64_t any = dice(t, 1ull << 40);

	switch (t->format) {
	case SPYRE_FORMAT_IEEE_FP16:
		ck_ok(spyre_format_encode(t->format, &real, 1, at));
		break;
	case SPYRE_FORMAT_IEEE_INT64:
		memcpy(at, &number, 8);
		break;
	case SPYRE_FORMAT_BOOL:
		*at = any & 1;
		break;
	default:	/* stored without conversion, or wide enough */
		memcpy(at, &any, spyre_format_bytes(t->format));
	}
}

static void fill_view(struct trial *t, struct view *v)
{
	for (int64_t n = elements(t); n-- > 0;)
		draw_value(t, v->block + place(t, v, n));
}

/* The documented order: [o1, .., o(r-1), o0, o(r-1)], for any list o. */
static void draw_layout(struct trial *t, const struct view *v)
{
	int32_t order[SPYRE_MAX_RANK + 1];
	uint32_t len = t->rank, n = 0;

	for (uint32_t d = 0; d < t->rank; d++)
		order[d] = d;
	if (dice(t, 4))
		shuffle(t, order, t->rank);
	if (t->rank && t->rank < SPYRE_MAX_RANK - 1 && !dice(t, 5))
		order[len++] = -1;
	ck_ok(spyre_layout_init_strided(&t->layout, t->rank, t->size, v->tensor.stride, t->format,
					order, len));
	for (uint32_t i = 1; i < len; i++)
		t->map[n++] = order[i];
	t->map[n++] = len ? order[0] : -1;
	t->map[n++] = len ? order[len - 1] : -1;
	t->device_rank = n;
	ck_assert_uint_eq(t->layout.device_rank, n);
}

/* Number of the host element at a device coordinate, -1 in padding. */
static int64_t element_at(const struct trial *t, const int64_t *c)
{
	int64_t index[SPYRE_MAX_RANK] = { 0 }, n = 0, lanes;
	uint32_t last = t->device_rank - 1;

	lanes = t->layout.device_size[last];
	for (uint32_t j = 0; j <= last; j++) {
		bool tile = j < last && t->map[j] == t->map[last];

		if (t->map[j] >= 0)
			index[t->map[j]] += c[j] * (tile ? lanes : 1);
		else if (c[j])
			return -1;
	}
	for (uint32_t d = 0; d < t->rank; d++) {
		if (index[d] >= t->size[d])
			return -1;
		n = n * t->size[d] + index[d];
	}
	return n;
}

/* Padding is zero; formats that are stored without conversion equal the host's. */
static void check_image(const struct trial *t, const struct view *v, const uint8_t *image)
{
	size_t bytes = spyre_format_bytes(t->layout.device_format);
	uint64_t size = spyre_layout_bytes(&t->layout), found = 0;
	int64_t c[SPYRE_MAX_DEVICE_RANK] = { 0 };

	for (uint64_t at = 0; at < size; at += bytes) {
		const bool same = t->layout.device_format == t->format;
		int64_t n = element_at(t, c);
		uint8_t want[8] = { 0 };

		found += n >= 0;
		if (n >= 0 && same)
			memcpy(want, v->block + place(t, v, n), bytes);
		order_le(want, 1, bytes);
		if ((n < 0 || same) && memcmp(image + at, want, bytes))
			ck_abort_msg("device byte %llu, element %lld", (unsigned long long)at,
				     (long long)n);
		for (uint32_t j = t->device_rank; j-- > 0;) {
			if (++c[j] < t->layout.device_size[j])
				break;
			c[j] = 0;
		}
	}
	ck_assert_uint_eq(found, elements(t));
}

/* The elements are back, and no other byte changed. */
static void check_back(const struct trial *t, const struct view *from, const struct view *to)
{
	size_t bytes = spyre_format_bytes(t->format);
	uint8_t *want = malloc(to->block_bytes);

	ck_assert_ptr_nonnull(want);
	memset(want, HOST_POISON, to->block_bytes);
	for (int64_t n = elements(t); n-- > 0;)
		memcpy(want + place(t, to, n), from->block + place(t, from, n), bytes);
	for (size_t i = 0; i < to->block_bytes; i++)
		if (want[i] != to->block[i])
			ck_abort_msg("host byte %zu of %zu: 0x%02x instead of 0x%02x", i,
				     to->block_bytes, to->block[i], want[i]);
	free(want);
}

static void describe(const struct trial *t, const struct view *v, char *text, size_t size)
{
	size_t at = snprintf(text, size, "%s", spyre_format_name(t->format));

	for (uint32_t d = 0; d < t->rank; d++)
		at += snprintf(text + at, size - at, " %lld/%lld", (long long)t->size[d],
			       (long long)v->tensor.stride[d]);
	at += snprintf(text + at, size - at, " +%lld ", (long long)v->tensor.storage_offset);
	spyre_layout_format_string(&t->layout, text + at, size - at);
}

static void copy_back(struct trial *t, spyre_context *context, spyre_devptr device,
		      const spyre_layout *layout, const struct view *from, struct view *to)
{
	spyre_stream *stream;

	if (dice(t, 2)) {
		ck_ok(spyre_copy_d2h(context, &to->tensor, device, layout));
	} else {
		ck_ok(spyre_stream_from_pool(context, -(int)dice(t, 2), &stream));
		ck_ok(spyre_copy_d2h_async(stream, &to->tensor, device, layout));
		ck_ok(spyre_stream_synchronize(stream));
	}
	check_back(t, from, to);
	free(to->block);
}

/* Creates a view with the same strides in separate storage. */
static void same_view(const struct view *v, struct view *out)
{
	*out = *v;
	out->block = malloc(v->block_bytes);
	ck_assert_ptr_nonnull(out->block);
	memset(out->block, HOST_POISON, v->block_bytes);
	out->tensor.data = out->block + GUARD;
}

/*
 * Creates the same layout from its strides alone. It may be refused if strides do
 * not distinguish the dimensions, but must not be misinterpreted. Returns true if
 * it was accepted.
 */
static bool try_explicit(struct trial *t, spyre_context *context, spyre_devptr device,
			 const struct view *v)
{
	spyre_layout layout;
	struct view back;
	spyre_status status;

	ck_ok(spyre_layout_init_explicit(&layout, t->layout.device_rank, t->layout.device_size,
					 t->layout.stride_map, t->layout.device_format,
					 SPYRE_EA_STANDARD));
	ck_assert(spyre_layout_equal(&layout, &t->layout));
	status = spyre_copy_h2d(context, device, &layout, &v->tensor);
	if (status == SPYRE_ERROR_LAYOUT)
		return false;
	ck_ok(status);
	same_view(v, &back);
	copy_back(t, context, device, &layout, v, &back);
	return true;
}

static bool run_trial(struct trial *t, spyre_context *context)
{
	uint64_t bytes, guarded;
	struct view from, to;
	uint8_t *image;
	spyre_devptr device;
	char text[1024];
	bool taken;

	t->format = formats[dice(t, sizeof(formats) / sizeof(*formats))];
	do {
		draw_shape(t);
		draw_view(t, &from);
		draw_layout(t, &from);
		bytes = spyre_layout_bytes(&t->layout);
		if (bytes > MAX_DEVICE)
			free(from.block);
	} while (bytes > MAX_DEVICE);
	fill_view(t, &from);
	describe(t, &from, text, sizeof(text));
	guarded = bytes + 2 * GUARD;
	image = malloc(guarded);
	ck_assert_ptr_nonnull(image);
	memset(image, DEVICE_POISON, guarded);
	ck_ok(spyre_mem_alloc(context, guarded, &device));
	ck_ok(spyre_memcpy_h2d(context, device, image, guarded));
	ck_assert_msg(!spyre_copy_h2d(context, device + GUARD, &t->layout, &from.tensor),
		      "%s: %s", text, spyre_last_error());
	ck_ok(spyre_memcpy_d2h(context, image, device, guarded));
	for (uint32_t i = 0; i < GUARD; i++)
		if (image[i] != DEVICE_POISON || image[guarded - 1 - i] != DEVICE_POISON)
			ck_abort_msg("%s: guard byte %u of the device", text, i);
	mark_point();
	if (elements(t))
		check_image(t, &from, image + GUARD);
	same_view(&from, &to);
	copy_back(t, context, device + GUARD, &t->layout, &from, &to);
	/* Another view of the same shape works with the same layout. */
	draw_view(t, &to);
	copy_back(t, context, device + GUARD, &t->layout, &from, &to);
	taken = try_explicit(t, context, device + GUARD, &from);
	ck_ok(spyre_mem_free(context, device));
	free(from.block);
	free(image);
	return taken;
}

START_TEST(random_views)
{
	spyre_context *context = open_card();
	int taken = 0;

	for (int i = 0; i < TRIALS; i++) {
		struct trial trial = { .seed = 0x9e3779b97f4a7c15ull * (_i * TRIALS + i + 1) };

		taken += run_trial(&trial, context);
	}
	/* Only views that strides cannot describe are refused; they are the minority. */
	ck_assert_int_gt(taken, TRIALS / 2);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("property");

	tcase_add_loop_test(tests, random_views, 0, ROUNDS);
	return run_suite("copy_property", tests);
}

// SPDX-License-Identifier: MIT
/* Constructors of layouts against the published vectors. */
#include <spyre/spyre.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define FP16 SPYRE_FORMAT_IEEE_FP16
#define END -9

struct vector {
	spyre_format format;
	int64_t size[8];
	int32_t order[8];	/* empty: 0..n-1 */
	int64_t device_size[9];
	int64_t stride_map[9];
};

/* Strides follow the rule without the clamp of later generators. */
static const struct vector vectors[] = {
	{ FP16, { END }, { END }, { 1, 64, END }, { -1, -1 } },
	{ FP16, { 120, END }, { END }, { 2, 64, END }, { 64, 1 } },
	{ FP16, { 128, END }, { END }, { 2, 64, END }, { 64, 1 } },
	{ FP16, { 1, END }, { END }, { 1, 64, END }, { -1, -1 } },
	{ FP16, { 33, END }, { END }, { 1, 64, END }, { 64, 1 } },
	{ FP16, { 131072, END }, { END }, { 2048, 64, END }, { 64, 1 } },
	{ FP16, { 512, 240, END }, { END }, { 4, 512, 64, END }, { 64, 240, 1 } },
	{ FP16, { 512, 256, END }, { END }, { 4, 512, 64, END }, { 64, 256, 1 } },
	{ FP16, { 1024, 256, END }, { END }, { 4, 1024, 64, END }, { 64, 256, 1 } },
	{ FP16, { 4, 128, END }, { END }, { 2, 4, 64, END }, { 64, 128, 1 } },
	{ FP16, { 40, 60, END }, { END }, { 1, 40, 64, END }, { 64, 60, 1 } },
	{ FP16, { 1, 60, END }, { END }, { 1, 1, 64, END }, { 64, -1, 1 } },
	{ FP16, { 10, 1, END }, { END }, { 1, 10, 64, END }, { -1, 1, -1 } },
	{ FP16, { 512, 8, 240, END }, { END }, { 8, 4, 512, 64, END }, { 240, 64, 1920, 1 } },
	{ FP16, { 512, 8, 256, END }, { END }, { 8, 4, 512, 64, END }, { 256, 64, 2048, 1 } },
	{ FP16, { 5, 100, 150, END }, { END }, { 100, 3, 5, 64, END }, { 150, 64, 15000, 1 } },
	{ FP16, { 5, 100, 150, END }, { 1, 0, 2, END }, { 5, 3, 100, 64, END },
	  { 15000, 64, 150, 1 } },
	{ FP16, { 128, 256, 512, END }, { END }, { 256, 8, 128, 64, END }, { 512, 64, 131072, 1 } },
	{ FP16, { 50, 10, 200, END }, { END }, { 10, 4, 50, 64, END }, { 200, 64, 2000, 1 } },
	{ FP16, { 5, 10, 200, END }, { END }, { 10, 4, 5, 64, END }, { 200, 64, 2000, 1 } },
	{ FP16, { 2, 3, 5, 7, END }, { END }, { 3, 5, 1, 2, 64, END }, { 35, 7, 64, 105, 1 } },
	{ FP16, { 2, 3, 4, 5, 130, END }, { END }, { 3, 4, 5, 3, 2, 64, END },
	  { 2600, 650, 130, 64, 7800, 1 } },
	{ FP16, { 1, 8, 128, 64, END }, { END }, { 8, 128, 1, 1, 64, END },
	  { 8192, 64, 64, -1, 1 } },
	{ FP16, { 1, 64, 32, 32, END }, { END }, { 64, 32, 1, 1, 64, END },
	  { 1024, 32, 64, -1, 1 } },
	{ FP16, { 1, 64, 32, 32, END }, { 0, 2, 3, 1, END }, { 32, 32, 1, 1, 64, END },
	  { 32, 1, 65536, -1, 1024 } },
	{ FP16, { 512, 256, END }, { 1, 0, END }, { 8, 256, 64, END }, { 16384, 1, 256 } },
	{ FP16, { 512, 8, 256, END }, { 0, 2, 1, END }, { 256, 1, 512, 64, END },
	  { 1, 16384, 2048, 256 } },
	{ FP16, { 512, 8, 256, END }, { 1, 0, 2, END }, { 512, 4, 8, 64, END },
	  { 2048, 64, 256, 1 } },
	{ FP16, { 512, 8, 256, END }, { 1, 2, 0, END }, { 256, 8, 8, 64, END },
	  { 1, 131072, 256, 2048 } },
	{ FP16, { 512, 8, 256, END }, { 2, 0, 1, END }, { 512, 1, 256, 64, END },
	  { 2048, 16384, 1, 256 } },
	{ FP16, { 512, 8, 256, END }, { 2, 1, 0, END }, { 8, 8, 256, 64, END },
	  { 256, 131072, 1, 2048 } },
	{ FP16, { 512, 256, END }, { 0, 1, -1, END }, { 256, 1, 512, 64, END },
	  { 1, -1, 256, -1 } },
	{ SPYRE_FORMAT_IEEE_FP32, { 512, 256, END }, { END }, { 8, 512, 32, END }, { 32, 256, 1 } },
	{ SPYRE_FORMAT_SENINT8, { 512, 256, END }, { END }, { 2, 512, 128, END }, { 128, 256, 1 } },
	/* the generic rule beyond them */
	{ FP16, { 2, 3, 4, 5, 6, 130, END }, { END }, { 3, 4, 5, 6, 3, 2, 64, END },
	  { 15600, 3900, 780, 130, 64, 46800, 1 } },
	{ FP16, { 512, END }, { 0, -1, END }, { 1, 512, 64, END }, { -1, 1, -1 } },
	{ SPYRE_FORMAT_IEEE_INT64, { 3, 33, END }, { END }, { 2, 3, 32, END }, { 32, 33, 1 } },
	{ SPYRE_FORMAT_BOOL, { 3, 65, END }, { END }, { 2, 3, 64, END }, { 64, 65, 1 } },
	{ FP16, { 0, 65, END }, { END }, { 2, 0, 64, END }, { 64, 65, 1 } },
};

static uint32_t length(const int64_t *list)
{
	uint32_t n = 0;

	while (list[n] != END)
		n++;
	return n;
}

static void make(const struct vector *v, spyre_layout *l)
{
	uint32_t rank = length(v->size), order = 0;
	int64_t stride[8], step = 1;

	for (uint32_t d = rank; d-- > 0;) {
		stride[d] = step;
		step *= v->size[d] ? v->size[d] : 1;
	}
	while (v->order[order] != END)
		order++;
	if (order)
		ck_assert_int_eq(spyre_layout_init_strided(l, rank, v->size, stride, v->format,
							   v->order, order), SPYRE_SUCCESS);
	else
		ck_assert_int_eq(spyre_layout_init(l, rank, v->size, v->format), SPYRE_SUCCESS);
}

START_TEST(published)
{
	const struct vector *v = &vectors[_i];
	spyre_layout l, copy;
	int64_t bytes = 128;

	make(v, &l);
	ck_assert_uint_eq(l.device_rank, length(v->device_size));
	for (uint32_t j = 0; j < l.device_rank; j++) {
		ck_assert_int_eq(l.device_size[j], v->device_size[j]);
		ck_assert_int_eq(l.stride_map[j], v->stride_map[j]);
		bytes *= j + 1 < l.device_rank ? v->device_size[j] : 1;
	}
	ck_assert(l.mapped);
	ck_assert_uint_eq(spyre_layout_bytes(&l), bytes);
	ck_assert_int_eq(spyre_layout_init_explicit(&copy, l.device_rank, l.device_size,
						    l.stride_map, l.device_format,
						    SPYRE_EA_STANDARD), SPYRE_SUCCESS);
	ck_assert(!copy.mapped);
	ck_assert(spyre_layout_equal(&l, &copy));
	copy.stride_map[0] += 1;
	ck_assert(!spyre_layout_equal(&l, &copy));
}
END_TEST

/* Convolution layouts that no dimension order produces are taken unchanged. */
START_TEST(explicit_layout_is_unchanged)
{
	static const int64_t size[] = { 32, 32, 1, 1, 64 }, map[] = { 1, 32, -1, 65536, 1024 };
	spyre_layout l;

	ck_assert_int_eq(spyre_layout_init_explicit(&l, 5, size, map, SPYRE_FORMAT_SEN169_FP16,
						    SPYRE_EA_STANDARD), SPYRE_SUCCESS);
	for (int j = 0; j < 5; j++) {
		ck_assert_int_eq(l.device_size[j], size[j]);
		ck_assert_int_eq(l.stride_map[j], map[j]);
	}
}
END_TEST

START_TEST(formats)
{
	static const int host_device[][2] = {
		{ SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_SEN169_FP16 },
		{ SPYRE_FORMAT_IEEE_FP32, SPYRE_FORMAT_IEEE_FP32 },
		{ SPYRE_FORMAT_BFLOAT16, SPYRE_FORMAT_BFLOAT16 },
		{ SPYRE_FORMAT_BOOL, SPYRE_FORMAT_SEN169_FP16 },
		{ SPYRE_FORMAT_SENINT8, SPYRE_FORMAT_SENINT8 },
		{ SPYRE_FORMAT_SENINT16, SPYRE_FORMAT_SENINT16 },
		{ SPYRE_FORMAT_IEEE_INT32, SPYRE_FORMAT_IEEE_INT32 },
		{ SPYRE_FORMAT_IEEE_INT64, SPYRE_FORMAT_IEEE_INT32 },
		{ SPYRE_FORMAT_UINT8, SPYRE_FORMAT_SENUINT32 },
		{ SPYRE_FORMAT_SEN143_FP8, SPYRE_FORMAT_SEN143_FP8 },
		{ SPYRE_FORMAT_FP64, SPYRE_FORMAT_INVALID },
		{ SPYRE_FORMAT_INVALID, SPYRE_FORMAT_INVALID },
		{ 99, SPYRE_FORMAT_INVALID },
	};
	static const int64_t size[] = { 4, 4 };
	spyre_layout l;

	for (size_t i = 0; i < sizeof(host_device) / sizeof(host_device[0]); i++)
		ck_assert_int_eq(spyre_layout_device_format(host_device[i][0]), host_device[i][1]);
	ck_assert_int_eq(spyre_layout_init(&l, 2, size, SPYRE_FORMAT_FP64), SPYRE_ERROR_FORMAT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "FP64"));
	ck_assert_int_eq(spyre_layout_init(&l, 2, size, (spyre_format)999), SPYRE_ERROR_FORMAT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "host format 999 is unknown"));
}
END_TEST

START_TEST(text)
{
	static const char want[] = "SpyreTensorLayout(device_size=[4, 512, 64], stride_map =[64, 256, 1], device_dtype=DataFormats.SEN169_FP16)";
	static const int64_t size[] = { 512, 256 };
	char buffer[256], small[20];
	spyre_layout l;

	ck_assert_int_eq(spyre_layout_init(&l, 2, size, FP16), SPYRE_SUCCESS);
	ck_assert_int_eq(spyre_layout_format_string(&l, buffer, sizeof(buffer)), sizeof(want) - 1);
	ck_assert_str_eq(buffer, want);
	ck_assert_int_eq(spyre_layout_format_string(&l, small, sizeof(small)), sizeof(want) - 1);
	ck_assert_int_eq(strncmp(small, want, sizeof(small) - 1), 0);
	ck_assert_int_eq(small[sizeof(small) - 1], '\0');
	ck_assert_int_eq(spyre_layout_format_string(&l, NULL, 0), sizeof(want) - 1);
	l.arrangement = SPYRE_EA_DL16_TO_FP32;
	spyre_layout_format_string(&l, buffer, sizeof(buffer));
	ck_assert_ptr_nonnull(strstr(buffer, "SEN169_FP16, element_arrangement=ElementArrangement.DL16_TO_FP32)"));
}
END_TEST

START_TEST(sizes)
{
	static const int64_t size[] = { 100, 150 }, none[] = { 100, 0 }, sparse[] = { 10, 1 };
	spyre_layout l;

	ck_assert_int_eq(spyre_layout_init(&l, 2, size, FP16), SPYRE_SUCCESS);
	ck_assert_uint_eq(spyre_layout_bytes(&l), 38400);
	ck_assert_uint_eq(spyre_layout_alloc_bytes(&l, 2, size, FP16), 38400);
	ck_assert_uint_eq(spyre_layout_alloc_bytes(&l, 2, none, FP16), 0);
	/* 8-byte host elements outweigh their 4-byte device form */
	ck_assert_int_eq(spyre_layout_init(&l, 2, size, SPYRE_FORMAT_IEEE_INT64), SPYRE_SUCCESS);
	ck_assert_uint_eq(spyre_layout_bytes(&l), 5 * 100 * 128);
	ck_assert_uint_eq(spyre_layout_alloc_bytes(&l, 2, size, SPYRE_FORMAT_IEEE_INT64),
			  (100 * 150 * 8 + 127) / 128 * 128);
	ck_assert_int_eq(spyre_layout_init(&l, 2, sparse, FP16), SPYRE_SUCCESS);
	ck_assert_uint_eq(spyre_layout_alloc_bytes(&l, 2, sparse, FP16), 1280);
	ck_assert_uint_eq(spyre_layout_alloc_bytes(&l, 0, NULL, FP16), 1280);
}
END_TEST

START_TEST(refused)
{
	static const int64_t size[] = { 4, 5, 6, 7, 8, 9, 10, 11 };
	static const int64_t stride[] = { 30, 6, 1, 1, 1, 1, 1 }, bad_stride[] = { 30, -6, 1 };
	static const int64_t huge[] = { INT64_MAX, 3 }, wide[] = { 1ll << 62, 1ll << 62 };
	static const int32_t twice[] = { 0, 1, 1 }, tail[] = { 0, 1, 2, 0 }, out[] = { 0, 1, 3 };
	static const int32_t order[] = { 0, 1, 2 }, long_order[] = { 0, 1, 2, 3, 4, 5, 6, -1 };
	static const int64_t negative[] = { 4, -5 };
	spyre_layout l;
	spyre_host_tensor t;

#define STRIDED(r, s, o, n) spyre_layout_init_strided(&l, r, size, s, FP16, o, n)
	ck_assert_int_eq(STRIDED(3, stride, order, 2), SPYRE_ERROR_LAYOUT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "Incompatible host_size and dim_order"));
	ck_assert_int_eq(STRIDED(3, stride, twice, 3), SPYRE_ERROR_LAYOUT);
	ck_assert_int_eq(STRIDED(3, stride, out, 3), SPYRE_ERROR_LAYOUT);
	ck_assert_int_eq(STRIDED(3, stride, tail, 4), SPYRE_ERROR_LAYOUT);
	ck_assert_int_eq(STRIDED(3, bad_stride, order, 3), SPYRE_ERROR_LAYOUT);
	ck_assert_int_eq(STRIDED(7, stride, long_order, 8), SPYRE_ERROR_LAYOUT);
	ck_assert_int_eq(STRIDED(7, stride, long_order, 7), SPYRE_SUCCESS);
	ck_assert_int_eq(STRIDED(8, stride, long_order, 8), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_layout_init(&l, 2, negative, FP16), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_layout_init(&l, 2, huge, FP16), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_layout_init(&l, 2, wide, FP16), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_layout_init(&l, 2, NULL, FP16), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_host_tensor_dense(&t, NULL, FP16, 2, huge),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(spyre_host_tensor_dense(&t, NULL, SPYRE_FORMAT_SENINT4, 2, size),
			 SPYRE_ERROR_FORMAT);
	ck_assert_int_eq(spyre_layout_init_explicit(&l, 9, size, stride, SPYRE_FORMAT_SEN169_FP16,
						    SPYRE_EA_STANDARD), SPYRE_ERROR_LAYOUT);
	ck_assert_int_eq(spyre_layout_init_explicit(&l, 3, size, stride, SPYRE_FORMAT_SEN169_FP16,
						    SPYRE_EA_STANDARD), SPYRE_ERROR_LAYOUT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "64 elements"));
	ck_assert_int_eq(spyre_layout_init_explicit(&l, 3, size, stride, SPYRE_FORMAT_FP64,
						    SPYRE_EA_STANDARD), SPYRE_ERROR_FORMAT);
	ck_assert_int_eq(spyre_layout_init_explicit(&l, 3, size, stride, SPYRE_FORMAT_INVALID,
						    SPYRE_EA_STANDARD), SPYRE_ERROR_FORMAT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("layout");
	TCase *t = tcase_create("layout");

	tcase_add_loop_test(t, published, 0, sizeof(vectors) / sizeof(vectors[0]));
	tcase_add_test(t, explicit_layout_is_unchanged);
	tcase_add_test(t, formats);
	tcase_add_test(t, text);
	tcase_add_test(t, sizes);
	tcase_add_test(t, refused);
	suite_add_tcase(s, t);
	return suite_run(s);
}

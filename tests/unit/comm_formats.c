/* SPDX-License-Identifier: MIT */
/*
 * Reductions of every format and operator on 3 ranks, by each algorithm and several chunk sizes:
 * all give the same bits, those of the host's reference.
 */
#include <math.h>

#include "comm_ranks.h"
#include "tests/order.h"

#define COUNT (3 * 4096)
#define BYTES ((uint64_t)COUNT * 4)
#define RANKS 3

struct setting {
	const char *algorithm;
	const char *chunk_kib;
};

static const struct setting settings[] = {
	{ "one-shot", "4" }, { "one-shot", "256" }, { "owners", "4" }, { "owners", "64" },
	{ "auto", "256" },
};

#define SETTINGS ((int)(sizeof(settings) / sizeof(settings[0])))

static const char *const names[] = {
	"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM",
};

static uint32_t hash(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

static int32_t integer(uint32_t rank, uint32_t i)
{
	return (int32_t)hash(i * 8 + rank);
}

/* Numbers of very different size, so that another order of the sum has other bits. */
static float number(uint32_t rank, uint32_t i)
{
	const uint32_t x = hash(i * 8 + rank);

	return ldexpf((float)(int32_t)x / 2147483648.0f, (int)(x % 24) - 12);
}

static int32_t combine_integers(spyre_reduce_op op, int32_t a, int32_t b)
{
	switch (op) {
	case SPYRE_REDUCE_PRODUCT:
		return (int32_t)((uint32_t)a * (uint32_t)b);
	case SPYRE_REDUCE_MIN:
		return a < b ? a : b;
	case SPYRE_REDUCE_MAX:
		return a > b ? a : b;
	case SPYRE_REDUCE_BAND:
		return a & b;
	case SPYRE_REDUCE_BOR:
		return a | b;
	case SPYRE_REDUCE_BXOR:
		return a ^ b;
	default:
		return (int32_t)((uint32_t)a + (uint32_t)b);
	}
}

static int32_t reduced_integer(spyre_reduce_op op, uint32_t i)
{
	int32_t result = integer(0, i);

	for (uint32_t r = 1; r < RANKS; r++)
		result = combine_integers(op, result, integer(r, i));
	return result;
}

static float reduced_number(spyre_reduce_op op, uint32_t i)
{
	float result = number(0, i) * (op == SPYRE_REDUCE_PREMUL_SUM ? 0.7f : 1);

	for (uint32_t r = 1; r < RANKS; r++) {
		const float x = number(r, i) * (op == SPYRE_REDUCE_PREMUL_SUM ? 0.7f : 1);

		if (op == SPYRE_REDUCE_PRODUCT)
			result *= x;
		else if (op == SPYRE_REDUCE_MIN)
			result = fminf(result, x);
		else if (op == SPYRE_REDUCE_MAX)
			result = fmaxf(result, x);
		else
			result += x;
	}
	return op == SPYRE_REDUCE_AVG ? result * (1.0f / RANKS) : result;
}

static void fill(struct rank *rank, spyre_devptr address, bool integers)
{
	int32_t *host = malloc(BYTES);

	rank_check(host, "no memory");
	for (uint32_t i = 0; i < COUNT; i++) {
		const float x = number(rank->rank, i);

		if (integers)
			host[i] = integer(rank->rank, i);
		else
			memcpy(&host[i], &x, sizeof(x));
	}
	order_le(host, COUNT, sizeof(*host));
	rank_ok(spyre_memcpy_h2d(rank->context, address, host, BYTES));
	free(host);
}

static void compare(struct rank *rank, spyre_devptr address, spyre_reduce_op op, bool integers)
{
	int32_t *host = malloc(BYTES);

	rank_check(host, "no memory");
	rank_ok(spyre_memcpy_d2h(rank->context, host, address, BYTES));
	order_le(host, COUNT, sizeof(*host));
	for (uint32_t i = 0; i < COUNT; i++) {
		int32_t want = reduced_integer(op, i);
		const float x = reduced_number(op, i);

		if (!integers)
			memcpy(&want, &x, sizeof(want));
		rank_check(host[i] == want, "%s of %s: element %u is 0x%x instead of 0x%x",
			   names[op], integers ? "int32" : "fp32", i, host[i], want);
	}
	free(host);
}

static void reduce_formats(struct rank *rank)
{
	const int64_t size[2] = { COUNT / 32, 32 };
	spyre_devptr in, out;
	spyre_layout layout;

	rank_ok(spyre_mem_alloc(rank->context, BYTES, &in));
	rank_ok(spyre_mem_alloc(rank->context, BYTES, &out));
	for (int integers = 0; integers < 2; integers++) {
		rank_ok(spyre_layout_init(&layout, 2, size, integers ? SPYRE_FORMAT_IEEE_INT32 :
					  SPYRE_FORMAT_IEEE_FP32));
		fill(rank, in, integers);
		for (int op = SPYRE_REDUCE_SUM; op <= SPYRE_REDUCE_PREMUL_SUM; op++) {
			const bool bits = op >= SPYRE_REDUCE_BAND && op <= SPYRE_REDUCE_BXOR;
			const bool scales = op == SPYRE_REDUCE_AVG || op == SPYRE_REDUCE_PREMUL_SUM;
			const spyre_reduction reduction = { (spyre_reduce_op)op, 0.7f };
			const spyre_status status = spyre_all_reduce(rank->comm, in, out, &layout,
								     reduction, rank->stream);

			if (integers ? scales : bits) {
				rank_check(status == SPYRE_ERROR_FORMAT, "%s: %s", names[op],
					   spyre_status_name(status));
				continue;
			}
			rank_check(!status, "%s: %s", names[op], spyre_last_error());
			rank_ok(spyre_stream_synchronize(rank->stream));
			compare(rank, out, (spyre_reduce_op)op, integers);
		}
	}
}

START_TEST(test_formats)
{
	setenv("SPYRE_COMM_ALGO", settings[_i].algorithm, 1);
	setenv("SPYRE_COMM_CHUNK_KIB", settings[_i].chunk_kib, 1);
	ranks_run(RANKS_AS_PROCESSES, RANKS, reduce_formats, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("comm_formats");
	TCase *tcase = tcase_create("formats");

	setenv("SPYRE_EMBEDDED_CARDS", "4", 0);
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, test_formats, 0, SETTINGS);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}

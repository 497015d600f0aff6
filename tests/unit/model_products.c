// SPDX-License-Identifier: MIT
/*
 * Compares the products of each unit with one fused multiply-add per element of K in ascending
 * order, for each number of rows that has a loop of its own.
 */
#include "model_reference.h"
#include "model_util.h"
#include "suite.h"
#include "model/simd/unit.h"

#include <math.h>
#include <string.h>

#define COLUMNS 64
#define MAX_ROWS 18		/* more than two blocks of registers and any remainder */
#define MAX_DEPTH 40

struct product {
	float a[MAX_ROWS][MAX_DEPTH];
	float b[MAX_DEPTH][COLUMNS];
	uint8_t lines[MAX_DEPTH][2 * COLUMNS];	/* b in DL16 or bf16 */
	float start[MAX_ROWS][COLUMNS];
	float want[MAX_ROWS][COLUMNS];
	float got[MAX_ROWS][COLUMNS];
};

/* Numbers of @format; @special: infinities and NaN among them as well. */
static void fill(struct product *p, uint64_t *seed, uint32_t format, bool special)
{
	uint32_t row, k, n;

	for (k = 0; k < MAX_DEPTH; k++) {
		rng_fill(seed, p->lines[k], sizeof(p->lines[k]), format);
		for (n = 0; n < COLUMNS; n++) {
			float x = reference_load(format, p->lines[k], n);

			if (!special && !isfinite(x))
				reference_store(format, p->lines[k], n, n);
			p->b[k][n] = reference_load(format, p->lines[k], n);
		}
	}
	for (row = 0; row < MAX_ROWS; row++) {
		for (k = 0; k < MAX_DEPTH; k++)
			p->a[row][k] = ldexpf((int)rng_below(seed, 1023) - 511,
					      rng_below(seed, 20) - 10);
		for (n = 0; n < COLUMNS; n++)
			p->start[row][n] = rng_below(seed, 9) - 4.0f;
	}
}

static void multiply(struct product *p, uint32_t rows, uint32_t depth)
{
	uint32_t row, k, n;

	memcpy(p->want, p->start, sizeof(p->want));
	memcpy(p->got, p->start, sizeof(p->got));
	for (row = 0; row < rows; row++)
		for (k = 0; k < depth; k++)
			for (n = 0; n < COLUMNS; n++)
				p->want[row][n] = fmaf(p->a[row][k], p->b[k][n],
						       p->want[row][n]);
}

static void compare(const struct spyre_unit *unit, const struct product *p, uint32_t rows,
		    uint32_t depth)
{
	uint32_t row, n;

	for (row = 0; row < MAX_ROWS; row++)
		for (n = 0; n < COLUMNS; n++) {
			float got = p->got[row][n], want = p->want[row][n];

			expect(!memcmp(&got, &want, 4) || (isnan(got) && isnan(want)),
			       "%s: %u rows of %u: row %u, column %u is %a, want %a",
			       spyre_unit_name(unit), rows, depth, row, n, got, want);
		}
}

START_TEST(test_rows)
{
	static struct product p;
	const struct spyre_unit *unit = test_units()[_i];
	uint32_t rows, depth;
	uint64_t seed = 1;

	for (rows = 1; rows <= MAX_ROWS; rows++) {
		for (depth = 1; depth <= MAX_DEPTH; depth += 13) {
			struct spyre_pt_run run = {
				.c = p.got, .a = p.a, .b = p.b, .rows = rows, .k = depth,
				.a_stride = sizeof(p.a[0]), .exact = depth % 2,
			};

			fill(&p, &seed, SPYRE_FMT_SEN169_FP16, rows % 3 == 0);
			multiply(&p, rows, depth);
			unit->pt(&run);
			compare(unit, &p, rows, depth);
		}
	}
}
END_TEST

static const uint32_t line_formats[] = { SPYRE_FMT_SEN169_FP16, SPYRE_FMT_BFLOAT16 };

/* Few rows widen the lines of B themselves; infinities and NaN may stand in any of its places. */
static void check_few(const struct spyre_unit *unit, uint32_t format, uint32_t rows,
		      uint32_t depth, uint64_t *seed)
{
	static struct product p;
	uint32_t n;

	for (n = 0; n < 2 + 2 * COLUMNS; n++) {
		struct spyre_pt_few_run run = {
			.c = p.got, .a = p.a, .b = p.lines[0],
			.b_stride = sizeof(p.lines[0]), .rows = rows, .k = depth,
			.a_stride = sizeof(p.a[0]), .format = format,
		};

		/* All kinds of numbers, none but finite ones, or one NaN or infinity. */
		fill(&p, seed, format, n == 1);
		if (n > 1) {
			const float x = n % 2 ? NAN : -INFINITY;

			reference_store(format, p.lines[depth - 1], n / 2 - 1, x);
			p.b[depth - 1][n / 2 - 1] = x;
		}
		multiply(&p, rows, depth);
		unit->pt_few(&run);
		compare(unit, &p, rows, depth);
	}
}

/* A single row, which most products of a language model have, is tried with every depth. */
START_TEST(test_few_rows)
{
	const struct spyre_unit *unit = test_units()[_i];
	uint64_t seed = 2;
	uint32_t rows, depth;

	for (size_t i = 0; i < sizeof(line_formats) / sizeof(line_formats[0]); i++)
		for (rows = 1; rows <= MAX_ROWS; rows++)
			for (depth = 1; depth <= MAX_DEPTH; depth += rows == 1 ? 1 : 13)
				check_few(unit, line_formats[i], rows, depth, &seed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_products");
	TCase *tc = tcase_create("products");
	int units = test_units_report();

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_rows, 0, units);
	tcase_add_loop_test(tc, test_few_rows, 0, units);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

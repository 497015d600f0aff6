// SPDX-License-Identifier: MIT
/* Layers and other composed operations, separate from sdsc_graph to run in parallel with it. */
#include <stdlib.h>

#include "sdsc_operation.h"
#include "suite.h"

START_TEST(one_of_math)
{
	run(&math_operations[_i / NUM_PLACINGS], _i % NUM_PLACINGS);
}
END_TEST

START_TEST(one_layer)
{
	run(&layer_operations[_i / NUM_PLACINGS], _i % NUM_PLACINGS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("layers");
	TCase *t = tcase_create("layers");

	setenv("SPYRE_BACKEND", "embedded", 0);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, one_of_math, 0, num_math_operations * NUM_PLACINGS);
	tcase_add_loop_test(t, one_layer, 0, num_layer_operations * NUM_PLACINGS);
	suite_add_tcase(s, t);
	return suite_run_many(s);
}

// SPDX-License-Identifier: MIT
/*
 * Adds two 64x128 tensors on a Spyre card: builds the SDSC bundle of the
 * addition, loads it, copies the operands to the card, launches the kernel and
 * checks the result. Needs nothing but the installed library.
 */
#include <stdio.h>
#include <stdlib.h>

#include <spyre/spyre.h>

#define ROWS 64
#define COLUMNS 128

static void check(spyre_status status, const char *what)
{
	if (status == SPYRE_SUCCESS)
		return;
	fprintf(stderr, "add: cannot %s: %s: %s\n", what, spyre_status_name(status),
		spyre_last_error());
	exit(1);
}

/* Writes the bundle of sum = a + b to @directory and returns the operands' layout. */
static spyre_layout build(const char *directory)
{
	spyre_sdsc_operand operand = { .rank = 2, .size = { ROWS, COLUMNS } };
	spyre_layout *layout = &operand.layout;

	check(spyre_layout_init(layout, 2, operand.size, SPYRE_FORMAT_IEEE_FP32), "make a layout");
	check(spyre_sdsc_build("add", (spyre_sdsc_operand[]){ operand, operand, operand }, 3, 0,
			       directory), "build the bundle");
	return *layout;
}

/* Allocates memory for one tensor of @layout and copies @data into it. */
static spyre_devptr upload(spyre_context *context, const spyre_layout *layout, float *data)
{
	spyre_host_tensor tensor;
	spyre_devptr address;

	check(spyre_host_tensor_dense(&tensor, data, SPYRE_FORMAT_IEEE_FP32, 2,
				      (int64_t[]){ ROWS, COLUMNS }), "describe a tensor");
	check(spyre_mem_alloc(context, spyre_layout_bytes(layout), &address), "allocate memory");
	check(spyre_copy_h2d(context, address, layout, &tensor), "copy to the card");
	return address;
}

static void download(spyre_context *context, const spyre_layout *layout, spyre_devptr address,
		     float *data)
{
	spyre_host_tensor tensor;

	check(spyre_host_tensor_dense(&tensor, data, SPYRE_FORMAT_IEEE_FP32, 2,
				      (int64_t[]){ ROWS, COLUMNS }), "describe a tensor");
	check(spyre_copy_d2h(context, &tensor, address, layout), "copy from the card");
}

static void launch(spyre_context *context, const char *directory, const spyre_arg args[3])
{
	spyre_stream *stream;
	spyre_kernel *kernel;

	check(spyre_kernel_load(context, directory, &kernel), "load the bundle");
	check(spyre_stream_get(context, 0, &stream), "get stream 0");
	check(spyre_launch(stream, kernel, args, 3), "launch the kernel");
	check(spyre_stream_synchronize(stream), "run the kernel");
	check(spyre_kernel_unload(kernel), "unload the kernel");
}

int main(int argc, char **argv)
{
	static float a[ROWS * COLUMNS], b[ROWS * COLUMNS], sum[ROWS * COLUMNS];
	const char *directory = argc > 1 ? argv[1] : "add.bundle";
	spyre_layout layout = build(directory);
	spyre_context *context;
	spyre_arg args[3];

	for (int i = 0; i < ROWS * COLUMNS; i++) {
		a[i] = (float)i;
		b[i] = 0.5f;
	}
	check(spyre_context_create(0, 0, &context), "open card 0");
	args[0] = (spyre_arg){ upload(context, &layout, a), &layout };
	args[1] = (spyre_arg){ upload(context, &layout, b), &layout };
	args[2] = (spyre_arg){ upload(context, &layout, sum), &layout };
	launch(context, directory, args);
	download(context, &layout, args[2].address, sum);
	check(spyre_context_destroy(context), "close the card");

	for (int i = 0; i < ROWS * COLUMNS; i++) {
		if (sum[i] != a[i] + b[i]) {
			fprintf(stderr, "add: element %d is %g, expected %g\n", i, sum[i],
				a[i] + b[i]);
			return 1;
		}
	}
	printf("%d sums are right, the last one is %g\n", ROWS * COLUMNS, sum[ROWS * COLUMNS - 1]);
	return 0;
}

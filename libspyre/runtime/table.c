// SPDX-License-Identifier: MIT
/* Tables among the arguments of a launch: see table.h. */
#include "libspyre/runtime/table.h"

#include <inttypes.h>
#include <stdio.h>

#include "libspyre/base/error.h"

const char *sizes_text(char *text, size_t bytes, const int64_t *size, uint32_t rank)
{
	size_t at = snprintf(text, bytes, "[");

	for (uint32_t i = 0; i < rank && at < bytes; i++)
		at += snprintf(text + at, bytes - at, "%s%" PRId64, i ? ", " : "", size[i]);
	if (at < bytes)
		snprintf(text + at, bytes - at, "]");
	return text;
}

/* Bytes of the dims of a layout from @dim on; a layout beyond 64 bits fits no memory. */
static uint64_t bytes_from(const spyre_layout *layout, uint32_t dim)
{
	uint64_t bytes = SPYRE_STICK;

	for (uint32_t i = dim; i + 1 < layout->device_rank; i++)
		bytes *= (uint64_t)layout->device_size[i];
	return bytes;
}

/* True if some dim outside of the lanes has one element. */
static bool has_one(const spyre_layout *layout)
{
	for (uint32_t i = 0; i + 1 < layout->device_rank; i++)
		if (layout->device_size[i] == 1)
			return true;
	return false;
}

/*
 * Finds the dim that counts the sticks along a row, by its stride; the rank if none is known to.
 * A layout of two dims has none, and a dim of one element may be the one of rows of one stick:
 * their rows have the same stride as sticks.
 */
static uint32_t stick_dim(const spyre_layout *layout)
{
	uint32_t last = layout->device_rank - 1;

	for (uint32_t i = last; i-- > 0 && last > 1 && !has_one(layout);)
		if (layout->stride_map[i] ==
		    layout->device_size[last] * layout->stride_map[last])
			return i;
	return layout->device_rank;
}

/* Bytes of what lies inside the outermost dim of several elements: a row as the layout has it. */
static uint64_t row_of(const spyre_layout *layout)
{
	for (uint32_t i = 0; i + 1 < layout->device_rank; i++)
		if (layout->device_size[i] > 1)
			return bytes_from(layout, i + 1);
	return bytes_from(layout, layout->device_rank - 1);
}

/*
 * Refuses layouts whose rows are not @row bytes: with these, an index would select another row,
 * or a part of one. Rows may be counted by several dims, outside of all others.
 */
static spyre_status check_rows(const struct spyre_kernel *kernel, uint32_t index,
			       const spyre_layout *layout, uint64_t row)
{
	uint32_t stick = stick_dim(layout);
	bool apart = false;
	char sizes[160];

	/* A table of one row is as large as the row. */
	for (uint32_t dim = layout->device_rank > 2 && !has_one(layout); dim < layout->device_rank;
	     dim++) {
		if (bytes_from(layout, dim) != row)
			continue;
		if (stick >= dim)
			return SPYRE_SUCCESS;
		apart = true;
	}
	sizes_text(sizes, sizeof(sizes), layout->device_size, layout->device_rank);
	if (apart && row_of(layout) == row)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\", argument %u: the bundle has a table with rows of %" PRIu64 " bytes, the layout %s has the sticks of a row in dimension %u, outside of %" PRIu64 " bytes; pass a layout whose outermost dimension is that of the rows",
				   kernel->bundle.name, index, row, sizes, stick, row);
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
			   "kernel \"%s\", argument %u: the bundle has a table with rows of %" PRIu64 " bytes, the layout %s has rows of %" PRIu64 "; pass a layout whose outermost dimension is that of the rows, as wide as in the bundle",
			   kernel->bundle.name, index, row, sizes, row_of(layout));
}

spyre_status table_bytes(struct spyre_kernel *kernel, uint32_t index,
			 const spyre_launch_arg *arg, uint64_t *bytes)
{
	spyre_pointer_info info = { .struct_size = sizeof(info) };
	const struct rows_width *width = &kernel->width[index];
	uint64_t least = kernel->bundle.args[index].bytes;

	if (!arg->layout) {
		TRY(spyre_pointer_query(kernel->context, arg->address, &info));
		*bytes = info.size - info.offset;
		return SPYRE_SUCCESS;
	}
	*bytes = spyre_layout_bytes(arg->layout);
	if (*bytes < least)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "kernel \"%s\", argument %u: the first row of the table ends at byte %" PRIu64 ", the layout has %" PRIu64 " bytes",
				   kernel->bundle.name, index, least, *bytes);
	if (!width->least)		/* no instruction accesses it */
		return SPYRE_SUCCESS;
	TRY(check_rows(kernel, index, arg->layout, width->least));
	return check_rows(kernel, index, arg->layout, width->most);
}

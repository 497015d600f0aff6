// SPDX-License-Identifier: MIT
/* Builder: attributes of operations. */
#include "libspyre/sdsc/graph/attr.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"

bool build_has_attr(const struct build_call *call, const char *name)
{
	for (uint32_t i = 0; i < call->num_attrs; i++)
		if (!strcmp(call->attr[i].name, name))
			return true;
	return false;
}

double build_attr(const struct build_call *call, const char *name)
{
	for (uint32_t i = 0; i < call->num_attrs; i++)
		if (!strcmp(call->attr[i].name, name))
			return call->attr[i].value;
	for (uint32_t i = 0; i < BUILD_MAX_ATTRS && call->op->attr[i].name; i++)
		if (!strcmp(call->op->attr[i].name, name))
			return call->op->attr[i].fallback;
	return NAN;
}

double build_attr_nth(const struct build_call *call, const char *name, uint32_t n)
{
	double value = build_attr(call, name);

	for (uint32_t i = 0; i < call->num_attrs; i++) {
		if (strcmp(call->attr[i].name, name))
			continue;
		value = call->attr[i].value;
		if (!n--)
			break;
	}
	return value;
}

static spyre_status unknown_attr(const struct build_call *call, const char *name)
{
	char list[256] = "none";
	size_t used = 0;

	for (uint32_t k = 0; k < BUILD_MAX_ATTRS && call->op->attr[k].name; k++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", k ? ", " : "",
					 call->op->attr[k].name);
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
			   "%s has no attribute \"%s\"; its attributes are %s", call->op->name, name,
			   list);
}

spyre_status build_check_attrs(const struct build_call *call)
{
	for (uint32_t i = 0; i < call->num_attrs; i++) {
		const char *name = call->attr[i].name;
		bool known = false;

		if (!name)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: attribute %u has no name", call->op->name, i);
		for (uint32_t k = 0; k < BUILD_MAX_ATTRS && call->op->attr[k].name; k++)
			known = known || !strcmp(call->op->attr[k].name, name);
		if (!known)
			return unknown_attr(call, name);
		if (isnan(call->attr[i].value))
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: attribute \"%s\" is not a number", call->op->name,
					   name);
		if (!strcmp(name, "eps") && !(call->attr[i].value >= 0 &&
					      isfinite(call->attr[i].value)))
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: eps is %g, expected a finite number that is not below 0",
					   call->op->name, call->attr[i].value);
	}
	return SPYRE_SUCCESS;
}

spyre_status build_attr_dim(const struct build_call *call, const char *name, double value,
			     uint32_t rank, uint32_t *dim)
{
	if (value != floor(value) || value < -(double)rank || value >= rank)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: %s %g is out of range: operand 0 has %u dimensions",
				   call->op->name, name, value, rank);
	*dim = (uint32_t)(value < 0 ? value + rank : value);
	return SPYRE_SUCCESS;
}

spyre_status build_attr_format(const struct build_call *call, spyre_format *format)
{
	double value = build_attr(call, "format");

	if (isnan(value))
		return SPYRE_SUCCESS;
	if (!(value >= 0 && value < 256) || spyre_stick_elements((spyre_format)value) < 1)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: the attribute \"format\" is %g, which is not a device format (spyre_format)",
				   call->op->name, value);
	*format = (spyre_format)value;
	return SPYRE_SUCCESS;
}

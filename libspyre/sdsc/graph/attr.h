/* SPDX-License-Identifier: MIT */
/* Attributes of operations. Internal. */
#ifndef SPYRE_SDSC_ATTR_H
#define SPYRE_SDSC_ATTR_H

#include "libspyre/sdsc/graph/graph.h"

bool build_has_attr(const struct build_call *call, const char *name);
double build_attr(const struct build_call *call, const char *name);
/* Value @n of an attribute that is given several times, or the last one if @n is too large. */
double build_attr_nth(const struct build_call *call, const char *name, uint32_t n);
spyre_status build_check_attrs(const struct build_call *call);
/* An attribute that names a dim; negative ones count from the end. */
spyre_status build_attr_dim(const struct build_call *call, const char *name, double value,
			    uint32_t rank, uint32_t *dim);
/* The attribute "format", a device format; *@format stays if it is not given. */
spyre_status build_attr_format(const struct build_call *call, spyre_format *format);

#endif /* SPYRE_SDSC_ATTR_H */

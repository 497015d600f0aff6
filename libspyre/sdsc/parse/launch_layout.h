/* SPDX-License-Identifier: MIT */
/* Layouts of arguments in launch_spec.json. Internal. */
#ifndef SPYRE_SDSC_LAUNCH_LAYOUT_H
#define SPYRE_SDSC_LAUNCH_LAYOUT_H

#include "libspyre/sdsc/parse/json.h"
#include "libspyre/sdsc/parse/launch_spec.h"

/* Reads the layout of an argument: an object, or the text form of a SpyreTensorLayout. */
spyre_status launch_spec_layout(const struct json *at, struct launch_spec_arg *arg);

#endif /* SPYRE_SDSC_LAUNCH_LAYOUT_H */

// SPDX-License-Identifier: GPL-2.0-only
#define CREATE_TRACE_POINTS
#include "spyre_trace.h"

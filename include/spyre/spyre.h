/* SPDX-License-Identifier: MIT */
/* All of libspyre. */
#ifndef SPYRE_SPYRE_H
#define SPYRE_SPYRE_H

#include <spyre/activity.h>
#include <spyre/collective.h>
#include <spyre/device.h>
#include <spyre/graph.h>
#include <spyre/kernel.h>
#include <spyre/layout.h>
#include <spyre/memory.h>
#include <spyre/peer.h>
#include <spyre/sdsc.h>
#include <spyre/stream.h>
#include <spyre/ras.h>
#include <spyre/telemetry.h>
#include <spyre/trace.h>
#include <spyre/types.h>

#endif /* SPYRE_SPYRE_H */

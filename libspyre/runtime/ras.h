/* SPDX-License-Identifier: MIT */
/* RAS records that the library writes. Internal. */
#ifndef SPYRE_RUNTIME_RAS_H
#define SPYRE_RUNTIME_RAS_H

#include <spyre/ras.h>

/* True if SPYRE_RAS_LOG asks for records. */
bool spyre_ras_enabled(void);
/* Writes @record if spyre_ras_enabled(), and adds it to the events of card @index, -1: none. */
void spyre_ras_log(const spyre_ras_record *record, int index);
/* The record of a stream that failed with @what. */
struct spyre_context_fault;
struct spyre_stream;
void spyre_ras_stream(const struct spyre_stream *stream, const char *what,
		      const struct spyre_context_fault *fault);
/* Writes the record of a wrong SPYRE_DEVICES, once per process. */
void spyre_ras_devices(const char *message);

#endif /* SPYRE_RUNTIME_RAS_H */

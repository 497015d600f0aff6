/* SPDX-License-Identifier: MIT */
/*
 * Events of processes: those of embedded cards, and RAS records of every card. Each is a line
 * of JSON in ${SPYRE_TELEMETRY_DIR:-/tmp}/spyre-<uid>/events, which becomes events.old when it
 * is full. Only the user can read the folder; the user can also write anything into these
 * files, so readers check every field. Internal.
 */
#ifndef SPYRE_EVENT_LOG_H
#define SPYRE_EVENT_LOG_H

#include <spyre/telemetry.h>

#define SPYRE_EVENT_LOG "events"
#define SPYRE_EVENT_LOG_OLD "events.old"
/* A file of this size is full. */
#define SPYRE_EVENT_LOG_BYTES (256 << 10)
/* The longest line: a record of which each byte is escaped, and the other fields. */
#define SPYRE_EVENT_LINE_BYTES 16384

struct spyre_telemetry_page;

/*
 * Append an event of this process to the log of its user. A log that cannot be written loses
 * the event (logged at "warn"). Texts of errors stay as they are.
 */
void spyre_event_log(const struct spyre_telemetry_page *page, spyre_telemetry_event_kind kind,
		     spyre_fault fault, uint64_t value);
/* @properties of the card, NULL if the record concerns none. */
void spyre_event_log_ras(const spyre_device_properties *properties, uint32_t code,
			 const char *record);

/* Reads a line of @length bytes, of the user @owner; false if it is not an event. */
bool spyre_event_parse(const char *line, size_t length, uint32_t owner,
		       spyre_telemetry_event *event);

#endif /* SPYRE_EVENT_LOG_H */

/* SPDX-License-Identifier: MIT */
/* spyre-smi events: a line of each event, as text or JSON. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yyjson.h>

#include "tools/smi/events.h"

#define NS 1000000000u

static const char *const names[] = {
	[SPYRE_TELEMETRY_CARD_ADDED] = "card_added",
	[SPYRE_TELEMETRY_CARD_REMOVED] = "card_removed",
	[SPYRE_TELEMETRY_CARD_RESET] = "card_reset",
	[SPYRE_TELEMETRY_CARD_VFS] = "card_vfs",
	[SPYRE_TELEMETRY_CONTEXT_RESET] = "context_reset",
	[SPYRE_TELEMETRY_FAULT] = "fault",
	[SPYRE_TELEMETRY_RAS] = "ras",
	[SPYRE_TELEMETRY_LOST] = "lost",
};

static const char *const faults[] = {
	[SPYRE_FAULT_NONE] = "none", [SPYRE_FAULT_TIMEOUT] = "timeout",
	[SPYRE_FAULT_ACCESS] = "access", [SPYRE_FAULT_ESCAPE] = "escape",
	[SPYRE_FAULT_COMPUTE] = "compute",
};

static const char *kind_name(const spyre_telemetry_event *event)
{
	return event->kind < sizeof(names) / sizeof(names[0]) ? names[event->kind] : "unknown";
}

static const char *fault_name(const spyre_telemetry_event *event)
{
	return event->fault < sizeof(faults) / sizeof(faults[0]) ? faults[event->fault] : "unknown";
}

/* "2026-11-26T21:15:00.123456Z" */
static void format_time(const spyre_telemetry_event *event, char *text, size_t size)
{
	const time_t seconds = (time_t)(event->time_ns / NS);
	char date[40] = "unknown";
	struct tm utc;

	/* The log of a user can have any number as a time. */
	if (gmtime_r(&seconds, &utc))
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text, size, "%s.%06uZ", date, (unsigned int)(event->time_ns % NS / 1000));
}

static void print_value(const spyre_telemetry_event *event)
{
	switch (event->kind) {
	case SPYRE_TELEMETRY_CARD_RESET:
		printf(" generation %" PRIu64, event->value);
		break;
	case SPYRE_TELEMETRY_CARD_VFS:
		printf(" %" PRIu64 " VFs", event->value);
		break;
	case SPYRE_TELEMETRY_LOST:
		printf(" %" PRIu64 " events", event->value);
		break;
	case SPYRE_TELEMETRY_FAULT:
		printf(" %s", fault_name(event));
		break;
	case SPYRE_TELEMETRY_RAS:
		printf(" %s", event->record);
		break;
	default:
		break;
	}
}

static void print_text(const spyre_telemetry_event *event)
{
	char time[64];

	format_time(event, time, sizeof(time));
	printf("%s %s", time, *event->bus_id ? event->bus_id : "-");
	if (event->pid)
		printf(" %s[%" PRId32 "]", event->process, event->pid);
	if (event->context)
		printf(" client %" PRIu64, event->context);
	printf(" %s", kind_name(event));
	print_value(event);
	putchar('\n');
}

static void add_number(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *key, bool known,
		       uint64_t number)
{
	if (known)
		yyjson_mut_obj_add_uint(doc, root, key, number);
	else
		yyjson_mut_obj_add_null(doc, root, key);
}

/* The record as an object; null if there is none, or its process wrote something else. */
static void add_record(yyjson_mut_doc *doc, yyjson_mut_val *root,
		       const spyre_telemetry_event *event)
{
	yyjson_doc *record = yyjson_read(event->record, strlen(event->record), 0);
	yyjson_val *value = yyjson_doc_get_root(record);

	if (yyjson_is_obj(value))
		yyjson_mut_obj_add_val(doc, root, "record", yyjson_val_mut_copy(doc, value));
	else
		yyjson_mut_obj_add_null(doc, root, "record");
	yyjson_doc_free(record);
}

static bool print_json(const spyre_telemetry_event *event)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	const bool valued = event->kind == SPYRE_TELEMETRY_CARD_RESET ||
			    event->kind == SPYRE_TELEMETRY_CARD_VFS ||
			    event->kind == SPYRE_TELEMETRY_LOST;
	char time[64], *text;

	yyjson_mut_doc_set_root(doc, root);
	format_time(event, time, sizeof(time));
	yyjson_mut_obj_add_str(doc, root, "time", time);
	yyjson_mut_obj_add_uint(doc, root, "time_ns", event->time_ns);
	yyjson_mut_obj_add_str(doc, root, "event", kind_name(event));
	yyjson_mut_obj_add_str(doc, root, "bus_id", event->bus_id);
	yyjson_mut_obj_add_str(doc, root, "uuid", event->uuid);
	add_number(doc, root, "host_pid", event->host_pid, (uint64_t)event->host_pid);
	add_number(doc, root, "pid", event->pid, (uint64_t)event->pid);
	add_number(doc, root, "uid", event->uid != UINT32_MAX, event->uid);
	yyjson_mut_obj_add_str(doc, root, "process", event->process);
	add_number(doc, root, "client", event->context, event->context);
	if (event->fault)
		yyjson_mut_obj_add_str(doc, root, "fault", fault_name(event));
	else
		yyjson_mut_obj_add_null(doc, root, "fault");
	add_number(doc, root, "value", valued, event->value);
	add_record(doc, root, event);
	text = yyjson_mut_write(doc, 0, NULL);
	yyjson_mut_doc_free(doc);
	if (text)
		puts(text);
	free(text);
	return text;
}

/* True if @ids has the card's UUID or bus id, or its index in @snapshot. */
static bool is_chosen(const struct smi_snapshot *snapshot, const char *ids,
		      const spyre_telemetry_event *event)
{
	size_t length;

	for (int i = 0; i < snapshot->num_cards; i++)
		if (snapshot->chosen[i] && *event->uuid &&
		    !strcmp(snapshot->cards[i].properties.uuid, event->uuid))
			return true;
	for (;; ids += length + 1) {
		length = strcspn(ids, ",");
		if (length && ((strlen(event->uuid) == length &&
				!strncasecmp(event->uuid, ids, length)) ||
			       (strlen(event->bus_id) == length &&
				!strncmp(event->bus_id, ids, length))))
			return true;
		if (!ids[length])
			return false;
	}
}

/* Finds the cards that -i gives by number; others may still come, or be gone already. */
static int choose_numbers(struct smi_snapshot *snapshot, const char *ids)
{
	char number[16];
	size_t length;
	int status;

	status = smi_take_snapshot(snapshot);
	for (; status == SMI_OK; ids += length + 1) {
		length = strcspn(ids, ",");
		if (length && length < sizeof(number) && strspn(ids, "0123456789") == length) {
			snprintf(number, sizeof(number), "%.*s", (int)length, ids);
			status = smi_choose(snapshot, number);
		}
		if (!ids[length])
			break;
	}
	return status;
}

static int print_events(spyre_telemetry_events *events, const struct smi_options *options,
			const struct smi_snapshot *snapshot)
{
	spyre_telemetry_event event = { .struct_size = sizeof(event) };
	const uint64_t timeout = options->follow ? UINT64_MAX : 0;
	spyre_status status;

	while ((status = spyre_telemetry_events_next(events, timeout, &event)) == SPYRE_SUCCESS ||
	       (status == SPYRE_NOT_READY && options->follow)) {
		if (status || (options->ids && !is_chosen(snapshot, options->ids, &event)))
			continue;
		if (options->format != SMI_JSON)
			print_text(&event);
		else if (!print_json(&event))
			return smi_no_memory("an event");
		if (options->follow && (fflush(stdout) || ferror(stdout)))
			return SMI_OK;	/* main() reports it */
	}
	return status == SPYRE_NOT_READY ? SMI_OK : smi_status(status);
}

int smi_events(const struct smi_options *options)
{
	struct smi_snapshot snapshot = { 0 };
	spyre_telemetry_events *events;
	spyre_status status;
	int result;

	status = spyre_telemetry_events_open(options->follow ? 0 : SPYRE_TELEMETRY_EVENTS_KEPT,
					     &events);
	if (status)
		return smi_status(status);
	result = options->ids ? choose_numbers(&snapshot, options->ids) : SMI_OK;
	if (result == SMI_OK)
		result = print_events(events, options, &snapshot);
	smi_free_snapshot(&snapshot);
	spyre_telemetry_events_close(events);
	return result;
}

// SPDX-License-Identifier: MIT
/* RAS records: formatting for all callers, and the library's own in SPYRE_RAS_LOG=FILE. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yyjson.h>

#include "libspyre/base/log.h"
#include "libspyre/runtime/ras.h"
#include "libspyre/runtime/stream.h"
#include "libspyre/telemetry/event_log.h"

#define RAS_LINE_BYTES 4096

/* Fields of a record that follow from its code. */
struct ras_kind {
	uint32_t code;
	const char *name;
	const char *description;
	const char *action;
	const char *category;
	const char *severity;
	const char *type;
	bool flightlogs;	/* the card leaves a dump */
};

static const struct ras_kind kinds[] = {
	{ SPYRE_RAS_CONTROL_BLOCK_SOFT_FAIL, "CBRB::ControlBlockSoftFail",
	  "a control block reached outside the memory of its context", "information",
	  "software", "error", "CBRB", true },
	{ SPYRE_RAS_UNSUPPORTED_MESSAGE, "CBRB::UnsupportedMessage",
	  "the card does not know the control block", "information", "software", "error", "CBRB",
	  false },
	{ SPYRE_RAS_COMPUTE_HARDWARE_ERROR, "RUNTIMESCHEDULER::ComputeHardwareError",
	  "a core or the DMA engine failed", "information", "hardware", "error",
	  "RUNTIMESCHEDULER", true },
	{ SPYRE_RAS_STREAM_IN_ERROR_STATE, "RUNTIMESCHEDULER::StreamInErrorState",
	  "the stream takes no work, since work of its context had failed", "information",
	  "software", "error", "RUNTIMESCHEDULER", false },
	{ SPYRE_RAS_MESSAGE_TIMEOUT, "CBRB::MessageTimeout",
	  "a control block ran past its time limit", "reset", "hardware", "fatal", "CBRB", true },
	{ SPYRE_RAS_INCORRECT_SPYRE_DEVICES_VAR, "CONFIGURATION::IncorrectSpyreDevicesVar",
	  "SPYRE_DEVICES does not fit the cards or the size of the job", "information", "software",
	  "error", "CONFIGURATION", false },
};

static pthread_once_t ras_once = PTHREAD_ONCE_INIT;
static int ras_fd = -1;

static const struct ras_kind *kind_find(uint32_t code)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].code == code)
			return &kinds[i];
	return NULL;
}

static void add_hex(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	yyjson_mut_obj_add_strcpy(doc, root, name, text);
}

static char *ras_json(const spyre_ras_record *r, const struct ras_kind *kind)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_str(doc, root, "action", kind->action);
	yyjson_mut_obj_add_str(doc, root, "category", kind->category);
	add_hex(doc, root, "code", kind->code);
	yyjson_mut_obj_add_str(doc, root, "description", kind->description);
	yyjson_mut_obj_add_str(doc, root, "message", r->message ? r->message : kind->description);
	yyjson_mut_obj_add_str(doc, root, "name", kind->name);
	yyjson_mut_obj_add_str(doc, root, "severity", kind->severity);
	yyjson_mut_obj_add_uint(doc, root, "step", r->step);
	yyjson_mut_obj_add_str(doc, root, "type", kind->type);
	yyjson_mut_obj_add_bool(doc, root, "collect_flightlogs", kind->flightlogs);
	if (r->cb_name)
		yyjson_mut_obj_add_str(doc, root, "cb_name", r->cb_name);
	else
		yyjson_mut_obj_add_null(doc, root, "cb_name");
	add_hex(doc, root, "rb_hmierr_addr", r->address);
	yyjson_mut_obj_add_uint(doc, root, "rb_hmierr_mode", r->mode);
	yyjson_mut_obj_add_uint(doc, root, "rb_hmierr_snid", r->source);
	yyjson_mut_obj_add_uint(doc, root, "rb_hmierr_syndrome", r->syndrome);
	add_hex(doc, root, "cb_cmpt_bootaddr", r->boot_address);
	yyjson_mut_obj_add_uint(doc, root, "cb_ctrl_contextid", r->context);
	yyjson_mut_obj_add_uint(doc, root, "VfId", r->vf);
	yyjson_mut_obj_add_uint(doc, root, "MessageTag", r->message_tag);
	yyjson_mut_obj_add_uint(doc, root, "MessageType", r->message_type);
	/* Names come from files and may be invalid UTF-8. */
	text = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
	yyjson_mut_doc_free(doc);
	return text;
}

spyre_status spyre_ras_format(const spyre_ras_record *record, char *text, size_t size)
{
	spyre_ras_record known = { 0 };
	const struct ras_kind *kind;
	char *json;
	size_t len;

	if (!record || !text)
		return spyre_null_argument("spyre_ras_format", record ? "text" : "record");
	if (record->struct_size < offsetof(spyre_ras_record, message))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_ras_format: struct_size is %zu; set it to "
				   "sizeof(spyre_ras_record) before the call", record->struct_size);
	memcpy(&known, record, record->struct_size < sizeof(known) ? record->struct_size :
	       sizeof(known));
	kind = kind_find(known.code);
	if (!kind)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_ras_format: 0x%x is not the code of a record",
				   (unsigned int)known.code);
	json = ras_json(&known, kind);
	if (!json)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for the text of a RAS record");
	len = strlen(json);
	if (len < size)
		memcpy(text, json, len + 1);
	free(json);
	if (len < size)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
			   "spyre_ras_format: the text needs %zu bytes, the buffer has %zu", len + 1,
			   size);
}

static void ras_start(void)
{
	const char *file = secure_getenv("SPYRE_RAS_LOG");

	if (!file || !*file)
		return;
	if (!strcmp(file, "-"))
		ras_fd = STDERR_FILENO;
	else
		ras_fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (ras_fd < 0)
		spyre_log(SPYRE_LOG_WARN, "SPYRE_RAS_LOG=\"%s\": %s; there will be no records", file,
			  strerror(errno));
}

bool spyre_ras_enabled(void)
{
	pthread_once(&ras_once, ras_start);
	return ras_fd >= 0;
}

/* Adds the record to the events that <spyre/telemetry.h> delivers. */
static void log_event(const spyre_ras_record *record, int index, const char *line)
{
	spyre_device_properties properties = { .struct_size = sizeof(properties) };
	bool known = index >= 0 && !spyre_device_get_properties(index, &properties);

	spyre_event_log_ras(known ? &properties : NULL, record->code, line);
}

void spyre_ras_log(const spyre_ras_record *record, int index)
{
	struct spyre_error_state state;
	char line[RAS_LINE_BYTES];
	size_t len;

	/* Errors while writing a record must not change the text of the call it describes. */
	spyre_error_save(&state);
	if (!spyre_ras_format(record, line, sizeof(line) - 1)) {
		log_event(record, index, line);
		len = strlen(line);
		line[len++] = '\n';
		/* One write per line, so that lines of several threads do not mix. */
		if (spyre_ras_enabled() && write(ras_fd, line, len) < 0)
			spyre_log(SPYRE_LOG_WARN, "SPYRE_RAS_LOG: %s", strerror(errno));
	}
	spyre_error_restore(&state);
}

void spyre_ras_stream(const struct spyre_stream *stream, const char *what,
		      const struct spyre_context_fault *fault)
{
	spyre_ras_record record = {
		.struct_size = sizeof(record),
		.code = SPYRE_RAS_STREAM_IN_ERROR_STATE,
		.step = fault->command,
		.message = fault->text,
		.cb_name = what,
		.source = stream->id,
		.context = stream->context->number,
		.message_tag = fault->operation,
	};

	switch (fault->kind) {
	case SPYRE_FAULT_TIMEOUT:
		record.code = SPYRE_RAS_MESSAGE_TIMEOUT;
		record.syndrome = ETIME;
		break;
	case SPYRE_FAULT_ACCESS:
	case SPYRE_FAULT_ESCAPE:
		record.code = SPYRE_RAS_CONTROL_BLOCK_SOFT_FAIL;
		record.syndrome = EFAULT;
		break;
	case SPYRE_FAULT_COMPUTE:
		record.code = SPYRE_RAS_COMPUTE_HARDWARE_ERROR;
		record.syndrome = EIO;
		break;
	default:
		if (fault->status == SPYRE_ERROR_UNSUPPORTED)
			record.code = SPYRE_RAS_UNSUPPORTED_MESSAGE;
	}
	spyre_ras_log(&record, stream->context->index);
}

void spyre_ras_devices(const char *message)
{
	static atomic_flag seen = ATOMIC_FLAG_INIT;
	const spyre_ras_record record = {
		.struct_size = sizeof(record),
		.code = SPYRE_RAS_INCORRECT_SPYRE_DEVICES_VAR,
		.message = message,
	};

	if (!atomic_flag_test_and_set(&seen))
		spyre_ras_log(&record, -1);
}

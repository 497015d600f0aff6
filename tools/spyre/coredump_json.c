// SPDX-License-Identifier: MIT
/* Prints a coredump as one JSON object. */
#include <string.h>

#include <yyjson.h>

#include "coredump.h"

struct json {
	yyjson_mut_doc *doc;
	yyjson_mut_val *root;
};

static void add_text(struct json *j, yyjson_mut_val *to, const char *name, const uint8_t *text,
		     size_t size)
{
	yyjson_mut_obj_add_strcpy(j->doc, to, name, coredump_string(text, size).s);
}

static void add_num(struct json *j, yyjson_mut_val *to, const char *name, uint64_t value)
{
	yyjson_mut_obj_add_uint(j->doc, to, name, value);
}

static void add_fault(struct json *j, const struct coredump *dump)
{
	const struct drm_spyre_coredump_fault *f = &dump->fault;
	yyjson_mut_val *to;

	if (!dump->has_fault) {
		yyjson_mut_obj_add_null(j->doc, j->root, "fault");
		return;
	}
	to = yyjson_mut_obj_add_obj(j->doc, j->root, "fault");
	yyjson_mut_obj_add_str(j->doc, to, "name", coredump_fault_name(f->fault));
	add_num(j, to, "code", f->fault);
	yyjson_mut_obj_add_sint(j->doc, to, "error", f->error);
	add_text(j, to, "stop", f->stop_name, sizeof(f->stop_name));
	add_num(j, to, "stop_code", f->stop);
	add_num(j, to, "queue", f->queue);
	add_num(j, to, "job", f->job);
	add_num(j, to, "control_block", f->cb);
	add_num(j, to, "start_ns", f->start_ns);
	add_num(j, to, "ns", f->ns);
	add_num(j, to, "timeout_ns", f->timeout_ns);
	add_num(j, to, "priority", f->priority);
	add_num(j, to, "lx_bytes", f->lx_bytes);
}

static void add_state(struct json *j, const struct coredump *dump)
{
	const struct drm_spyre_context_info *c = &dump->context;
	yyjson_mut_val *to = yyjson_mut_obj_add_obj(j->doc, j->root, "process");
	char uuid[2 * sizeof(dump->card.uuid) + 1];
	size_t i;

	yyjson_mut_obj_add_sint(j->doc, to, "pid", dump->info.pid);
	add_text(j, to, "name", dump->info.comm, sizeof(dump->info.comm));
	add_text(j, j->root, "kernel", dump->info.release, sizeof(dump->info.release));
	add_num(j, j->root, "monotonic_ns", dump->info.monotonic_ns);
	add_num(j, j->root, "realtime_ns", dump->info.realtime_ns);

	to = yyjson_mut_obj_add_obj(j->doc, j->root, "context");
	add_num(j, to, "id", c->id);
	add_num(j, to, "generation", c->generation);
	add_num(j, to, "queues", c->num_queues);
	add_num(j, to, "memory_used", c->memory_used);
	add_num(j, to, "jobs", c->jobs);
	add_num(j, to, "errors", c->errors);
	add_num(j, to, "busy_ns", c->busy_ns);
	add_num(j, to, "cycles", c->cycles);
	add_num(j, to, "macs", c->macs);
	add_num(j, to, "bytes_read", c->bytes_read);
	add_num(j, to, "bytes_written", c->bytes_written);
	add_num(j, to, "preempted", c->preempted);

	to = yyjson_mut_obj_add_obj(j->doc, j->root, "card");
	for (i = 0; i < sizeof(dump->card.uuid); i++)
		snprintf(uuid + 2 * i, 3, "%02x", dump->card.uuid[i]);
	yyjson_mut_obj_add_strcpy(j->doc, to, "uuid", uuid);
	add_num(j, to, "index", dump->card.index);
	add_num(j, to, "vf", dump->card.vf);
	add_num(j, to, "cores", dump->card.num_cores);
	add_num(j, to, "generation", dump->card.generation);
	add_num(j, to, "memory_total", dump->memory.total);
	add_num(j, to, "memory_used", dump->memory.used);
	add_num(j, to, "jobs", dump->counters.jobs);
	add_num(j, to, "errors", dump->counters.errors);
	add_num(j, to, "busy_ns", dump->counters.busy_ns);
	add_num(j, to, "cycles", dump->counters.cycles);
}

static void add_operands(struct json *j, yyjson_mut_val *to, const struct coredump *dump,
			 uint32_t index)
{
	struct drm_spyre_coredump_operand op;
	struct coredump_section section;
	yyjson_mut_val *array, *one;
	size_t i;

	if (!coredump_find(dump, DRM_SPYRE_COREDUMP_OPERANDS, index, &section))
		return;
	array = yyjson_mut_obj_add_arr(j->doc, to, "operands");
	for (i = 0; i < COREDUMP_OPERANDS_MAX && coredump_element(&section, i, &op, sizeof(op));
	     i++) {
		one = yyjson_mut_arr_add_obj(j->doc, array);
		add_num(j, one, "address", op.address);
		add_num(j, one, "extent", op.extent);
		yyjson_mut_obj_add_bool(j->doc, one, "read",
					op.flags & DRM_SPYRE_COREDUMP_OPERAND_READ);
		yyjson_mut_obj_add_bool(j->doc, one, "write",
					op.flags & DRM_SPYRE_COREDUMP_OPERAND_WRITE);
	}
}

static void add_dma(struct json *j, yyjson_mut_val *to, const struct coredump *dump, uint32_t index)
{
	yyjson_mut_val *object, *array, *one;
	struct coredump_section section;
	struct drm_spyre_dma dma;
	unsigned int i;

	if (!coredump_find(dump, DRM_SPYRE_COREDUMP_DMA, index, &section) ||
	    !coredump_element(&section, 0, &dma, sizeof(dma)))
		return;
	object = yyjson_mut_obj_add_obj(j->doc, to, "dma");
	yyjson_mut_obj_add_str(j->doc, object, "direction",
			       dma.direction == DRM_SPYRE_DMA_H2D ? "h2d" : "d2h");
	add_num(j, object, "host_format", dma.host_format);
	add_num(j, object, "device_format", dma.device_format);
	add_num(j, object, "host_offset", dma.host_offset);
	array = yyjson_mut_obj_add_arr(j->doc, object, "dims");
	for (i = 0; i < dma.num_dims && i < DRM_SPYRE_DMA_MAX_DIMS; i++) {
		one = yyjson_mut_arr_add_obj(j->doc, array);
		add_num(j, one, "count", dma.dim[i].count);
		add_num(j, one, "host_stride", dma.dim[i].host_stride);
		if (dma.flags & DRM_SPYRE_DMA_BOX)
			add_num(j, one, "device_stride", dma.bound[0].coef[i]);
	}
	if (dma.flags & DRM_SPYRE_DMA_BOX)
		add_num(j, object, "device_offset", dma.bound[0].limit);
}

static void add_cb(struct json *j, yyjson_mut_val *array, const struct coredump *dump,
		   const struct coredump_section *section)
{
	struct drm_spyre_coredump_cb cb;
	yyjson_mut_val *to;

	if (!coredump_element(section, 0, &cb, sizeof(cb)))
		return;
	to = yyjson_mut_arr_add_obj(j->doc, array);
	add_num(j, to, "index", section->index);
	yyjson_mut_obj_add_str(j->doc, to, "type", coredump_cb_name(cb.type));
	yyjson_mut_obj_add_str(j->doc, to, "state", coredump_cb_state(dump, section->index));
	add_num(j, to, "dst", cb.dst);
	add_num(j, to, "src", cb.src);
	add_num(j, to, "size", cb.size);
	add_num(j, to, "pattern_size", cb.pattern_size);
	add_num(j, to, "program_bytes", cb.program_bytes);
	add_num(j, to, "cycles", cb.cycles);
	add_num(j, to, "bytes_read", cb.bytes_read);
	add_num(j, to, "bytes_written", cb.bytes_written);
	add_num(j, to, "macs", cb.macs);
	add_operands(j, to, dump, section->index);
	add_dma(j, to, dump, section->index);
}

static void add_queues(struct json *j, const struct coredump *dump)
{
	yyjson_mut_val *array = yyjson_mut_obj_add_arr(j->doc, j->root, "queues"), *one;
	struct drm_spyre_coredump_queue q;
	struct coredump_section section;
	size_t i;

	if (!coredump_find(dump, DRM_SPYRE_COREDUMP_QUEUES, 0, &section))
		return;
	for (i = 0; i < DRM_SPYRE_COREDUMP_QUEUES_MAX &&
	     coredump_element(&section, i, &q, sizeof(q)); i++) {
		one = yyjson_mut_arr_add_obj(j->doc, array);
		add_num(j, one, "context", q.context);
		add_num(j, one, "queue", q.queue);
		add_num(j, one, "priority", q.priority);
		yyjson_mut_obj_add_sint(j->doc, one, "error", q.error);
		add_num(j, one, "submitted", q.submitted);
		add_num(j, one, "completed", q.completed);
		add_num(j, one, "job", q.job);
		add_num(j, one, "control_block", q.cb);
		add_num(j, one, "since_ns", q.since_ns);
	}
}

char *coredump_json(const struct coredump *dump)
{
	struct json j = { .doc = yyjson_mut_doc_new(NULL) };
	struct coredump_section section;
	yyjson_mut_val *array;
	size_t at = 0;
	char *text;

	j.root = yyjson_mut_obj(j.doc);
	yyjson_mut_doc_set_root(j.doc, j.root);
	add_num(&j, j.root, "schema_version", 1);
	add_fault(&j, dump);
	add_state(&j, dump);
	array = yyjson_mut_obj_add_arr(j.doc, j.root, "control_blocks");
	while (coredump_next(dump, &at, &section))
		if (section.type == DRM_SPYRE_COREDUMP_CB)
			add_cb(&j, array, dump, &section);
	add_queues(&j, dump);
	if (*dump->truncated.s)
		yyjson_mut_obj_add_str(j.doc, j.root, "truncated", dump->truncated.s);
	else
		yyjson_mut_obj_add_null(j.doc, j.root, "truncated");
	text = yyjson_mut_write(j.doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
	yyjson_mut_doc_free(j.doc);
	return text;
}

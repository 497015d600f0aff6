// SPDX-License-Identifier: MIT
/* Prints a coredump as text and its fault as a RAS record. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coredump.h"

static const char *errno_name(int error)
{
	/* The cases are negative because a file may hold INT_MIN, which cannot be negated. */
	switch (error) {
	case -ETIME:
		return "ETIME";
	case -EFAULT:
		return "EFAULT";
	case -EIO:
		return "EIO";
	case -ECANCELED:
		return "ECANCELED";
	default:
		return "errno";
	}
}

static void print_fault(const struct coredump *dump, FILE *out)
{
	const struct drm_spyre_coredump_fault *f = &dump->fault;

	if (!dump->has_fault) {
		fputs("fault       missing from the file\n", out);
		return;
	}
	fprintf(out, "fault       %s, %s (%d)\n", coredump_fault_name(f->fault),
		errno_name(f->error), f->error);
	fprintf(out, "where       queue %u, job %" PRIu64 ", control block %u of %u\n", f->queue,
		(uint64_t)f->job, f->cb, f->num_cbs);
	fprintf(out, "stop        %s (%u)\n",
		coredump_string(f->stop_name, sizeof(f->stop_name)).s, f->stop);
	fprintf(out, "job         began %.6f s before it failed; limit %.3f s, priority %s, LX %u bytes per core\n",
		(double)(int64_t)(f->ns - f->start_ns) / 1e9, f->timeout_ns / 1e9,
		f->priority ? "high" : "low", f->lx_bytes);
}

static void print_when(const struct coredump *dump, FILE *out)
{
	const struct drm_spyre_coredump_info *info = &dump->info;
	time_t seconds = info->realtime_ns / 1000000000;
	char date[64] = "?";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &tm);
	fprintf(out, "made        %s, kernel %s, %.6f s after its start\n", date,
		coredump_string(info->release, sizeof(info->release)).s, info->monotonic_ns / 1e9);
	fprintf(out, "process     %d \"%s\"\n", info->pid,
		coredump_string(info->comm, sizeof(info->comm)).s);
}

static void print_state(const struct coredump *dump, FILE *out)
{
	const struct drm_spyre_context_info *c = &dump->context;
	const struct drm_spyre_card_info *card = &dump->card;
	size_t i;

	fprintf(out, "context     %" PRIu64 ", generation %" PRIu64 ", %u queues, %" PRIu64
		" bytes; %" PRIu64 " jobs, %" PRIu64 " failed, %" PRIu64 " cycles\n",
		(uint64_t)c->id, (uint64_t)c->generation, c->num_queues, (uint64_t)c->memory_used,
		(uint64_t)c->jobs, (uint64_t)c->errors, (uint64_t)c->cycles);
	fprintf(out, "card        %u", card->index);
	if (card->vf)
		fprintf(out, " VF %u", card->vf);
	fputs(", ", out);
	for (i = 0; i < sizeof(card->uuid); i++)
		fprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			card->uuid[i]);
	fprintf(out, "\n            %u cores, generation %" PRIu64 ", arithmetic %s\n",
		card->num_cores, (uint64_t)card->generation,
		coredump_string(card->unit, sizeof(card->unit)).s);
	fprintf(out, "memory      %" PRIu64 " of %" PRIu64 " bytes used\n",
		(uint64_t)dump->memory.used, (uint64_t)dump->memory.total);
	fprintf(out, "counters    %" PRIu64 " jobs, %" PRIu64 " failed, %" PRIu64
		" cycles, %.3f s busy, %u mW, %.1f degrees\n", (uint64_t)dump->counters.jobs,
		(uint64_t)dump->counters.errors, (uint64_t)dump->counters.cycles,
		dump->counters.busy_ns / 1e9, dump->counters.power_mw,
		dump->counters.temperature_mc / 1e3);
}

static void print_operands(const struct coredump *dump, uint32_t index, FILE *out)
{
	struct drm_spyre_coredump_operand op;
	struct coredump_section section;
	size_t i;

	if (!coredump_find(dump, DRM_SPYRE_COREDUMP_OPERANDS, index, &section))
		return;
	for (i = 0; i < COREDUMP_OPERANDS_MAX &&
		    coredump_element(&section, i, &op, sizeof(op)); i++)
		fprintf(out, "           operand %-3zu 0x%010" PRIx64 " %12" PRIu64 " bytes %s%s\n", i,
			(uint64_t)op.address, (uint64_t)op.extent,
			op.flags & DRM_SPYRE_COREDUMP_OPERAND_READ ? "r" : "-",
			op.flags & DRM_SPYRE_COREDUMP_OPERAND_WRITE ? "w" : "-");
}

static void print_dma(const struct coredump *dump, uint32_t index, FILE *out)
{
	struct coredump_section section;
	struct drm_spyre_dma dma;
	unsigned int i, dims;

	if (!coredump_find(dump, DRM_SPYRE_COREDUMP_DMA, index, &section) ||
	    !coredump_element(&section, 0, &dma, sizeof(dma)))
		return;
	dims = dma.num_dims < DRM_SPYRE_DMA_MAX_DIMS ? dma.num_dims : DRM_SPYRE_DMA_MAX_DIMS;
	fprintf(out, "           %s, host format %u, device format %u, host offset %" PRIu64
		", %u bounds\n", dma.direction == DRM_SPYRE_DMA_H2D ? "host to device" :
		"device to host", dma.host_format, dma.device_format, (uint64_t)dma.host_offset,
		dma.num_bounds);
	for (i = 0; i < dims; i++)
		fprintf(out, "           dim %u: %u steps of %" PRIu64 " bytes\n", i,
			dma.dim[i].count, (uint64_t)dma.dim[i].host_stride);
	if (!(dma.flags & DRM_SPYRE_DMA_BOX))
		return;
	fprintf(out, "           box, device offset %" PRIu64 ", device strides",
		(uint64_t)dma.bound[0].limit);
	for (i = 0; i < dims; i++)
		fprintf(out, " %" PRIu64, (uint64_t)dma.bound[0].coef[i]);
	fprintf(out, "\n");
}

static void print_cb(const struct coredump *dump, const struct coredump_section *section,
		     FILE *out)
{
	struct drm_spyre_coredump_cb cb;

	if (!coredump_element(section, 0, &cb, sizeof(cb)))
		return;
	fprintf(out, " %s %3u %-8s %s", dump->has_fault && section->index == dump->fault.cb ? ">" :
		" ", section->index, coredump_cb_state(dump, section->index),
		coredump_cb_name(cb.type));
	if (cb.dst)
		fprintf(out, " dst 0x%" PRIx64, (uint64_t)cb.dst);
	if (cb.src)
		fprintf(out, " src 0x%" PRIx64, (uint64_t)cb.src);
	if (cb.size)
		fprintf(out, " %" PRIu64 " bytes", (uint64_t)cb.size);
	if (cb.pattern_size)
		fprintf(out, " pattern 0x%" PRIx64 ":%016" PRIx64 " of %u", (uint64_t)cb.pattern[1],
			(uint64_t)cb.pattern[0], cb.pattern_size);
	if (cb.program_bytes)
		fprintf(out, " program of %" PRIu64 " bytes, %u operands",
			(uint64_t)cb.program_bytes, cb.num_operands);
	fprintf(out, "; cost %" PRIu64 " cycles\n", (uint64_t)cb.cycles);
	print_operands(dump, section->index, out);
	print_dma(dump, section->index, out);
}

static void print_queues(const struct coredump *dump, FILE *out)
{
	struct drm_spyre_coredump_queue q;
	struct coredump_section section;
	size_t i;

	if (!coredump_find(dump, DRM_SPYRE_COREDUMP_QUEUES, 0, &section))
		return;
	fputs("queues of the card\n", out);
	for (i = 0; i < DRM_SPYRE_COREDUMP_QUEUES_MAX &&
	     coredump_element(&section, i, &q, sizeof(q)); i++) {
		fprintf(out, "   context %" PRIu64 " queue %u %s: %" PRIu64 " taken, %" PRIu64
			" ended, error %d", (uint64_t)q.context, q.queue,
			q.priority ? "high" : "low", (uint64_t)q.submitted, (uint64_t)q.completed,
			q.error);
		if (q.job)
			fprintf(out, ", runs job %" PRIu64 " control block %u", (uint64_t)q.job,
				q.cb);
		fputc('\n', out);
	}
	if (section.whole > section.bytes)
		fprintf(out, "   and %" PRIu64 " more\n",
			(section.whole - section.bytes) / sizeof(q));
}

void coredump_print(const struct coredump *dump, FILE *out)
{
	struct coredump_section section;
	size_t at = 0;

	print_fault(dump, out);
	print_when(dump, out);
	print_state(dump, out);
	fputs("control blocks\n", out);
	while (coredump_next(dump, &at, &section))
		if (section.type == DRM_SPYRE_COREDUMP_CB)
			print_cb(dump, &section, out);
	for (at = 0; coredump_next(dump, &at, &section);)
		if (section.type == DRM_SPYRE_COREDUMP_PROGRAM)
			coredump_print_program(&section, out);
	print_queues(dump, out);
	if (*dump->truncated.s)
		fprintf(out, "The file is truncated: %s.\n", dump->truncated.s);
}

static spyre_ras_code ras_code(uint32_t fault)
{
	switch (fault) {
	case DRM_SPYRE_FAULT_TIMEOUT:
		return SPYRE_RAS_MESSAGE_TIMEOUT;
	case DRM_SPYRE_FAULT_ACCESS:
	case DRM_SPYRE_FAULT_ESCAPE:
		return SPYRE_RAS_CONTROL_BLOCK_SOFT_FAIL;
	case DRM_SPYRE_FAULT_COMPUTE:
		return SPYRE_RAS_COMPUTE_HARDWARE_ERROR;
	default:
		return SPYRE_RAS_STREAM_IN_ERROR_STATE;
	}
}

/* Sets the address of the control block's first operand and its access mode. */
static void ras_address(const struct coredump *dump, const struct drm_spyre_coredump_cb *cb,
			spyre_ras_record *record)
{
	struct drm_spyre_coredump_operand op;
	struct coredump_section section;

	record->address = cb->dst ? cb->dst : cb->src;
	record->mode = cb->dst != 0;
	if (cb->type == DRM_SPYRE_CB_EXEC &&
	    coredump_find(dump, DRM_SPYRE_COREDUMP_OPERANDS, dump->fault.cb, &section) &&
	    coredump_element(&section, 0, &op, sizeof(op))) {
		record->address = op.address;
		record->mode = op.flags & DRM_SPYRE_COREDUMP_OPERAND_WRITE ? 1 : 0;
	}
}

char *coredump_ras(const struct coredump *dump)
{
	const struct drm_spyre_coredump_fault *f = &dump->fault;
	spyre_ras_record record = {
		.struct_size = sizeof(record),
		.code = ras_code(f->fault),
		.step = f->cb,
		.source = f->queue,
		.syndrome = f->stop,
		.context = dump->context.id,
		.message_tag = f->job,
		.vf = dump->card.vf,
	};
	struct drm_spyre_coredump_cb cb = { 0 };
	struct coredump_section section;
	char message[256], *text;

	if (coredump_find(dump, DRM_SPYRE_COREDUMP_CB, f->cb, &section) &&
	    coredump_element(&section, 0, &cb, sizeof(cb))) {
		record.cb_name = coredump_cb_name(cb.type);
		record.message_type = cb.type;
		ras_address(dump, &cb, &record);
	}
	snprintf(message, sizeof(message), "card %u: %s fault, %s: process %d \"%s\", queue %u, job %"
		 PRIu64 ", control block %u of %u", dump->card.index,
		 coredump_fault_name(f->fault), errno_name(f->error), dump->info.pid,
		 coredump_string(dump->info.comm, sizeof(dump->info.comm)).s, f->queue,
		 (uint64_t)f->job, f->cb, f->num_cbs);
	record.message = message;
	text = malloc(4096);
	if (text && spyre_ras_format(&record, text, 4096)) {
		free(text);
		text = NULL;
	}
	return text;
}

// SPDX-License-Identifier: MIT
/*
 * From a submission to a job: every command is checked and its device
 * addresses become host pointers before anything is queued, so that the
 * workers need no check of their own.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/backend/embedded.h"

struct job_size {
	size_t commands;
	size_t descs;
	size_t operands;
	size_t total;
};

static struct job_size job_measure(const struct spyre_submission *s)
{
	struct job_size size = { .commands = sizeof(struct embedded_job) };
	size_t descs = 0, operands = 0;

	for (uint32_t i = 0; i < s->num_commands; i++) {
		if (s->commands[i].type == SPYRE_COMMAND_DMA)
			descs++;
		else if (s->commands[i].type == SPYRE_COMMAND_EXEC)
			operands += s->commands[i].exec.num_args;
	}
	size.descs = size.commands + s->num_commands * sizeof(struct embedded_command);
	size.operands = size.descs + descs * sizeof(struct spyre_dma_desc);
	size.total = size.operands + operands * sizeof(uint8_t *) +
		     s->num_waits * sizeof(struct embedded_wait);
	return size;
}

static spyre_status no_address(const char *what, uint64_t va, uint64_t bytes)
{
	return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
			   "%s: %" PRIu64 " bytes at 0x%" PRIx64
			   " are not within one mapped range of the context", what, bytes, va);
}

/*
 * Finds the host address of @bytes at @va, NULL if they are not within one mapped range. @last is
 * the range of the command's previous address, or NULL: most commands use one range. Populates
 * the bytes if the command touches at least half of them (@touched): scattered parts are left to
 * page faults, since their span may be the whole memory.
 */
static inline uint8_t *resolve_warm(struct embedded_card *card, struct embedded_map **last,
				    uint64_t va, uint64_t bytes, uint64_t touched, bool write)
{
	if (!*last || !embedded_map_holds(*last, va, bytes))
		*last = embedded_find_map(card, va, bytes);
	if (!*last)
		return NULL;
	if (bytes && bytes / 2 <= touched)
		embedded_warm(card, *last, va, bytes, write);
	return embedded_host(card, va);
}

static spyre_status check_exec(struct embedded_card *card, struct embedded_lx *lx,
			       const struct spyre_command *in, struct embedded_command *out,
			       uint8_t **operand)
{
	struct embedded_program *program = (struct embedded_program *)in->exec.program;
	const struct spyre_prog_header *header = program->program.header;
	const struct spyre_counters *cost = &program->program.cost;
	struct embedded_map *last = NULL;

	if (in->exec.num_args != header->num_operands)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "the program has %u operands, the launch gives %u addresses",
				   header->num_operands, in->exec.num_args);
	for (uint32_t i = 0; i < in->exec.num_args; i++) {
		const struct spyre_prog_operand *o = &program->program.operands[i];
		uint64_t va = in->exec.args[i], bytes = o->extent;

		if (va % SPYRE_STICK_BYTES)
			return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
					   "operand %u at 0x%" PRIx64 " is not 128-byte aligned", i,
					   va);
		operand[i] = resolve_warm(card, &last, va, bytes,
					  cost->bytes_read + cost->bytes_written,
					  o->flags & SPYRE_OPERAND_WRITE);
		if (!operand[i])
			return no_address("program operand", va, bytes);
	}
	if (header->lx_bytes)
		embedded_warm_lx(lx, header);
	out->exec.operand = operand;
	out->exec.program = program;
	out->cost = *cost;
	return SPYRE_SUCCESS;
}

static spyre_status check_dma(struct embedded_card *card, const struct spyre_command *in,
			      struct embedded_command *out, struct spyre_dma_desc *desc)
{
	struct embedded_map *last = NULL;
	uint64_t bytes;
	enum spyre_stop stop;

	*desc = *in->dma.desc;
	stop = spyre_dma_check(desc, &bytes, &out->cost);
	if (!stop)
		stop = spyre_dma_check_host(desc, in->dma.host_bytes);
	if (stop)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "DMA descriptor refused: %s",
				   spyre_stop_name(stop));
	if (in->dma.device % SPYRE_STICK_BYTES)
		return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
				   "DMA address 0x%" PRIx64 " is not 128-byte aligned",
				   in->dma.device);
	out->dma.device = resolve_warm(card, &last, in->dma.device, bytes,
				       out->cost.bytes_read + out->cost.bytes_written,
				       desc->direction == SPYRE_DMA_H2D);
	if (!out->dma.device)
		return no_address("DMA", in->dma.device, bytes);
	out->dma.desc = desc;
	out->dma.host = in->dma.host;
	out->dma.host_bytes = in->dma.host_bytes;
	return SPYRE_SUCCESS;
}

static spyre_status check_copy(struct embedded_card *card, const struct spyre_command *in,
			       struct embedded_command *out)
{
	struct embedded_map *last = NULL;
	uint64_t bytes = in->copy.bytes;

	out->copy.bytes = bytes;
	out->copy.dst = resolve_warm(card, &last, in->copy.dst, bytes, bytes, true);
	out->copy.src = resolve_warm(card, &last, in->copy.src, bytes, bytes, false);
	if (!out->copy.dst)
		return no_address("copy target", in->copy.dst, in->copy.bytes);
	if (!out->copy.src)
		return no_address("copy source", in->copy.src, in->copy.bytes);
	spyre_cost_linear(in->copy.bytes, in->copy.bytes, &out->cost);
	return SPYRE_SUCCESS;
}

static spyre_status check_fill(struct embedded_card *card, const struct spyre_command *in,
			       struct embedded_command *out)
{
	uint32_t width = in->fill.pattern_bytes;
	struct embedded_map *last = NULL;

	if (!width || width > 16 || (width & (width - 1)) || in->fill.bytes % width)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "a fill of %" PRIu64 " bytes with a pattern of %u bytes: patterns have "
				   "1, 2, 4, 8 or 16, and a whole number of them", in->fill.bytes, width);
	out->fill.bytes = in->fill.bytes;
	out->fill.pattern_bytes = width;
	memcpy(out->fill.pattern, in->fill.pattern, width);
	out->fill.dst = resolve_warm(card, &last, in->fill.dst, in->fill.bytes,
				     in->fill.bytes, true);
	if (!out->fill.dst)
		return no_address("fill", in->fill.dst, in->fill.bytes);
	spyre_cost_linear(0, in->fill.bytes, &out->cost);
	return SPYRE_SUCCESS;
}

/* Resolves the far ends of peer copies, under the locks of their cards only. */
static spyre_status resolve_peers(const struct spyre_submission *s, struct embedded_job *job)
{
	for (uint32_t i = 0; i < s->num_commands; i++) {
		if (s->commands[i].type != SPYRE_COMMAND_PEER)
			continue;
		job->has_peers = true;
		TRY(embedded_peer_resolve(&s->commands[i], &job->commands[i]));
	}
	return SPYRE_SUCCESS;
}

static spyre_status check_commands(struct embedded_card *card, const struct spyre_submission *s,
				   struct embedded_job *job, const struct job_size *size)
{
	struct spyre_dma_desc *desc = (void *)((char *)job + size->descs);
	uint8_t **operand = (void *)((char *)job + size->operands);
	spyre_status status = SPYRE_SUCCESS;

	for (uint32_t i = 0; i < s->num_commands && !status; i++) {
		const struct spyre_command *in = &s->commands[i];
		struct embedded_command *out = &job->commands[i];

		out->type = in->type;
		switch (in->type) {
		case SPYRE_COMMAND_EXEC:
			status = check_exec(card, embedded_queue_lx(job->queue), in, out, operand);
			operand += in->exec.num_args;
			break;
		case SPYRE_COMMAND_DMA:
			status = check_dma(card, in, out, desc++);
			break;
		case SPYRE_COMMAND_COPY:
			status = check_copy(card, in, out);
			break;
		case SPYRE_COMMAND_FILL:
			status = check_fill(card, in, out);
			break;
		case SPYRE_COMMAND_PEER:
			status = embedded_peer_check(card, in, out);
			break;
		case SPYRE_COMMAND_TIMESTAMP:
			out->cost = (struct spyre_counters){ 0 };
			break;
		default:
			status = spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "command type %d",
					     in->type);
		}
	}
	job->waits = (struct embedded_wait *)operand;
	return status;
}

/* True if the job takes a few microseconds, so that it may run inline. */
static bool job_is_light(const struct embedded_job *job)
{
	uint64_t work = 0, bytes = 0;

	for (uint32_t i = 0; i < job->num_commands; i++) {
		const struct embedded_command *c = &job->commands[i];

		if (c->type == SPYRE_COMMAND_EXEC)
			work += c->exec.program->program.work;
		else
			bytes += c->cost.bytes_read + c->cost.bytes_written;
		if (work > EMBEDDED_LIGHT_WORK || bytes > EMBEDDED_LIGHT_BYTES)
			return false;
	}
	return !job->needs_lx && job->num_commands <= EMBEDDED_LIGHT_WORK;
}

spyre_status embedded_job_create(struct embedded_queue *queue, const struct spyre_submission *s,
				 struct embedded_job **out)
{
	struct embedded_card *card = (struct embedded_card *)queue->base.card;
	struct job_size size = job_measure(s);
	struct embedded_job *job;
	spyre_status status;

	if (!s->num_commands || s->num_commands > SPYRE_QUEUE_RESULTS ||
	    s->first_result > SPYRE_QUEUE_RESULTS - s->num_commands)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%u commands with results from %u on: the ring has %u",
				   s->num_commands, s->first_result, SPYRE_QUEUE_RESULTS);
	job = malloc(size.total);
	if (!job)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for %zu bytes of a submission of %u commands",
				   (size_t)size.total, s->num_commands);
	job->queue = queue;
	job->point = s->point;
	job->first_result = s->first_result;
	job->num_commands = s->num_commands;
	job->num_waits = s->num_waits;
	job->pending_waits = 0;
	job->needs_lx = false;
	job->has_peers = false;
	job->has_watches = false;
	atomic_init(&job->stop, 0);
	job->epoch = atomic_load(&((struct embedded_card *)queue->base.card)->epoch);

	status = resolve_peers(s, job);
	if (!status) {
		pthread_rwlock_rdlock(&card->maps_lock);
		status = check_commands(card, s, job, &size);
		pthread_rwlock_unlock(&card->maps_lock);
	}
	if (status) {
		free(job);
		return status;
	}
	/* Nothing fails from here on, so references need no undoing. */
	for (uint32_t i = 0; i < job->num_commands; i++) {
		struct embedded_command *command = &job->commands[i];

		if (command->type != SPYRE_COMMAND_EXEC)
			continue;
		atomic_fetch_add(&command->exec.program->refs, 1);
		if (command->exec.program->program.header->lx_bytes)
			job->needs_lx = true;
	}
	job->light = job_is_light(job);
	*out = job;
	return SPYRE_SUCCESS;
}

void embedded_job_free(struct embedded_job *job)
{
	for (uint32_t i = 0; i < job->num_commands; i++)
		if (job->commands[i].type == SPYRE_COMMAND_EXEC)
			embedded_program_put(job->commands[i].exec.program);
	for (uint32_t i = 0; job->has_watches && i < job->num_waits; i++)
		embedded_timeline_put(job->waits[i].timeline);
	free(job);
}

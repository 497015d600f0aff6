/* SPDX-License-Identifier: MIT */
/*
 * Builds a program image. The operand table's extents and access flags grow
 * with every view, by the rule that the verifier applies. Internal.
 */
#ifndef SPYRE_SDSC_ENCODE_H
#define SPYRE_SDSC_ENCODE_H

#include "libspyre/sdsc/ir/bundle.h"

struct encoder {
	const char *file;		/* of the current SDSC, for errors */
	uint32_t num_operands;
	struct spyre_prog_operand operand[SPYRE_MAX_OPERANDS];
	struct spyre_bundle_operand kind[SPYRE_MAX_OPERANDS];
	struct spyre_prog_step *steps;
	size_t num_steps, capacity_steps;
	struct spyre_prog_stream *streams;
	size_t num_streams, capacity_streams;
	uint8_t *instrs;
	size_t instr_bytes, capacity_instrs;
	uint32_t num_cores;
	uint32_t lx_bytes;
	uint32_t lx_kept;		/* leading bytes of LX that live beyond the program */
	/* GATHER and SCATTER: end of the table in its operand, 0: its rows are set at launch. */
	uint64_t table_end;
	uint32_t table_rows;		/* their rows if the file states them, else 0 */
	uint32_t depth;			/* of open loops */
	uint32_t iters[SPYRE_MAX_LOOPS];
};

void encoder_fini(struct encoder *e);
/* Allocates memory for an image of @bytes bytes, which then grows only if it has more. */
spyre_status encoder_expect(struct encoder *e, size_t bytes);

/* Index of the operand of an argument or of the pool, added on first use. */
spyre_status encoder_operand(struct encoder *e, enum spyre_operand_kind kind, uint32_t arg,
			     uint16_t *index);
spyre_status encoder_loop(struct encoder *e, uint32_t count);
spyre_status encoder_end(struct encoder *e);
/* Phases hold streams in ascending core order, streams hold instructions. */
spyre_status encoder_phase(struct encoder *e);
spyre_status encoder_stream(struct encoder *e, uint32_t core);
spyre_status encoder_instr(struct encoder *e, const struct spyre_instr *in,
			   const struct spyre_view *views);
/* The part of lx_kept that the program uses. */
uint32_t encoder_lx_kept(const struct encoder *e);
spyre_status encoder_finish(struct encoder *e, void **image, size_t *bytes);

#endif /* SPYRE_SDSC_ENCODE_H */

// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tables of the SFU's functions of one DL16 number. The unit itself computes their
 * codes, so a result has the same bits whether it was looked up or computed.
 */
#include "table.h"

#define BETA_1 0x3f800000u		/* 1.0f */
#define THRESHOLD_20 0x41a00000u	/* 20.0f */

typedef u16 code_mem __attribute__((aligned(1), may_alias));

/* Functions that take longer than a look-up; SPYRE_TABLES for all others. */
static u32 table_index(const struct spyre_sfu_run *run)
{
	switch (run->func) {
	case SPYRE_FUNC_EXP:
		return 0;
	case SPYRE_FUNC_LOG:
		return 1;
	case SPYRE_FUNC_SQRT:
		return 2;
	case SPYRE_FUNC_RSQRT:
		return 3;
	case SPYRE_FUNC_RECIPROCAL:
		return 4;
	case SPYRE_FUNC_TANH:
		return 5;
	case SPYRE_FUNC_SIGMOID:
		return 6;
	case SPYRE_FUNC_SILU:
		return 7;
	case SPYRE_FUNC_GELU:
		return 8;
	case SPYRE_FUNC_MISH:
		return 9;
	case SPYRE_FUNC_SIN:
		return 10;
	case SPYRE_FUNC_COS:
		return 11;
	case SPYRE_FUNC_ERF:
		return 12;
	case SPYRE_FUNC_SOFTPLUS:
		/* PyTorch's defaults; a table holds the results for one pair of immediates. */
		return run->imm[0] == BETA_1 && run->imm[1] == THRESHOLD_20 ? 13 : SPYRE_TABLES;
	default:
		return SPYRE_TABLES;
	}
}

struct spyre_table *spyre_table_of(struct spyre_host *host, const struct spyre_sfu_run *run)
{
	struct spyre_table *tables = host->tables;
	u32 i;

	if (!tables || run->v[0].format != SPYRE_FMT_SEN169_FP16 ||
	    run->v[1].format != SPYRE_FMT_SEN169_FP16 || run->v[1].splat)
		return NULL;
	i = table_index(run);
	return i < SPYRE_TABLES ? &tables[i] : NULL;
}

bool spyre_table_ready(const struct spyre_table *table)
{
	return __atomic_load_n(&table->filled, __ATOMIC_ACQUIRE) == SPYRE_TABLE_BLOCKS;
}

/* Writes the inputs to the block, and computes the results in place. */
static void fill_block(const struct spyre_core *core, struct spyre_table *table,
		       const struct spyre_sfu_run *run, u32 block)
{
	u16 *code = &table->code[block * SPYRE_TABLE_BLOCK];
	const struct spyre_span span = { .p = (u8 *)code, .format = SPYRE_FMT_SEN169_FP16 };
	const struct spyre_sfu_run fill = {
		.func = run->func,
		.lanes = SPYRE_TABLE_BLOCK,
		.points = 1,
		.imm = { run->imm[0], run->imm[1] },
		.v = { span, span },
	};
	u32 i;

	for (i = 0; i < SPYRE_TABLE_BLOCK; i++)
		code[i] = spyre_le16(block * SPYRE_TABLE_BLOCK + i);
	core->unit->sfu(&fill);
}

bool spyre_table_fill(struct spyre_core *core, struct spyre_table *table,
		      const struct spyre_sfu_run *run, u64 elements, u64 cost)
{
	u64 blocks = elements / SPYRE_TABLE_BLOCK;
	u32 block;

	while (blocks-- &&
	       __atomic_load_n(&table->claimed, __ATOMIC_RELAXED) < SPYRE_TABLE_BLOCKS) {
		/* Nothing may come between claim and completion that could stop. */
		if (!spyre_section_enter(&core->section, SPYRE_TABLE_BLOCK * cost +
					 spyre_cost_ns(core, SPYRE_CALL_NS)))
			return false;
		block = __atomic_fetch_add(&table->claimed, 1, __ATOMIC_RELAXED);
		if (block >= SPYRE_TABLE_BLOCKS)
			break;
		fill_block(core, table, run, block);
		__atomic_fetch_add(&table->filled, 1, __ATOMIC_RELEASE);
	}
	return true;
}

/* All loads of a group come before its stores, so that they do not wait for each other. */
static void look_up(const u16 *code, u8 *to, const u8 *from, u32 n)
{
	const code_mem *in = (const code_mem *)from;
	code_mem *out = (code_mem *)to;
	u32 i;

	for (i = 0; i + 4 <= n; i += 4) {
		u16 a = code[spyre_le16(in[i])], b = code[spyre_le16(in[i + 1])];
		u16 c = code[spyre_le16(in[i + 2])], d = code[spyre_le16(in[i + 3])];

		out[i] = a;
		out[i + 1] = b;
		out[i + 2] = c;
		out[i + 3] = d;
	}
	for (; i < n; i++)
		out[i] = code[spyre_le16(in[i])];
}

void spyre_table_look_up(const struct spyre_table *table, const struct spyre_sfu_run *run)
{
	u32 point;

	for (point = 0; point < run->points; point++)
		look_up(table->code, run->v[0].p + point * run->v[0].stride,
			run->v[1].p + point * run->v[1].stride, run->lanes);
}

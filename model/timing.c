// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Modelled time, power and temperature, in integer arithmetic only; docs/timing.md
 * has the figures. Modelled time never delays any work.
 */
#include "peer.h"
#include "verify.h"

#define PT_MACS_PER_CYCLE 1024ull	/* 16-bit operands; see pt_rate() */
#define PT_FULL_ROWS 64u		/* eight passes of eight rows; fewer waste the array */
#define SFU_STICKS_PER_CYCLE 2ull	/* one per corelet */
#define RING_BYTES_PER_CYCLE 128ull	/* per direction; LPDDR5 is reached over it */
#define LX_BYTES_PER_CYCLE 256ull	/* per direction, both corelets */
#define ISSUE_CYCLES 16ull		/* to decode and start an instruction */
#define BARRIER_CYCLES 64ull		/* plus one ring hop per core */
#define PCIE_BYTES_PER_S 63000000000ull
#define PEER_CYCLES 1500ull		/* 1 us to start a copy between two cards of a switch */
#define PEER_HOST_CYCLES 4500ull	/* the same through the host: two transfers and a signal */

/*
 * LPDDR5, in bytes per cycle of 1.5 GHz: 100 one way (150 GB/s), 70 where reads and
 * writes alternate (105 GB/s), so each byte of the smaller direction costs 6/700 of
 * a cycle more. Some kinds of work have their own published rate; their bytes are
 * weighted so that the sum gives that rate.
 */
#define LPDDR_ONE_WAY 150u		/* GB/s */
#define LPDDR_MIXED 105u
#define LPDDR_OUTER_REDUCE 113u
#define LPDDR_BROADCAST 118u
#define LPDDR_RESTICKIFY 116u
#define LPDDR_CYCLES(read, written, less) ((7 * ((read) + (written)) + 6 * (less)) / 700)

static u64 div_up(u64 a, u64 b)
{
	return a / b + (a % b != 0);
}

static u64 larger(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Indices that a view of them supplies per execution. */
static u64 indices(const struct spyre_instr *in, u32 index)
{
	const struct spyre_view *view = spyre_instr_views(in) + index;
	u64 n = 1;
	u32 d;

	for (d = 0; d < in->num_dims; d++)
		if (view->stride[d])
			n *= in->count[d];
	return n;
}

/* Sticks of the indirect view: it moves along the dims of its own and of the indices. */
static u64 indirect_sticks(const struct spyre_instr *in, u32 index, u64 sticks)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 d, i;

	for (d = 0; d < in->num_dims; d++) {
		bool moves = !spyre_dim_indirect(in, index, d) && view[index].stride[d];

		for (i = 2; i < in->num_views; i++)
			moves |= view[i].stride[d] != 0;
		if (moves)
			sticks *= in->count[d];
	}
	return sticks;
}

/* Bytes that a view moves per execution, in sticks; repeated points cost once. */
static u64 view_traffic(const struct spyre_instr *in, u32 index)
{
	const struct spyre_view *view = spyre_instr_views(in) + index;
	u64 sticks = div_up(spyre_view_bytes(in, view, index), SPYRE_STICK_BYTES);
	u32 d;

	if (index == spyre_indirect_view(in))
		return indirect_sticks(in, index, sticks) * SPYRE_STICK_BYTES;
	/* Indices are loaded ahead, a stick of them at a time. */
	if (index >= 2 && spyre_indirect_view(in) < 2)
		return div_up(indices(in, index) * 4, SPYRE_STICK_BYTES) * SPYRE_STICK_BYTES;
	for (d = 0; d < in->num_dims; d++)
		if (view->stride[d])
			sticks *= spyre_view_count(in, view, index, d);
	return sticks * SPYRE_STICK_BYTES;
}

/* Multiply-adds per cycle; the wider of the two inputs determines the rate. */
static u64 pt_rate(const struct spyre_instr *in)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u64 widest = larger(spyre_fmt_bytes(view[1].format), spyre_fmt_bytes(view[2].format));

	switch (widest) {
	case 0:			/* two of 4 bits */
		return PT_MACS_PER_CYCLE * 4;
	case 1:
		return PT_MACS_PER_CYCLE * 2;
	case 2:
		return PT_MACS_PER_CYCLE;
	default:
		return PT_MACS_PER_CYCLE / 4;
	}
}

/* Beats of the SFU for this many points. */
static u64 sfu_beats(const struct spyre_instr *in, u64 points)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u32 lanes = 64, i;

	for (i = 1; i < in->num_views; i++)
		if (spyre_fmt_bytes(view[i].format) == 4)
			lanes = 32;
	return points * div_up(in->lanes, lanes);
}

/* sqrt(x), rounded down. */
static u64 root(u64 x)
{
	u64 r = 0, bit;

	for (bit = 1ull << 31; bit; bit >>= 1)
		if ((r | bit) * (r | bit) <= x)
			r |= bit;
	return r;
}

/* The array is filled row by row: few rows use sqrt(rows / 64) of it. */
static u64 pt_cycles(const struct spyre_instr *in, u64 macs)
{
	u64 cycles = div_up(macs, pt_rate(in));
	u64 rows = in->count[3];

	if (rows < PT_FULL_ROWS)
		cycles = cycles * 1024 / root(rows * (1024 * 1024 / PT_FULL_ROWS));
	return cycles;
}

/* Cycles of the executing unit itself. */
static u64 unit_cycles(const struct spyre_instr *in, u64 points)
{
	u64 beats = sfu_beats(in, points);
	u64 addresses = 0;
	u32 i;

	switch (in->opcode) {
	case SPYRE_OP_GATHER:
	case SPYRE_OP_SCATTER:
		for (i = 2; i < in->num_views; i++)
			addresses += indices(in, i);
		return addresses;
	case SPYRE_OP_PT:
		return pt_cycles(in, points * in->lanes);
	case SPYRE_OP_RESTICK:
		/* A tile is read and written by rows. */
		return points / in->lanes * 2;
	case SPYRE_OP_MOVE:
		return 0;
	case SPYRE_OP_TOPK:
		return div_up(beats * spyre_topk_passes(in), SFU_STICKS_PER_CYCLE);
	default:
		return div_up(beats * spyre_func_beats(in->func), SFU_STICKS_PER_CYCLE);
	}
}

/* The share of LPDDR5's one-way rate that a byte of this instruction uses, as a fraction. */
static void lpddr_weight(const struct spyre_instr *in, u64 read, u64 written, u64 *num, u64 *den)
{
	*num = LPDDR_ONE_WAY;
	*den = LPDDR_ONE_WAY;
	if (in->opcode == SPYRE_OP_RESTICK) {
		*num = LPDDR_MIXED;
		*den = LPDDR_RESTICKIFY;
	} else if (in->opcode == SPYRE_OP_REDUCE && !(in->flags & SPYRE_INSTR_REDUCE_LANES)) {
		*den = LPDDR_OUTER_REDUCE;
	} else if (in->opcode == SPYRE_OP_SFU || in->opcode == SPYRE_OP_INT ||
		   in->opcode == SPYRE_OP_MOVE) {
		/* The output consists mostly of copies of the input. */
		if (read && read < written / 4)
			*den = LPDDR_BROADCAST;
	}
}

/* The engine that executes an instruction. */
static enum spyre_engine_kind engine_of(const struct spyre_instr *in)
{
	switch (in->opcode) {
	case SPYRE_OP_PT:
		return SPYRE_ENGINE_PT;
	case SPYRE_OP_RESTICK:
	case SPYRE_OP_GATHER:
	case SPYRE_OP_SCATTER:
	case SPYRE_OP_MOVE:
		return SPYRE_ENGINE_DMA;
	default:
		return SPYRE_ENGINE_SFU;
	}
}

void spyre_cost_instr(const struct spyre_instr *in, struct spyre_instr_cost *cost)
{
	const struct spyre_view *view = spyre_instr_views(in);
	u64 points = 1, num, den;
	u32 i;

	memset(cost, 0, sizeof(*cost));
	for (i = 0; i < in->num_dims; i++)
		points *= in->count[i];
	for (i = 0; i < in->num_views; i++) {
		u64 bytes = view_traffic(in, i);
		u32 access = spyre_view_access(in, i);
		u64 read = access & SPYRE_OPERAND_READ ? bytes : 0;
		u64 written = access & SPYRE_OPERAND_WRITE ? bytes : 0;

		if (view[i].operand >= SPYRE_MAX_OPERANDS) {
			cost->lx_bytes_read += read;
			cost->lx_bytes_written += written;
		} else {
			cost->bytes_read += read;
			cost->bytes_written += written;
		}
	}
	if (in->opcode == SPYRE_OP_PT)
		cost->macs = points * in->lanes;
	else if (in->opcode != SPYRE_OP_MOVE && in->opcode != SPYRE_OP_RESTICK &&
		 spyre_indirect_view(in) >= 2)
		cost->elements = points * in->lanes;
	lpddr_weight(in, cost->bytes_read, cost->bytes_written, &num, &den);
	cost->lpddr_read = cost->bytes_read * num / den;
	cost->lpddr_written = cost->bytes_written * num / den;
	/* Load, compute and store overlap; the slowest determines the cycles. */
	cost->busy[engine_of(in)] = unit_cycles(in, points);
	cost->busy[SPYRE_ENGINE_LX] = larger(cost->lx_bytes_read, cost->lx_bytes_written) /
				      LX_BYTES_PER_CYCLE;
	cost->busy[SPYRE_ENGINE_RING] = larger(cost->bytes_read, cost->bytes_written) /
					RING_BYTES_PER_CYCLE;
	for (i = 0; i < SPYRE_ENGINES; i++)
		cost->cycles = larger(cost->cycles, cost->busy[i]);
	cost->cycles += ISSUE_CYCLES;
}

u64 spyre_cost_lpddr_cycles(u64 read, u64 written)
{
	return LPDDR_CYCLES(read, written, read < written ? read : written);
}

u64 spyre_cost_barrier_cycles(u32 streams)
{
	return BARRIER_CYCLES + streams;
}

void spyre_cost_linear(u64 bytes_read, u64 bytes_written,
		       struct spyre_counters *cost)
{
	memset(cost, 0, sizeof(*cost));
	cost->bytes_read = bytes_read;
	cost->bytes_written = bytes_written;
	cost->cycles = spyre_cost_lpddr_cycles(bytes_read, bytes_written) + ISSUE_CYCLES;
	cost->dma_cycles = cost->cycles;
	cost->copies = 1;
}

/* Extends a copy to @cycles if it takes less. */
static void extend_copy(struct spyre_counters *cost, u64 cycles)
{
	cost->cycles = larger(cost->cycles, cycles);
	cost->dma_cycles = cost->cycles;
}

void spyre_cost_dma(u64 host_bytes, u64 device_bytes, u64 rows, bool to_device,
		    struct spyre_counters *cost)
{
	/* 1.5 GHz over 63 GB/s is 1 cycle for 42 bytes. */
	u64 link = div_up(host_bytes, PCIE_BYTES_PER_S / SPYRE_CLOCK_HZ);

	spyre_cost_linear(to_device ? 0 : device_bytes, to_device ? device_bytes : 0, cost);
	cost->pcie_rx_bytes = to_device ? host_bytes : 0;
	cost->pcie_tx_bytes = to_device ? 0 : host_bytes;
	extend_copy(cost, larger(link, rows));
}

u64 spyre_cost_link_start(enum spyre_link link)
{
	switch (link) {
	case SPYRE_LINK_SWITCH:
		return PEER_CYCLES;
	case SPYRE_LINK_HOST:
		return PEER_HOST_CYCLES;
	default:
		return ISSUE_CYCLES;
	}
}

void spyre_cost_rows(const struct spyre_rows *rows, enum spyre_link link, bool sends,
		     struct spyre_counters *cost)
{
	u64 bytes = rows->rows * rows->row_bytes;
	u64 crossing = link == SPYRE_LINK_HOST ? 2 * bytes : bytes;

	if (link == SPYRE_LINK_CARD) {
		spyre_cost_linear(bytes, bytes, cost);
		extend_copy(cost, rows->rows);
		return;
	}
	memset(cost, 0, sizeof(*cost));
	cost->bytes_read = sends ? bytes : 0;
	cost->bytes_written = sends ? 0 : bytes;
	cost->rdma_read = sends ? 0 : bytes;
	cost->rdma_written = sends ? bytes : 0;
	/* One card reads the bytes and the other one writes them, at the same time. */
	cost->cycles = larger(div_up(crossing, PCIE_BYTES_PER_S / SPYRE_CLOCK_HZ),
			      spyre_cost_lpddr_cycles(bytes, 0));
	cost->cycles = larger(cost->cycles, rows->rows);
	cost->cycles += spyre_cost_link_start(link);
	cost->dma_cycles = cost->cycles;
	cost->copies = 1;
}

#define IDLE_MW 20000ull
#define CAP_MW 75000ull
#define IDLE_MC 35000ull
#define CAP_MC 85000ull
#define PJ_PER_MAC_X1000 560ull		/* 98.3 TFLOP/s sustained: 27.5 W */
#define PJ_PER_BYTE_X1000 90000ull	/* 204.8 GB/s sustained: 18.4 W */
#define BUSY_MW 9000ull			/* clocks and ring while anything runs */

/* a * b / c for values whose product may exceed 64 bits. */
static u64 mul_div(u64 a, u64 b, u64 c)
{
	u64 whole = a / c, rest = a % c;

	while (rest && b > ~0ull / rest) {
		rest >>= 1;
		c >>= 1;
	}
	if (!c || (whole && b > ~0ull / whole))
		return ~0ull;
	return whole * b + rest * b / c;
}

void spyre_power_model(u64 busy_ns, u64 window_ns, u64 macs, u64 bytes,
		       u32 *milliwatt, u32 *millicelsius)
{
	u64 mw = IDLE_MW;
	u64 part;

	if (window_ns) {
		if (busy_ns > window_ns)
			busy_ns = window_ns;
		mw += mul_div(busy_ns, BUSY_MW, window_ns);
		/* pJ per ns is mW. */
		part = mul_div(macs, PJ_PER_MAC_X1000, 1000);
		part = part / window_ns;
		mw += part < CAP_MW ? part : CAP_MW;
		part = mul_div(bytes, PJ_PER_BYTE_X1000, 1000) / window_ns;
		mw += part < CAP_MW ? part : CAP_MW;
	}
	if (mw > CAP_MW)
		mw = CAP_MW;
	*milliwatt = mw;
	*millicelsius = IDLE_MC + (mw - IDLE_MW) * (CAP_MC - IDLE_MC) / (CAP_MW - IDLE_MW);
}

u64 spyre_energy_model(u64 busy_ns, u64 window_ns, u64 macs, u64 bytes)
{
	/* mW times ns is pJ. */
	return mul_div(window_ns, IDLE_MW, 1000000) + mul_div(busy_ns, BUSY_MW, 1000000) +
	       mul_div(macs, PJ_PER_MAC_X1000, 1000000000) +
	       mul_div(bytes, PJ_PER_BYTE_X1000, 1000000000);
}

// SPDX-License-Identifier: MIT
/*
 * Fuzzes DMA descriptors: a transfer that spyre_dma_check() accepts stays within
 * its two spans and, on every arithmetic unit, produces the bytes of a short
 * reference that moves one element at a time. A box that leaves the host span moves
 * nothing. The spans end at an inaccessible
 * page; the bytes before them, and after an aligned device range, are checked
 * afterwards.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/card.h"
#include "tests/fuzz/cover.h"
#include "tests/fuzz/dma.h"
#include "tests/unit/model_build.h"
#include "tests/unit/model_reference.h"

#include "model/simd/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define AREA (2 * DMA_MAX_BYTES)
#define EDGE 64u		/* guard bytes before and after a span */
#define CANARY 0xc3

static uint8_t *area[2];		/* each ends at a guard page */
static uint8_t *noise[2];		/* random 16-bit and fp32 numbers */
static uint8_t want[2][DMA_MAX_BYTES], source[2][DMA_MAX_BYTES];
static unsigned long long unordered, too_large;

enum side { HOST, DEVICE };

static uint8_t *make_area(void)
{
	uint8_t *p = mmap(NULL, AREA + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (p == MAP_FAILED || mprotect(p + AREA, 4096, PROT_NONE))
		fuzz_fail("no memory");
	memset(p, CANARY, AREA);
	return p;
}

static void make_memory(void)
{
	uint64_t seed = 20261122;

	for (int i = 0; i < 2; i++) {
		area[i] = make_area();
		noise[i] = malloc(2 * DMA_MAX_BYTES);
		if (!noise[i])
			fuzz_fail("no memory");
		rng_fill(&seed, noise[i], 2 * DMA_MAX_BYTES,
			 i ? SPYRE_FMT_IEEE_FP32 : SPYRE_FMT_IEEE_FP16);
	}
}

static void seeds(const char *source_dir)
{
	struct dma_input input;

	(void)source_dir;
	for (uint32_t i = 0; i < 256; i++) {
		dma_make(&input);
		fuzz_seed(&input, sizeof(input));
	}
	make_memory();
}

static size_t make(uint8_t *data)
{
	struct dma_input input;

	if (!fuzz_random(4))
		return 0;
	dma_make(&input);
	memcpy(data, &input, sizeof(input));
	return sizeof(input);
}

static bool is_box(const struct spyre_dma_desc *desc)
{
	return desc->flags & SPYRE_DMA_BOX;
}

/* Facts that the reference finds on its way. */
struct outcome {
	bool padded;		/* some element is padding */
	bool unordered;		/* two elements are written to one byte of the destination */
	bool escapes;		/* an element of a box leaves the host span */
};

/* Returns true if an element of this transfer has already written these bytes. */
static bool written_before(uint64_t at, uint32_t bytes, bool restart)
{
	static uint32_t stamp[DMA_MAX_BYTES], now;
	bool before = false;

	if (restart) {
		now++;
		return false;
	}
	for (uint32_t i = 0; i < bytes; i++) {
		before |= stamp[at + i] == now;
		stamp[at + i] = now;
	}
	return before;
}

/* Maps c to host_offset + sum of c * stride, and to one sum per bound. */
struct odometer {
	const struct spyre_dma_desc *desc;
	uint64_t at;
	uint64_t sum[SPYRE_DMA_MAX_BOUNDS];
	uint32_t c[SPYRE_DMA_MAX_DIMS];
};

static void odometer_add(struct odometer *o, uint32_t d, uint64_t times)
{
	o->at += times * o->desc->dim[d].host_stride;
	for (uint32_t b = 0; b < o->desc->num_bounds; b++)
		o->sum[b] += times * o->desc->bound[b].coef[d];
}

static bool odometer_next(struct odometer *o)
{
	for (uint32_t d = o->desc->num_dims; d--;) {
		if (++o->c[d] < o->desc->dim[d].count) {
			odometer_add(o, d, 1);
			return true;
		}
		odometer_add(o, d, -(uint64_t)(o->desc->dim[d].count - 1));
		o->c[d] = 0;
	}
	return false;
}

static bool odometer_is_real(const struct odometer *o, uint64_t host_bytes)
{
	for (uint32_t b = 0; b < o->desc->num_bounds; b++)
		if (o->sum[b] >= o->desc->bound[b].limit)
			return false;
	return o->at + spyre_fmt_bytes(o->desc->host_format) <= host_bytes;
}

static struct outcome reference(const struct spyre_dma_desc *desc, uint8_t *host,
				uint64_t host_bytes, uint8_t *device)
{
	const uint32_t hb = spyre_fmt_bytes(desc->host_format);
	const uint32_t db = spyre_fmt_bytes(desc->device_format);
	struct odometer o = { .desc = desc, .at = desc->host_offset };
	struct outcome out = { 0 };

	written_before(0, 0, true);
	do {
		bool real = odometer_is_real(&o, host_bytes);

		out.padded |= !real;
		if (real && desc->direction == SPYRE_DMA_D2H)
			out.unordered |= written_before(o.at, hb, false);
		if (real)
			reference_move(desc, device, host + o.at);
		else if (desc->direction == SPYRE_DMA_H2D)
			memset(device, 0, db);
		device += db;
	} while (odometer_next(&o));
	return out;
}

/* The same for a box; also checks the device bytes that spyre_dma_check() computed. */
static struct outcome reference_of_box(const struct spyre_dma_desc *desc, uint8_t *host,
				       uint64_t host_bytes, uint8_t *device,
				       uint64_t device_bytes)
{
	const uint32_t hb = spyre_fmt_bytes(desc->host_format);
	const uint32_t db = spyre_fmt_bytes(desc->device_format);
	const bool back = desc->direction == SPYRE_DMA_D2H;
	struct outcome out = { 0 };
	uint64_t i, h, d, end = 0;

	written_before(0, 0, true);
	for (i = 0; reference_box_at(desc, i, &h, &d); i++) {
		end = d + db > end ? d + db : end;
		out.escapes |= h + hb > host_bytes;
		if (!out.escapes)
			out.unordered |= written_before(back ? h : d, back ? hb : db, false);
	}
	if (end != device_bytes)
		fuzz_fail("a box that ends at byte %llu of the device is said to have %llu",
			  (unsigned long long)end, (unsigned long long)device_bytes);
	if (!out.escapes)
		reference_box(desc, device, host);
	return out;
}

/* Valid lanes of row @row of the dim that is contiguous on the host; other coordinates are 0. */
static uint32_t lanes_of(const struct dma_input *in, uint32_t d, uint32_t row)
{
	const uint32_t lane = in->desc.num_dims - 1;
	struct odometer o = { .desc = &in->desc, .at = in->desc.host_offset };
	uint32_t n;

	odometer_add(&o, d, row);
	for (n = 0; n < in->desc.dim[lane].count && odometer_is_real(&o, in->host_bytes); n++)
		odometer_add(&o, lane, 1);
	return n;
}

static uint32_t shape_of(const struct dma_input *in)
{
	const struct spyre_dma_desc *desc = &in->desc;
	const uint32_t lane = desc->num_dims - 1, eb = spyre_fmt_bytes(desc->host_format);

	if (desc->dim[lane].host_stride == eb || desc->dim[lane].count == 1)
		return DMA_FORM_ROWS;
	if (!desc->dim[lane].host_stride)
		return DMA_FORM_REPEATED;
	for (uint32_t d = 0; d < lane; d++) {
		if (desc->dim[d].count == 1 || desc->dim[d].host_stride != eb)
			continue;
		return (eb == 2 || eb == 4) && desc->dim[d].count >= 64 &&
		       lanes_of(in, d, 0) == 128 / eb && lanes_of(in, d, 63) == 128 / eb ?
		       DMA_FORM_TILE : DMA_FORM_TRANSPOSED;
	}
	return DMA_FORM_STRIDED;
}

/* Places a span of @bytes at the very end, or at a multiple of @align before it. */
static uint8_t *place(enum side side, uint64_t bytes, uint32_t align)
{
	return area[side] + (AREA - bytes) / align * align;
}

static void fill_random(uint8_t *p, uint64_t bytes, uint32_t format, uint32_t seed)
{
	uint64_t at = seed % DMA_MAX_BYTES / 8 * 8;

	memcpy(p, noise[spyre_fmt_bytes(format) == 4] + at, bytes);
}

static void open_spans(uint8_t *const *p, const uint64_t *bytes)
{
	for (int side = 0; side < 2; side++) {
		memset(p[side] - EDGE, CANARY, EDGE);
		memcpy(p[side], source[side], bytes[side]);
		memset(p[side] + bytes[side], CANARY, area[side] + AREA - p[side] - bytes[side]);
	}
}

static void check_edges(const struct dma_input *in, enum side side, const uint8_t *p,
			uint64_t bytes, const char *unit)
{
	const uint8_t *end = area[side] + AREA;

	for (uint32_t i = 1; i <= EDGE; i++)
		if (p[-(int)i] != CANARY)
			fuzz_fail("%s: byte %u before the %s span was written", unit, i,
				  side == HOST ? "host" : "device");
	for (const uint8_t *q = p + bytes; q < end; q++)
		if (*q != CANARY)
			fuzz_fail("%s: byte %td behind the %s span of %llu was written", unit,
				  q - p, side == HOST ? "host" : "device",
				  (unsigned long long)bytes);
}

static void check_bytes(const struct dma_input *in, enum side side, const uint8_t *p,
			uint64_t bytes, const char *unit)
{
	uint32_t shape;
	uint64_t i = 0;

	if (!memcmp(p, want[side], bytes))
		return;
	while (p[i] == want[side][i])
		i++;
	shape = is_box(&in->desc) ? DMA_FORM_BOX + dma_box_shape(&in->desc) : shape_of(in);
	fuzz_fail("%s: kind %u, direction %u, formats %u %u, shape %u: byte %llu of the %s is "
		  "%02x, want %02x", unit, in->kind, in->desc.direction, in->desc.host_format,
		  in->desc.device_format, shape, (unsigned long long)i,
		  side == HOST ? "host" : "device", p[i], want[side][i]);
}

static void check(const struct dma_input *in, uint8_t *const *p, const uint64_t *bytes,
		  const char *unit)
{
	for (int side = 0; side < 2; side++) {
		check_bytes(in, side, p[side], bytes[side], unit);
		check_edges(in, side, p[side], bytes[side], unit);
	}
}

static uint32_t form_of(const struct dma_input *in, const struct outcome *out)
{
	bool back = in->desc.direction == SPYRE_DMA_D2H;

	if (is_box(&in->desc))
		return dma_box_shape(&in->desc) + (back ? DMA_FORM_BOX_D2H : DMA_FORM_BOX);
	return shape_of(in) + (out->padded ? DMA_FORM_PADDED : 0) + (back ? DMA_FORM_D2H : 0);
}

static void transfer(const struct dma_input *in, uint64_t device_bytes)
{
	const struct spyre_dma_desc *desc = &in->desc;
	struct fuzz_card *card = fuzz_card();
	uint64_t bytes[2] = { in->host_bytes, device_bytes };
	uint8_t *p[2] = {
		place(HOST, bytes[HOST], 1), place(DEVICE, bytes[DEVICE], in->seed % 2 ? 128 : 1),
	};
	const enum side to = desc->direction == SPYRE_DMA_D2H ? HOST : DEVICE;
	struct outcome out;
	uint32_t form;

	fill_random(source[HOST], bytes[HOST], desc->host_format, in->seed);
	fill_random(source[DEVICE], bytes[DEVICE], desc->device_format, in->seed * 7);
	memcpy(want[HOST], source[HOST], bytes[HOST]);
	memcpy(want[DEVICE], source[DEVICE], bytes[DEVICE]);
	if (is_box(desc))
		out = reference_of_box(desc, want[HOST], bytes[HOST], want[DEVICE], device_bytes);
	else
		out = reference(desc, want[HOST], bytes[HOST], want[DEVICE]);
	form = form_of(in, &out);
	for (unsigned int unit = 0; unit < card->num_units; unit++) {
		const char *name = spyre_unit_name(card->unit[unit]);
		enum spyre_stop stop;

		open_spans(p, bytes);
		card->host.unit = card->unit[unit];
		card->patience = ~0u;
		stop = spyre_card_dma(&card->host, card, &card->worker, desc, p[DEVICE], p[HOST],
				      bytes[HOST]);
		if (stop != (out.escapes ? SPYRE_STOP_EXTENT : SPYRE_STOP_NONE))
			fuzz_fail("%s: an accepted descriptor %s its span stopped with %s", name,
				  out.escapes ? "beyond" : "within", spyre_stop_name(stop));
		if (out.unordered) {
			check_edges(in, to, p[to], bytes[to], name);
			check_bytes(in, !to, p[!to], bytes[!to], name);
			continue;
		}
		check(in, p, bytes, name);
		if (!out.escapes)
			fuzz_cover_add(form, dma_pair(desc->host_format, desc->device_format),
				       unit);
	}
	unordered += out.unordered;
	fuzz_compared += !out.unordered;
}

/* Runs one call of a unit that bypasses the caches, as transfers of 16 MiB do. */
static void stream(const struct dma_input *in)
{
	const struct spyre_dma_desc *desc = &in->desc;
	const bool back = desc->direction == SPYRE_DMA_D2H;
	const uint32_t to = back ? desc->host_format : desc->device_format;
	const uint32_t from = back ? desc->device_format : desc->host_format;
	const uint32_t lanes = desc->dim[desc->num_dims - 1].count, tb = spyre_fmt_bytes(to);
	const uint32_t fb = spyre_fmt_bytes(from), rows = 1 + in->seed % 5;
	struct fuzz_card *card = fuzz_card();
	struct spyre_convert_run run = {
		.dst_stride = (lanes * tb + 63) / 64 * 64 + in->seed / 8 % 2 * 64,
		.src_stride = lanes * fb + in->seed / 16 % 9,
		.rows = rows, .lanes = lanes, .dst_format = to, .src_format = from,
		.cast = true, .stream = true,
	};
	uint64_t bytes[2] = {
		(rows - 1) * run.src_stride + lanes * fb, (rows - 1) * run.dst_stride + lanes * tb,
	};
	uint8_t *p[2] = { place(HOST, bytes[HOST], 1), place(DEVICE, bytes[DEVICE], 64) };

	run.src = p[HOST];
	run.dst = p[DEVICE];
	fill_random(source[HOST], bytes[HOST], from, in->seed);
	fill_random(source[DEVICE], bytes[DEVICE], to, in->seed * 7);
	memcpy(want[HOST], source[HOST], bytes[HOST]);
	memcpy(want[DEVICE], source[DEVICE], bytes[DEVICE]);
	for (uint32_t i = 0; i < rows * lanes; i++)
		reference_convert(to, want[DEVICE] + i / lanes * run.dst_stride + i % lanes * tb,
				  from, want[HOST] + i / lanes * run.src_stride + i % lanes * fb);
	for (unsigned int unit = 0; unit < card->num_units; unit++) {
		const struct spyre_copy_run copy = {
			.dst = run.dst, .src = run.src, .dst_stride = run.dst_stride,
			.src_stride = run.src_stride, .rows = rows, .bytes = lanes * tb,
			.stream = true,
		};

		open_spans(p, bytes);
		if (to == from)
			card->unit[unit]->copy(&copy);
		else
			card->unit[unit]->convert(&run);
		check(in, p, bytes, spyre_unit_name(card->unit[unit]));
		fuzz_cover_add(back ? DMA_FORM_STREAM_D2H : DMA_FORM_STREAM,
			       dma_pair(desc->host_format, desc->device_format), unit);
	}
	fuzz_compared++;
}

/* Copies and fills within device memory, which use no unit. */
static void linear(const struct dma_input *in)
{
	struct fuzz_card *card = fuzz_card();
	uint64_t bytes[2] = { 0, 1 + in->seed % (in->seed % 16 ? 300 : 40000) };
	uint64_t part = in->seed / 32 % bytes[DEVICE], shift = in->seed / 7 % (part + 1);
	uint32_t pattern = 1u << in->seed / 3 % 5, form = DMA_FORM_FILL;
	uint8_t *p[2] = { place(HOST, 0, 1), place(DEVICE, bytes[DEVICE], 1) };
	uint64_t i;

	fill_random(source[DEVICE], bytes[DEVICE], SPYRE_FMT_IEEE_FP16, in->seed);
	memcpy(want[DEVICE], source[DEVICE], bytes[DEVICE]);
	open_spans(p, bytes);
	if (in->kind == DMA_INPUT_FILL) {
		for (i = 0; i < bytes[DEVICE]; i++)
			want[DEVICE][i] = noise[0][i % pattern];
		spyre_card_fill(&card->host, card, &card->worker, p[DEVICE], bytes[DEVICE],
				noise[0], pattern);
	} else {
		/* Copies in either direction between ranges that may overlap. */
		uint64_t n = bytes[DEVICE] - part, from = in->seed % 2 ? 0 : shift;
		uint64_t to = in->seed % 2 ? shift : 0;

		for (i = 0; i < n; i++)
			want[DEVICE][to + i] = source[DEVICE][from + i];
		spyre_card_copy(&card->host, card, &card->worker, p[DEVICE] + to,
				p[DEVICE] + from, n);
		form = n > shift ? DMA_FORM_COPY_OVERLAP : DMA_FORM_COPY;
	}
	check(in, p, bytes, "card");
	for (unsigned int unit = 0; unit < card->num_units; unit++)
		fuzz_cover_add(form, 0, unit);
	fuzz_compared++;
}

static bool run(const uint8_t *data, size_t size)
{
	struct dma_input input = { 0 };
	uint64_t device_bytes = 0;
	bool fits;

	memcpy(&input, data, size < sizeof(input) ? size : sizeof(input));
	if (spyre_dma_check(&input.desc, &device_bytes, NULL) != SPYRE_STOP_NONE)
		return false;
	input.host_bytes %= DMA_MAX_BYTES + 1;
	fits = device_bytes <= DMA_MAX_BYTES;
	/* A device that repeats its elements has few bytes of very many. */
	for (uint32_t d = 0, n = 1; is_box(&input.desc) && d < input.desc.num_dims; d++) {
		fits &= input.desc.dim[d].count <= DMA_MAX_BYTES / n;
		n *= fits ? input.desc.dim[d].count : 1;
	}
	if (input.kind == DMA_INPUT_STREAM && !is_box(&input.desc))
		stream(&input);
	else if (input.kind == DMA_INPUT_COPY || input.kind == DMA_INPUT_FILL)
		linear(&input);
	else if (!fits)
		too_large++;
	else
		transfer(&input, device_bytes);
	return true;
}

static const char *form_name(uint32_t form)
{
	static const char *const shape[] = { "rows", "strided", "transposed", "tile", "repeated" };
	static const char *const box[] = {
		"rows", "long", "strided", "transposed", "tile", "scattered", "repeated",
	};
	static const char *const other[] = {
		"stream H2D", "stream D2H", "copy", "copy, overlapping", "fill",
	};
	static char name[40];

	if (form >= DMA_FORM_BOX) {
		snprintf(name, sizeof(name), "box %s %s",
			 form >= DMA_FORM_BOX_D2H ? "D2H" : "H2D",
			 box[(form - DMA_FORM_BOX) % DMA_BOX_SHAPES]);
		return name;
	}
	if (form >= DMA_FORM_STREAM)
		return other[form - DMA_FORM_STREAM];
	snprintf(name, sizeof(name), "%s %s%s", form >= DMA_FORM_D2H ? "D2H" : "H2D",
		 shape[form % DMA_FORM_SHAPES],
		 form / DMA_FORM_SHAPES % 2 ? ", padded" : "");
	return name;
}

static const char *format_name(uint32_t pair)
{
	static char name[40];
	uint32_t host, device;

	dma_pair_formats(pair, &host, &device);
	snprintf(name, sizeof(name), "host %u, device %u", host, device);
	return name;
}

static bool reachable(uint32_t form, uint32_t pair)
{
	uint32_t host, device;

	dma_pair_formats(pair, &host, &device);
	if (form >= DMA_FORM_BOX)
		return (form - DMA_FORM_BOX) % DMA_BOX_SHAPES != DMA_BOX_TILE ||
		       spyre_fmt_bytes(host) == 2 || spyre_fmt_bytes(host) == 4;
	if (form >= DMA_FORM_COPY)
		return pair == 0;
	if (form >= DMA_FORM_STREAM)
		return true;
	/* The tiles are of 16 and of 32 bits. */
	if (form % DMA_FORM_SHAPES == DMA_FORM_TILE)
		return spyre_fmt_bytes(host) == 2 || spyre_fmt_bytes(host) == 4;
	/* All lanes except one are padding, or the descriptor is refused. */
	return form != (uint32_t)DMA_FORM_D2H + DMA_FORM_REPEATED;
}

static bool report(void)
{
	printf("fuzz-dma: %llu without a fixed order, %llu of more than %u bytes: not compared\n",
	       unordered, too_large, DMA_MAX_BYTES);
	return fuzz_cover_report(DMA_FORMS, dma_pairs(), form_name, format_name, reachable);
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz-dma", .seeds = seeds, .run = run, .make = make, .report = report,
};

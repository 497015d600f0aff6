// SPDX-License-Identifier: MIT
/*
 * Operands as parts of larger tensors: each device dim gets points before and
 * after, and a dim is added of which the operand selects one point. Everything else
 * is NaN in every format, even the unused lanes of last sticks.
 */
#include "model/format.h"
#include "sdsc_operation.h"

static uint32_t lanes_of(const struct value *v)
{
	return (uint32_t)v->plain.device_size[v->plain.device_rank - 1];
}

static void fill(uint8_t *bytes, size_t size, uint32_t lanes)
{
	static const uint32_t nan32 = 0x7fffffff;
	static const uint16_t nan16 = SPYRE_DL16_NAN;

	for (size_t i = 0; i < size; i++)
		bytes[i] = lanes == 32 ? (uint8_t)(nan32 >> i % 4 * 8) :
			   lanes == 64 ? (uint8_t)(nan16 >> i % 2 * 8) : 0x7f;
}

/* Adds a dim after dim 0 of which the operand selects one point. */
static void add_selected(struct value *v)
{
	spyre_layout *l = &v->operand.layout;

	for (uint32_t j = l->device_rank; j-- > 1;) {
		l->device_size[j + 1] = l->device_size[j];
		l->stride_map[j + 1] = l->stride_map[j];
		l->dim_map[j + 1] = l->dim_map[j];
		v->where[j] = j + 1;
	}
	l->device_rank++;
	l->device_size[1] = 3;
	l->stride_map[1] = -1;
	l->dim_map[1] = -1;
}

void put_down(struct value *v, enum placing placing, uint32_t seed)
{
	spyre_layout *l = &v->operand.layout;
	uint64_t first = 0;

	v->plain = *l;
	v->zeros = placing == AS_COPIED;
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(l), &v->plain_device));
	for (uint32_t j = 0; j < l->device_rank; j++)
		v->where[j] = j;
	if (placing == WINDOWS && l->device_rank < 6 && l->device_rank > 2)
		add_selected(v);
	for (uint32_t j = 0; j + 1 < l->device_rank; j++) {
		uint64_t before = (seed + j) % 3, behind = (seed + j) % 2;

		if (placing != WINDOWS) {
			before = behind = 0;
		} else if (l->device_rank > v->plain.device_rank && j == 1) {
			before = 1;
		} else {
			l->device_size[j] += (int64_t)(before + behind);
		}
		first = first * (uint64_t)l->device_size[j] + before;
	}
	v->base_bytes = spyre_layout_bytes(l);
	ck_ok(spyre_mem_alloc(context, v->base_bytes, &v->base));
	v->device = v->base + first * SPYRE_STICK;
	v->shadow = malloc(v->base_bytes);
	fill(v->shadow, v->base_bytes, lanes_of(v));
	scribble(v);
}

void scribble(const struct value *v)
{
	ck_ok(spyre_memcpy_h2d(context, v->base, v->shadow, v->base_bytes));
}

/* Returns the offset of stick @n of the plain tensor in the other; @lanes of it are valid. */
static size_t stick_at(const struct value *v, size_t n, uint32_t *lanes)
{
	const spyre_layout *p = &v->plain, *l = &v->operand.layout;
	size_t c[SPYRE_MAX_DEVICE_RANK] = { 0 }, at = 0;
	int along = p->dim_map[p->device_rank - 1];

	*lanes = along < 0 ? 1 : lanes_of(v);
	for (uint32_t j = p->device_rank - 1; j-- > 0;) {
		c[v->where[j]] = n % (size_t)p->device_size[j];
		n /= (size_t)p->device_size[j];
	}
	for (uint32_t j = 0; j + 1 < p->device_rank; j++) {
		int64_t left;

		if (along < 0 || p->dim_map[j] != along)
			continue;
		left = v->size[along] - (int64_t)c[v->where[j]] * lanes_of(v);
		*lanes = left < (int64_t)lanes_of(v) ? (uint32_t)left : lanes_of(v);
	}
	for (uint32_t j = 0; j + 1 < l->device_rank; j++)
		at = at * (size_t)l->device_size[j] + c[j];
	return at * SPYRE_STICK + (size_t)(v->device - v->base);
}

void settle(const struct value *v)
{
	size_t bytes = spyre_layout_bytes(&v->plain);
	uint8_t *plain = malloc(bytes);

	ck_ok(spyre_memcpy_d2h(context, plain, v->plain_device, bytes));
	for (size_t i = 0; i < bytes / SPYRE_STICK; i++) {
		uint32_t lanes;
		size_t to = stick_at(v, i, &lanes);

		memcpy(v->shadow + to, plain + i * SPYRE_STICK,
		       v->zeros ? SPYRE_STICK : SPYRE_STICK / lanes_of(v) * lanes);
	}
	ck_ok(spyre_memcpy_h2d(context, v->base, v->shadow, v->base_bytes));
	free(plain);
}

void gather(const struct value *v)
{
	size_t bytes = spyre_layout_bytes(&v->plain);
	uint8_t *plain = malloc(bytes), *all = malloc(v->base_bytes);
	uint32_t lanes;

	ck_ok(spyre_memcpy_d2h(context, all, v->base, v->base_bytes));
	for (size_t i = 0; i < bytes / SPYRE_STICK; i++)
		memcpy(plain + i * SPYRE_STICK, all + stick_at(v, i, &lanes), SPYRE_STICK);
	ck_ok(spyre_memcpy_h2d(context, v->plain_device, plain, bytes));
	free(all);
	free(plain);
}

void check_surroundings(const struct value *v, bool whole, const char *name)
{
	uint8_t *all = malloc(v->base_bytes);
	uint32_t lanes;

	ck_ok(spyre_memcpy_d2h(context, all, v->base, v->base_bytes));
	for (size_t i = 0; i < spyre_layout_bytes(&v->plain) / SPYRE_STICK && !whole; i++) {
		size_t at = stick_at(v, i, &lanes);

		memcpy(all + at, v->shadow + at, SPYRE_STICK);
	}
	for (size_t i = 0; i < v->base_bytes; i++)
		if (all[i] != v->shadow[i])
			ck_abort_msg("%s writes byte %zu, outside its window at %zu", name, i,
				     (size_t)(v->device - v->base));
	free(all);
}

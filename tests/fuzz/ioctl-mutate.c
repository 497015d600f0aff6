// SPDX-License-Identifier: MIT
/* Creates new inputs and mutates old ones. */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <string.h>

static uint64_t state;

static const uint8_t weights[FZ_KIND_COUNT] = {
#define X(name, weight) weight,
	FZ_KINDS(X)
#undef X
};

void fz_srandom(uint64_t seed)
{
	state = seed;
}

uint32_t fz_random(uint32_t limit)
{
	/* splitmix64 */
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ z >> 31) % limit);
}

static uint8_t random_kind(void)
{
	uint32_t sum = 0, kind;

	for (kind = 0; kind < FZ_KIND_COUNT; kind++)
		sum += weights[kind];
	sum = fz_random(sum);
	for (kind = 0; sum >= weights[kind]; kind++)
		sum -= weights[kind];
	return kind;
}

/* Low bytes select valid objects; high ones select the kind of error. */
static uint8_t random_param(void)
{
	return fz_random(24) ? fz_random(fz_random(4) ? 16 : 192) : fz_random(256);
}

static void random_poke(struct fz_call *c)
{
	c->poke_at = fz_random(fz_random(4) ? 64 : 1024);
	c->poke_op = fz_random(256);
	c->poke_value = fz_random(256);
}

static struct fz_call call_of(enum fz_kind kind, uint8_t file)
{
	struct fz_call c = { .kind = kind, .file = file };
	uint32_t i;

	for (i = 0; i < FZ_PARAMS; i++)
		c.p[i] = random_param();
	if (!fz_random(8))
		random_poke(&c);
	return c;
}

static struct fz_call random_call(void)
{
	return call_of(random_kind(), fz_random(8) ? 0 : fz_random(FZ_FILES));
}

/* Creates mapped memory, a queue and a program, which most work needs. */
static void prologue(struct fz_input *input)
{
	static const struct fz_call calls[] = {
		{ .kind = FZ_BO_CREATE, .p = { 5, 0 } },
		{ .kind = FZ_OP },
		{ .kind = FZ_VM_BIND },
		{ .kind = FZ_QUEUE_CREATE },
		{ .kind = FZ_BO_CREATE, .p = { 3, 1 } },
		{ .kind = FZ_PROGRAM_CREATE },
	};
	uint32_t n = 1 + fz_random(sizeof(calls) / sizeof(calls[0]));

	memcpy(input->call, calls, n * sizeof(calls[0]));
	input->count = n;
	if (n == 6)
		input->call[5].p[0] = fz_random(256);
}

void fz_generate(struct fz_input *input)
{
	uint32_t n = 1 + fz_random(8);

	input->count = 0;
	if (fz_random(4))
		prologue(input);
	while (n-- && input->count < FZ_MAX_CALLS)
		input->call[input->count++] = random_call();
}

static void insert(struct fz_input *input, uint32_t at, const struct fz_call *calls, uint32_t n)
{
	if (n > FZ_MAX_CALLS - input->count)
		n = FZ_MAX_CALLS - input->count;
	memmove(&input->call[at + n], &input->call[at], (input->count - at) * sizeof(*calls));
	memmove(&input->call[at], calls, n * sizeof(*calls));
	input->count += n;
}

static void mutate_param(struct fz_call *c)
{
	uint8_t *p = &c->p[fz_random(FZ_PARAMS)];

	switch (fz_random(5)) {
	case 0: *p = fz_random(256); break;
	case 1: *p = random_param(); break;
	case 2: *p += 1 + fz_random(8); break;
	case 3: *p -= 1 + fz_random(8); break;
	default: *p ^= 1 << fz_random(8); break;
	}
}

static void mutate_once(struct fz_input *input, const struct fz_input *other)
{
	uint32_t at = fz_random(input->count), from, n;
	struct fz_call c;

	switch (fz_random(10)) {
	case 0:
		c = random_call();
		insert(input, fz_random(input->count + 1), &c, 1);
		break;
	case 1:
		if (input->count == 1)
			break;
		memmove(&input->call[at], &input->call[at + 1],
			(--input->count - at) * sizeof(c));
		break;
	case 2:
		c = input->call[at];
		insert(input, fz_random(input->count + 1), &c, 1);
		break;
	case 3:
		from = fz_random(other->count);
		n = 1 + fz_random(other->count - from);
		insert(input, fz_random(input->count + 1), &other->call[from], n);
		break;
	case 4:
		random_poke(&input->call[at]);
		break;
	case 5:
		input->call[at].poke_op = 0;
		input->call[at].file = fz_random(FZ_FILES);
		break;
	case 6:
		input->call[at] = call_of(input->call[at].kind, input->call[at].file);
		break;
	default:
		mutate_param(&input->call[at]);
		break;
	}
}

void fz_mutate(struct fz_input *input, const struct fz_input *other)
{
	uint32_t n = 1 + fz_random(fz_random(4) ? 3 : 12);

	while (n--)
		mutate_once(input, other);
}

/* SPDX-License-Identifier: MIT */
/*
 * Random collectives on 2 to 8 ranks against a reference on the host, bit by bit: communicators
 * of all ranks and of splits, formats, operators, parts with pitches that differ between ranks,
 * in place and not, on several streams, in groups and alone. Then a rank aborts at a random
 * moment, and the ranks that a shrink leaves go on.
 *
 * Ranks draw the same numbers, so that each knows what all others send. SPYRE_TEST_SEED is the
 * first seed, SPYRE_TEST_ROUNDS their number.
 */
#include "config.h"

#include <math.h>
#include <unistd.h>

#include "comm_ranks.h"
#include "tests/order.h"

#define MAX_RANKS 8
#define MAX_GROUPS 4
#define STREAMS 3
#define STICK 128
#define WORDS (STICK / 4)
#define STEPS 24
#define MAX_STICKS 400
#define FACTOR 0.3f
#define ABORT_US 3000
#define UNTOUCHED 0xeeeeeeeeu

enum kind {
	ALL_REDUCE,
	REDUCE,
	BROADCAST,
	ALL_GATHER,
	REDUCE_SCATTER,
	GATHER,
	SCATTER,
	ALL_TO_ALL,
	MESSAGES,
	BARRIER,
	KINDS,
};

/* A communicator, and the numbers of its ranks among all ranks of the test. */
struct group {
	spyre_comm *comm;
	uint32_t size;
	uint32_t member[MAX_RANKS];
	/* Of this rank; @size if it is not one of them. */
	uint32_t index;
};

/* A call, the same on all ranks. */
struct step {
	uint32_t number;
	enum kind kind;
	struct group *group;
	spyre_format format;
	spyre_reduction reduction;
	uint32_t root;
	bool in_place;
	/* Of the part of each rank. */
	uint32_t sticks[MAX_RANKS];
	/* Of messages: to whom, in ranks after the own one. */
	uint32_t shift;
};

/* Memory of a call on this rank: a part for each rank of the group, or one for all. */
struct side {
	spyre_devptr address;
	uint64_t bytes;
	uint32_t *host;
	spyre_comm_part part[MAX_RANKS];
	uint32_t count;
};

struct play {
	struct rank *rank;
	/* Drawn by all ranks alike, and by this one alone. */
	uint64_t shared;
	uint64_t own;
	spyre_stream *streams[STREAMS];
	struct group groups[MAX_GROUPS];
	uint32_t num_groups;
};

/* A step that is queued. */
struct queued {
	struct step step;
	struct side send, recv;
};

static uint32_t hash(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}

static bool is_half(spyre_format format)
{
	return format == SPYRE_FORMAT_SEN169_FP16 || format == SPYRE_FORMAT_BFLOAT16;
}

/* Word @i of what @from sends to @to: numbers whose sums and products stay finite. */
static uint32_t word_of(const struct step *step, uint32_t from, uint32_t to, uint64_t i)
{
	const uint32_t x = hash((uint32_t)i + 977 * (from + 8 * (to + 8 * step->number)));
	float number;
	uint32_t bits;

	switch (step->format) {
	case SPYRE_FORMAT_SEN169_FP16:
		return (x & 0x81ff81ffu) | (28 + (x >> 9) % 4) << 9 | (28 + (x >> 25) % 4) << 25;
	case SPYRE_FORMAT_BFLOAT16:
		return (x & 0x807f807fu) | (124 + (x >> 7) % 6) << 7 | (124 + (x >> 23) % 6) << 23;
	case SPYRE_FORMAT_IEEE_FP32:
		number = ldexpf((float)(int32_t)x / 2147483648.0f, (int)(x % 24) - 12);
		memcpy(&bits, &number, sizeof(bits));
		return bits;
	default:
		return x;
	}
}

/* The numbers in a word: one or two. */
static int decode(spyre_format format, uint32_t word, float *numbers)
{
	uint16_t half[2] = { (uint16_t)word, (uint16_t)(word >> 16) };
	double wide[2];

	if (!is_half(format)) {
		memcpy(numbers, &word, sizeof(word));
		return 1;
	}
	rank_ok(spyre_format_decode(format, half, 2, wide));
	numbers[0] = (float)wide[0];
	numbers[1] = (float)wide[1];
	return 2;
}

static uint32_t encode(spyre_format format, const float *numbers)
{
	const double wide[2] = { numbers[0], numbers[1] };
	uint16_t half[2];
	uint32_t word;

	if (!is_half(format)) {
		memcpy(&word, numbers, sizeof(word));
		return word;
	}
	rank_ok(spyre_format_encode(format, wide, 2, half));
	return half[0] | (uint32_t)half[1] << 16;
}

static uint32_t combine_integers(spyre_reduce_op op, uint32_t a, uint32_t b)
{
	switch (op) {
	case SPYRE_REDUCE_PRODUCT:
		return a * b;
	case SPYRE_REDUCE_MIN:
		return (int32_t)a < (int32_t)b ? a : b;
	case SPYRE_REDUCE_MAX:
		return (int32_t)a > (int32_t)b ? a : b;
	case SPYRE_REDUCE_BAND:
		return a & b;
	case SPYRE_REDUCE_BOR:
		return a | b;
	case SPYRE_REDUCE_BXOR:
		return a ^ b;
	default:
		return a + b;
	}
}

static float combine(spyre_reduce_op op, float a, float b)
{
	switch (op) {
	case SPYRE_REDUCE_PRODUCT:
		return a * b;
	case SPYRE_REDUCE_MIN:
		return fminf(a, b);
	case SPYRE_REDUCE_MAX:
		return fmaxf(a, b);
	default:
		return a + b;
	}
}

/* Word @i of the reduction of what all ranks send to @to. */
static uint32_t reduced(const struct step *step, uint32_t to, uint64_t i)
{
	const struct group *group = step->group;
	const spyre_reduce_op op = step->reduction.op;
	uint32_t word = word_of(step, group->member[0], to, i);
	float sum[2] = { 0 }, next[2] = { 0 };
	int count;

	if (step->format == SPYRE_FORMAT_IEEE_INT32) {
		for (uint32_t r = 1; r < group->size; r++)
			word = combine_integers(op, word, word_of(step, group->member[r], to, i));
		return word;
	}
	count = decode(step->format, word, sum);
	for (int k = 0; k < count && op == SPYRE_REDUCE_PREMUL_SUM; k++)
		sum[k] *= FACTOR;
	for (uint32_t r = 1; r < group->size; r++) {
		decode(step->format, word_of(step, group->member[r], to, i), next);
		for (int k = 0; k < count; k++)
			sum[k] = combine(op, sum[k], op == SPYRE_REDUCE_PREMUL_SUM ?
					 next[k] * FACTOR : next[k]);
	}
	for (int k = 0; k < count && op == SPYRE_REDUCE_AVG; k++)
		sum[k] *= 1.0f / group->size;
	return encode(step->format, sum);
}

static uint32_t draw(uint64_t *random, uint32_t limit)
{
	return (uint32_t)(random_next(random) % limit);
}

static bool has_many(const struct step *step, bool sends)
{
	switch (step->kind) {
	case ALL_GATHER:
	case GATHER:
		return !sends;
	case REDUCE_SCATTER:
	case SCATTER:
		return sends;
	default:
		return step->kind == ALL_TO_ALL;
	}
}

/* Sticks of part @i on one side of this rank. */
static uint32_t sticks_of(const struct step *step, bool sends, uint32_t i)
{
	const uint32_t index = step->group->index, size = step->group->size;

	switch (step->kind) {
	case ALL_GATHER:
	case GATHER:
		return step->sticks[sends ? index : i];
	case REDUCE_SCATTER:
	case SCATTER:
		return step->sticks[sends ? i : index];
	case ALL_TO_ALL:
		/* From a to b, as much as from b to a and another amount than to others. */
		return step->sticks[(index + i) % size];
	case MESSAGES:
		return step->sticks[sends ? index : (index + size - step->shift) % size];
	case BARRIER:
		return 0;
	default:
		return step->sticks[0];
	}
}

/* Lays out a side: rows with gaps, which this rank chooses, where the call takes parts. */
static void side_open(struct play *play, const struct step *step, bool sends, struct side *side)
{
	const bool plain = step->kind <= BROADCAST;
	uint64_t at = 0;

	side->count = has_many(step, sends) ? step->group->size : 1;
	for (uint32_t i = 0; i < side->count; i++) {
		const uint32_t sticks = sticks_of(step, sends, i);
		uint32_t rows = plain ? 1 : 1 + draw(&play->own, 6);
		uint64_t gap = plain ? 0 : draw(&play->own, 3) * STICK;

		while (sticks % rows)
			rows--;
		side->part[i] = (spyre_comm_part){
			.address = at, .format = step->format, .rows = rows,
			.row_bytes = (uint64_t)sticks / rows * STICK,
			.pitch = (uint64_t)sticks / rows * STICK + gap,
		};
		at += rows * side->part[i].pitch;
	}
	side->bytes = at + STICK;
	rank_ok(spyre_mem_alloc(play->rank->context, side->bytes, &side->address));
	for (uint32_t i = 0; i < side->count; i++)
		side->part[i].address += side->address;
	side->host = malloc(side->bytes);
	rank_check(side->host, "no memory");
	memset(side->host, 0xee, side->bytes);
}

static void side_close(struct play *play, struct side *side)
{
	rank_ok(spyre_mem_free(play->rank->context, side->address));
	free(side->host);
}

/* The word of @side that has word @i of its part @p. */
static uint32_t *word_at(struct side *side, uint32_t p, uint64_t i)
{
	const spyre_comm_part *part = &side->part[p];
	const uint64_t row = i * 4 / part->row_bytes, in_row = i * 4 % part->row_bytes;

	return side->host + (part->address - side->address + row * part->pitch + in_row) / 4;
}

static uint64_t words_of(const struct side *side, uint32_t p)
{
	return side->part[p].rows * side->part[p].row_bytes / 4;
}

/* Returns the rank that part @p of a send is for, or 0 if all ranks get the same. */
static uint32_t receiver(const struct step *step, uint32_t p)
{
	return has_many(step, true) ? step->group->member[p] : 0;
}

static void fill(struct play *play, const struct step *step, struct side *side, bool sends)
{
	const uint32_t own = play->rank->rank;

	for (uint32_t p = 0; sends && p < side->count; p++)
		for (uint64_t i = 0; i < words_of(side, p); i++)
			*word_at(side, p, i) = word_of(step, own, receiver(step, p), i);
	order_le(side->host, side->bytes / 4, 4);
	rank_ok(spyre_memcpy_h2d(play->rank->context, side->address, side->host, side->bytes));
	order_le(side->host, side->bytes / 4, 4);
}

/* True if the call writes to this rank. */
static bool receives(const struct step *step)
{
	return step->kind != BARRIER && ((step->kind != REDUCE && step->kind != GATHER) ||
					 step->group->index == step->root);
}

static uint32_t expected(const struct play *play, const struct step *step, uint32_t p, uint64_t i)
{
	const struct group *group = step->group;
	const uint32_t own = play->rank->rank;

	switch (step->kind) {
	case ALL_REDUCE:
	case REDUCE:
		return reduced(step, 0, i);
	case REDUCE_SCATTER:
		return reduced(step, own, i);
	case BROADCAST:
		return word_of(step, group->member[step->root], 0, i);
	case SCATTER:
		return word_of(step, group->member[step->root], own, i);
	case ALL_TO_ALL:
		return word_of(step, group->member[p], own, i);
	case MESSAGES:
		return word_of(step, group->member[(group->index + group->size - step->shift) %
						   group->size], 0, i);
	default:
		return word_of(step, group->member[p], 0, i);
	}
}

/* Compares all words of a side, those between the parts as well. */
static void check(struct play *play, struct queued *queued)
{
	const struct step *step = &queued->step;
	struct side *side = step->in_place ? &queued->send : &queued->recv;
	uint32_t *want = malloc(side->bytes), *got = malloc(side->bytes);

	rank_check(want && got, "no memory");
	for (uint32_t p = 0; receives(step) && p < side->count; p++)
		for (uint64_t i = 0; i < words_of(side, p); i++)
			*word_at(side, p, i) = expected(play, step, p, i);
	memcpy(want, side->host, side->bytes);
	rank_ok(spyre_memcpy_d2h(play->rank->context, got, side->address, side->bytes));
	order_le(got, side->bytes / 4, 4);
	for (uint64_t i = 0; i < side->bytes / 4; i++)
		rank_check(got[i] == want[i], "step %u, collective %d of %u ranks, format %d, operator %d"
			   ", root %u%s: word %llu of rank %u is 0x%08x instead of 0x%08x",
			   step->number, (int)step->kind, step->group->size, (int)step->format,
			   (int)step->reduction.op, step->root, step->in_place ? ", in place" : "",
			   (unsigned long long)i, step->group->index, got[i], want[i]);
	free(want);
	free(got);
}

static spyre_status messages(const struct queued *queued, spyre_stream *stream)
{
	const struct group *group = queued->step.group;
	const uint32_t next = (group->index + queued->step.shift) % group->size;
	const uint32_t last = (group->index + group->size - queued->step.shift) % group->size;

	rank_ok(spyre_group_begin());
	rank_ok(spyre_send(group->comm, queued->send.part, next, stream));
	rank_ok(spyre_recv(group->comm, queued->recv.part, last, stream));
	return spyre_group_end();
}

static spyre_status call(const struct queued *queued, spyre_stream *stream)
{
	const struct step *step = &queued->step;
	const struct side *send = &queued->send, *recv = step->in_place ? send : &queued->recv;
	const int64_t size[2] = { step->sticks[0], is_half(step->format) ? 64 : 32 };
	spyre_comm *comm = step->group->comm;
	spyre_layout layout;

	rank_ok(spyre_layout_init(&layout, 2, size, step->format == SPYRE_FORMAT_SEN169_FP16 ?
				  SPYRE_FORMAT_IEEE_FP16 : step->format));
	switch (step->kind) {
	case ALL_REDUCE:
		return spyre_all_reduce(comm, send->address, recv->address, &layout,
					step->reduction, stream);
	case REDUCE:
		return spyre_reduce(comm, send->address, recv->address, &layout, step->reduction,
				    step->root, stream);
	case BROADCAST:
		return spyre_broadcast(comm, send->address, recv->address, &layout, step->root,
				       stream);
	case ALL_GATHER:
		return spyre_all_gather_v(comm, send->part, recv->part, stream);
	case REDUCE_SCATTER:
		return spyre_reduce_scatter_v(comm, send->part, recv->part, step->reduction,
					      stream);
	case GATHER:
		return spyre_gather_v(comm, send->part, recv->part, step->root, stream);
	case SCATTER:
		return spyre_scatter_v(comm, send->part, recv->part, step->root, stream);
	case ALL_TO_ALL:
		return spyre_all_to_all_v(comm, send->part, recv->part, stream);
	case MESSAGES:
		return messages(queued, stream);
	default:
		return spyre_barrier(comm, stream);
	}
}

static struct step step_new(struct play *play, uint32_t number)
{
	static const spyre_format formats[] = {
		SPYRE_FORMAT_SEN169_FP16, SPYRE_FORMAT_BFLOAT16, SPYRE_FORMAT_IEEE_FP32,
		SPYRE_FORMAT_IEEE_INT32,
	};
	static const spyre_reduce_op floats[] = {
		SPYRE_REDUCE_SUM, SPYRE_REDUCE_AVG, SPYRE_REDUCE_PRODUCT, SPYRE_REDUCE_MIN,
		SPYRE_REDUCE_MAX, SPYRE_REDUCE_PREMUL_SUM,
	};
	static const spyre_reduce_op integers[] = {
		SPYRE_REDUCE_SUM, SPYRE_REDUCE_PRODUCT, SPYRE_REDUCE_MIN, SPYRE_REDUCE_MAX,
		SPYRE_REDUCE_BAND, SPYRE_REDUCE_BOR, SPYRE_REDUCE_BXOR,
	};
	uint64_t *random = &play->shared;
	struct step step = { .number = number };

	step.group = &play->groups[draw(random, play->num_groups)];
	step.kind = (enum kind)draw(random, KINDS);
	step.format = formats[draw(random, 4)];
	step.reduction.op = step.format == SPYRE_FORMAT_IEEE_INT32 ? integers[draw(random, 7)] :
			    floats[draw(random, 6)];
	step.reduction.factor = FACTOR;
	step.root = draw(random, step.group->size);
	step.shift = draw(random, step.group->size);
	step.in_place = draw(random, 3) == 0 && (step.kind == ALL_REDUCE || step.kind == REDUCE ||
						 step.kind == BROADCAST);
	for (uint32_t i = 0; i < MAX_RANKS; i++)
		step.sticks[i] = step.kind > BROADCAST && !draw(random, 5) ? 0 :
				 1 + draw(random, draw(random, 3) ? 24 : MAX_STICKS);
	return step;
}

/* Queues up to four calls, in a group or not, and compares their results. */
static void play_some(struct play *play, uint32_t *number)
{
	const uint32_t count = 1 + draw(&play->shared, 4);
	const bool grouped = draw(&play->shared, 2);
	spyre_stream *together = play->streams[draw(&play->own, STREAMS)];
	struct queued queued[4] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		struct queued *q = &queued[i];

		q->step = step_new(play, (*number)++);
		if (q->step.group->index == q->step.group->size)
			continue;
		side_open(play, &q->step, true, &q->send);
		side_open(play, &q->step, false, &q->recv);
		fill(play, &q->step, &q->send, true);
		fill(play, &q->step, &q->recv, false);
	}
	if (grouped)
		rank_ok(spyre_group_begin());
	for (uint32_t i = 0; i < count; i++)
		if (queued[i].send.host)
			rank_ok(call(&queued[i], grouped ? together :
				     play->streams[draw(&play->own, STREAMS)]));
	if (grouped)
		rank_ok(spyre_group_end());
	for (uint32_t i = 0; i < STREAMS; i++)
		rank_ok(spyre_stream_synchronize(play->streams[i]));
	for (uint32_t i = 0; i < count; i++) {
		if (!queued[i].send.host)
			continue;
		check(play, &queued[i]);
		side_close(play, &queued[i].send);
		side_close(play, &queued[i].recv);
	}
}

static void group_close(struct group *group)
{
	if (group->comm)
		rank_ok(spyre_comm_destroy(group->comm));
}

/* Divides the communicator of all ranks at random; those that are left out have no part in it. */
static void split(struct play *play)
{
	struct group *all = &play->groups[0], *made;
	const int32_t chosen = (int32_t)draw(&play->shared, 2);
	int32_t colors[MAX_RANKS], keys[MAX_RANKS];

	for (uint32_t i = 0; i < all->size; i++) {
		colors[i] = (int32_t)draw(&play->shared, 3) - 1;
		keys[i] = (int32_t)draw(&play->shared, 5) - 2;
	}
	if (play->num_groups == MAX_GROUPS)
		group_close(&play->groups[--play->num_groups]);
	made = &play->groups[play->num_groups];
	*made = (struct group){ 0 };
	for (int32_t key = -2; key <= 2; key++)
		for (uint32_t i = 0; i < all->size; i++)
			if (colors[i] == chosen && keys[i] == key)
				made->member[made->size++] = all->member[i];
	for (made->index = 0; made->index < made->size; made->index++)
		if (made->member[made->index] == play->rank->rank)
			break;
	rank_ok(spyre_comm_split(all->comm, colors[all->index], keys[all->index], NULL,
				 &made->comm));
	if (made->size && made->index < made->size) {
		play->num_groups++;
		return;
	}
	/* The communicator of another colour, or none: this rank only counts the chosen one. */
	group_close(made);
	made->comm = NULL;
	play->num_groups += made->size > 0;
}

/*
 * One rank aborts at a random moment, while all ranks work. Returns false if this rank is among
 * those that the shrink leaves out.
 */
static bool abort_and_shrink(struct play *play)
{
	struct group *all = &play->groups[0], rest = { 0 };
	const uint32_t aborts = draw(&play->shared, all->size);
	const uint32_t kept = draw(&play->shared, all->size);
	uint32_t excluded[MAX_RANKS], count = 0;
	spyre_status status = SPYRE_SUCCESS;
	bool stays;

	for (uint32_t i = 0; i < all->size; i++) {
		if (i != kept && !draw(&play->shared, 4))
			excluded[count++] = i;
		else
			rest.member[rest.size++] = all->member[i];
	}
	for (rest.index = 0; rest.index < rest.size; rest.index++)
		if (rest.member[rest.index] == play->rank->rank)
			break;
	stays = rest.index < rest.size;
	if (all->index == aborts) {
		/* After all ranks have ended what they have queued before. */
		rank_ok(spyre_barrier(all->comm, play->streams[0]));
		rank_ok(spyre_stream_synchronize(play->streams[0]));
		usleep(draw(&play->own, ABORT_US));
		rank_ok(spyre_comm_abort(all->comm));
	}
	while (!status) {
		status = spyre_barrier(all->comm, play->streams[draw(&play->own, STREAMS)]);
		for (uint32_t i = 0; !status && i < STREAMS; i++)
			status = spyre_stream_synchronize(play->streams[i]);
	}
	rank_check(status == SPYRE_ERROR_CANCELLED, "%s: %s", spyre_status_name(status),
		   spyre_last_error());
	rank_ok(spyre_context_reset(play->rank->context));
	while (play->num_groups > 1)
		group_close(&play->groups[--play->num_groups]);
	if (stays)
		rank_ok(spyre_comm_shrink(all->comm, excluded, count, NULL, &rest.comm));
	rank_ok(spyre_comm_destroy(all->comm));
	play->rank->comm = NULL;
	*all = rest;
	return stays;
}

static void play_all(struct rank *rank)
{
	const uint64_t seed = *(const uint64_t *)rank->argument;
	struct play play = {
		.rank = rank, .shared = seed + 1, .own = seed * MAX_RANKS + rank->rank + 1,
		.num_groups = 1,
	};
	uint32_t number = 0;

	for (uint32_t i = 0; i < STREAMS; i++)
		rank_ok(spyre_stream_create(rank->context, 0, &play.streams[i]));
	play.groups[0] = (struct group){
		.comm = rank->comm, .size = rank->size, .index = rank->rank,
	};
	for (uint32_t i = 0; i < rank->size; i++)
		play.groups[0].member[i] = i;
	for (int life = 0; life < 2; life++) {
		for (uint32_t end = number + STEPS; number < end;) {
			if (!draw(&play.shared, 5))
				split(&play);
			play_some(&play, &number);
		}
		if (!life && !abort_and_shrink(&play))
			break;
	}
	while (play.num_groups > 1)
		group_close(&play.groups[--play.num_groups]);
	if (play.groups[0].comm != rank->comm && play.groups[0].comm)
		group_close(&play.groups[0]);
	for (uint32_t i = 0; i < STREAMS; i++)
		rank_ok(spyre_stream_destroy(play.streams[i]));
}

static uint64_t setting(const char *name, uint64_t standard)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : standard;
}

static void run(uint64_t seed)
{
	static const char *const algorithms[] = { "auto", "one-shot", "owners" };
	static const char *const chunks[] = { "4", "16", "256" };
	const uint32_t size = 2 + (uint32_t)(seed % (MAX_RANKS - 1));

	setenv("SPYRE_COMM_ALGO", algorithms[seed / 7 % 3], 1);
	setenv("SPYRE_COMM_CHUNK_KIB", chunks[seed / 21 % 3], 1);
	fprintf(stderr, "# seed %llu: %u ranks\n", (unsigned long long)seed, size);
	ranks_run(seed % 3 ? RANKS_AS_PROCESSES : RANKS_AS_THREADS, size, play_all, &seed);
}

START_TEST(test_random)
{
	const uint64_t first = setting("SPYRE_TEST_SEED", 1);
	const uint64_t rounds = setting("SPYRE_TEST_ROUNDS", 7);

	for (uint64_t i = 0; i < rounds; i++)
		run(first + i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("comm_random");
	TCase *tcase = tcase_create("random");

	setenv("SPYRE_EMBEDDED_CARDS", "4", 0);
	tcase_set_timeout(tcase, 3600);
	tcase_add_test(tcase, test_random);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}

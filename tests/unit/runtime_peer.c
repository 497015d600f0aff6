/* SPDX-License-Identifier: MIT */
/* Copies between contexts and cards, and events across them. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime_check.h"

#define AREA (3u << 20)
#define CARDS 8

static uint8_t from[AREA], into[AREA], want[AREA];
static int cards;
static spyre_context *card[CARDS];
static spyre_stream *stream[CARDS];
static spyre_devptr area[CARDS];

static void open_cards(int n)
{
	for (int i = 0; i < n; i++) {
		ck_ok(spyre_context_create(i % cards, 0, &card[i]));
		stream[i] = get_stream(card[i], 1);
		ck_ok(spyre_mem_alloc(card[i], AREA, &area[i]));
	}
}

static void setup(void)
{
	ck_ok(spyre_device_count(&cards));
	ck_assert_int_gt(cards, 0);
	cards = cards < CARDS ? cards : CARDS;
	open_cards(CARDS);
}

static void teardown(void)
{
	for (int i = 0; i < CARDS; i++)
		ck_ok(spyre_context_destroy(card[i]));
}

/* Fails unless the bytes read back are @bytes of @expected, and tells where they are not. */
static void check_bytes(const uint8_t *expected, size_t bytes)
{
	size_t first = bytes, last = 0, count = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (into[i] == expected[i])
			continue;
		first = count++ ? first : i;
		last = i;
	}
	if (count)
		ck_abort_msg("%zu of %zu bytes differ, from byte %zu (0x%02x, expected 0x%02x) to byte %zu",
			     count, bytes, first, into[first], expected[first], last);
}

/* A host function that holds its stream until the test opens it. */
static _Atomic int gate, waits_at_gate;

static void wait_gate(void *data)
{
	atomic_store(&waits_at_gate, 1);
	while (!atomic_load(&gate))
		usleep(1000);
}

static void close_gate(spyre_stream *on)
{
	atomic_store(&gate, 0);
	atomic_store(&waits_at_gate, 0);
	ck_ok(spyre_stream_host_fn(on, wait_gate, NULL));
}

static spyre_peer_copy rows_of(int to, uint64_t target, uint64_t target_pitch, int of,
			       uint64_t source, uint64_t source_pitch, uint64_t bytes,
			       uint64_t rows)
{
	return (spyre_peer_copy){
		.struct_size = sizeof(spyre_peer_copy),
		.target_context = card[to], .target = area[to] + target,
		.target_pitch = target_pitch, .source_context = card[of],
		.source = area[of] + source, .source_pitch = source_pitch,
		.row_bytes = bytes, .rows = rows,
	};
}

/* Writes known bytes to both ends, copies rows on either end's stream, and compares all. */
static void check_rows(int to, int of, bool sends, const uint64_t n[6])
{
	spyre_peer_copy copy = rows_of(to, n[0], n[1], of, n[2], n[3], n[4], n[5]);

	random_bytes(from, AREA, n[4] + 1);
	random_bytes(want, AREA, n[5] + 2);
	ck_ok(spyre_memcpy_h2d(card[of], area[of], from, AREA));
	ck_ok(spyre_memcpy_h2d(card[to], area[to], want, AREA));
	for (uint64_t r = 0; r < n[5]; r++)
		memcpy(want + n[0] + r * n[1], from + n[2] + r * n[3], n[4]);
	ck_ok(spyre_memcpy_peer_2d_async(stream[sends ? of : to], &copy));
	ck_ok(spyre_stream_synchronize(stream[sends ? of : to]));
	ck_ok(spyre_memcpy_d2h(card[to], into, area[to], AREA));
	check_bytes(want, AREA);
	ck_ok(spyre_memcpy_d2h(card[of], into, area[of], AREA));
	check_bytes(from, AREA);
}

/* target, its pitch, source, its pitch, row, rows */
static const uint64_t shapes[][6] = {
	{ 0, 0, 0, 0, 1, 1 }, { 1, 0, 127, 0, 4097, 1 }, { 0, 0, 0, 0, AREA, 1 },
	{ 3, 0, 5, 0, AREA - 5, 1 }, { 0, 128, 0, 128, 128, 3000 },
	{ 64, 256, 128, 4096, 128, 700 }, { 7, 33, 11, 65, 31, 20000 },
	{ 0, 2, 1, 3, 1, 300000 }, { 0, 1 << 20, 512, 3 << 19, (1 << 20) - 1, 2 },
};

START_TEST(both_ways)
{
	const uint64_t *shape = shapes[_i % (sizeof(shapes) / sizeof(shapes[0]))];

	check_rows(1, 0, _i & 1, shape);
	check_rows(0, 5, !(_i & 1), shape);
}
END_TEST

START_TEST(random_shapes)
{
	uint64_t state = 4711;

	for (int i = 0; i < 40; i++) {
		uint64_t n[6] = { random_next(&state) % 5000, 0, random_next(&state) % 5000, 0,
				  1 + random_next(&state) % 3000, 1 + random_next(&state) % 400 };
		int to = random_next(&state) % CARDS, of = random_next(&state) % CARDS;

		n[1] = n[4] + random_next(&state) % 300;
		n[3] = n[4] + random_next(&state) % 300;
		if (to != of)
			check_rows(to, of, i & 1, n);
	}
}
END_TEST

/* One byte after another fits; one more row or a later start does not. */
START_TEST(out_of_range)
{
	spyre_peer_copy copy = rows_of(1, 0, 4096, 0, 0, 4096, 4096, AREA / 4096);
	spyre_devptr small;

	ck_ok(spyre_memcpy_peer_2d_async(stream[1], &copy));
	copy.rows++;
	ck_status(spyre_memcpy_peer_2d_async(stream[1], &copy), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("peer copy");
	copy.rows--;
	copy.source++;
	ck_status(spyre_memcpy_peer_2d_async(stream[1], &copy), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("source");
	copy.source--;
	copy.target++;
	ck_status(spyre_memcpy_peer_2d_async(stream[1], &copy), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("target");
	ck_ok(spyre_mem_alloc(card[0], 128, &small));
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], small, 128));
	ck_status(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], small, 129),
		  SPYRE_ERROR_INVALID_ADDRESS);
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_ok(spyre_mem_free(card[0], small));
	ck_status(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], small, 128),
		  SPYRE_ERROR_INVALID_ADDRESS);
	ck_status(spyre_memcpy_peer_async(stream[0], card[0], small, card[1], area[1], 128),
		  SPYRE_ERROR_INVALID_ADDRESS);
}
END_TEST

START_TEST(refusals)
{
	spyre_peer_copy copy = rows_of(1, 0, 64, 0, 0, 64, 64, 10);
	spyre_peer_path path;

	ck_status(spyre_memcpy_peer_2d_async(NULL, &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_memcpy_peer_2d_async(stream[1], NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_memcpy_peer_2d_async(stream[2], &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("third context");
	ck_status(spyre_memcpy_peer_async(stream[1], card[1], area[1], NULL, area[0], 1),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	copy.struct_size = sizeof(size_t);
	ck_status(spyre_memcpy_peer_2d_async(stream[1], &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	copy.struct_size = sizeof(copy);
	copy.target_pitch = 63;
	ck_status(spyre_memcpy_peer_2d_async(stream[1], &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("pitch");
	copy.target_pitch = UINT64_MAX / 2;
	ck_status(spyre_memcpy_peer_2d_async(stream[1], &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	copy.target_pitch = 64;
	copy.rows = (UINT64_C(1) << 31) + 1;
	ck_status(spyre_memcpy_peer_2d_async(stream[1], &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("2^31 rows");
	copy.rows = 1;
	copy.row_bytes = UINT64_MAX;
	ck_status(spyre_memcpy_peer_2d_async(stream[1], &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	copy.row_bytes = 0;
	ck_ok(spyre_memcpy_peer_2d_async(stream[1], &copy));
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], 0));
	ck_status(spyre_peer_can_access(card[0], card[1], NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_peer_can_access(card[0], NULL, &path), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_device_get_peer_path(0, 0, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_device_get_peer_path(0, cards, &path), SPYRE_ERROR_NO_DEVICE);
	ck_status(spyre_device_get_peer_path(-1, 0, &path), SPYRE_ERROR_NO_DEVICE);
}
END_TEST

/* Cards 0 to 3 and 4 to 7 share a switch. */
START_TEST(paths)
{
	for (int a = 0; a < CARDS; a++) {
		for (int b = 0; b < CARDS; b++) {
			int x = a % cards, y = b % cards;
			spyre_peer_path path;

			ck_ok(spyre_peer_can_access(card[a], card[b], &path));
			ck_assert_int_eq(path, x == y ? SPYRE_PEER_SAME_CARD :
					       x / 4 == y / 4 ? SPYRE_PEER_SWITCH :
								SPYRE_PEER_HOST);
			path = SPYRE_PEER_NONE;
			ck_ok(spyre_device_get_peer_path(x, y, &path));
			ck_assert_int_eq(path, x == y ? SPYRE_PEER_SAME_CARD :
					       x / 4 == y / 4 ? SPYRE_PEER_SWITCH :
								SPYRE_PEER_HOST);
		}
	}
}
END_TEST

/* Two contexts of one card, and one context with itself. */
START_TEST(one_card)
{
	static const uint64_t shape[6] = { 9, 300, 1, 200, 150, 77 };
	spyre_peer_copy copy = rows_of(0, 64, 256, 0, 0, 256, 64, 100);

	ck_ok(spyre_context_destroy(card[1]));
	ck_ok(spyre_context_create(0, 0, &card[1]));
	stream[1] = get_stream(card[1], 1);
	ck_ok(spyre_mem_alloc(card[1], AREA, &area[1]));
	check_rows(1, 0, false, shape);
	check_rows(0, 1, false, shape);

	/* Columns of a matrix to others: the rows lie between each other and do not overlap. */
	random_bytes(from, AREA, 5);
	ck_ok(spyre_memcpy_h2d(card[0], area[0], from, AREA));
	memcpy(want, from, AREA);
	for (int r = 0; r < 100; r++)
		memcpy(want + 64 + r * 256, from + r * 256, 64);
	ck_ok(spyre_memcpy_peer_2d_async(stream[0], &copy));
	ck_ok(spyre_stream_synchronize(stream[0]));
	ck_ok(spyre_memcpy_d2h(card[0], into, area[0], AREA));
	check_bytes(want, AREA);

	copy.target--;
	ck_status(spyre_memcpy_peer_2d_async(stream[0], &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("overlap");
	copy.target += 129;
	ck_ok(spyre_memcpy_peer_2d_async(stream[0], &copy));
	copy.target++;
	ck_status(spyre_memcpy_peer_2d_async(stream[0], &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	copy.target = copy.source;
	ck_status(spyre_memcpy_peer_2d_async(stream[0], &copy), SPYRE_ERROR_INVALID_ARGUMENT);

	ck_ok(spyre_stream_synchronize(stream[0]));

	/* A copy of bytes within a context may overlap, in both directions. */
	ck_ok(spyre_memcpy_d2h(card[0], want, area[0], AREA));
	memmove(want + 1000, want, 2u << 20);
	memmove(want, want + 500, 2u << 20);
	ck_ok(spyre_memcpy_peer_async(stream[0], card[0], area[0] + 1000, card[0], area[0],
				      2u << 20));
	ck_ok(spyre_memcpy_peer_async(stream[0], card[0], area[0], card[0], area[0] + 500,
				      2u << 20));
	ck_ok(spyre_stream_synchronize(stream[0]));
	ck_ok(spyre_memcpy_d2h(card[0], into, area[0], AREA));
	check_bytes(want, AREA);
}
END_TEST

/* The source is freed, and its memory wanted again, before the copy starts. */
START_TEST(freed_behind)
{
	const size_t sizes[] = { 4096, 2u << 20 };
	const size_t size = sizes[_i];
	uint8_t other = 0x77;
	spyre_devptr source, next[8];

	ck_ok(spyre_mem_alloc(card[0], size, &source));
	random_bytes(from, size, 3);
	ck_ok(spyre_memcpy_h2d(card[0], source, from, size));
	close_gate(stream[1]);
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], source, size));
	ck_ok(spyre_mem_free(card[0], source));
	for (int i = 0; i < 8; i++) {
		ck_ok(spyre_mem_alloc(card[0], size, &next[i]));
		ck_assert_uint_ne(next[i], source);
		ck_ok(spyre_memset_async(stream[0], next[i], &other, 1, size));
	}
	ck_ok(spyre_stream_synchronize(stream[0]));
	atomic_store(&gate, 1);
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_ok(spyre_memcpy_d2h(card[1], into, area[1], size));
	check_bytes(from, size);
}
END_TEST

static _Atomic int destroyed;

static void *destroy_context(void *context)
{
	ck_ok(spyre_context_destroy(context));
	atomic_store(&destroyed, 1);
	return NULL;
}

/* The destruction of the source's context waits for the copy. */
START_TEST(destroyed_behind)
{
	pthread_t thread;

	random_bytes(from, AREA, 3);
	ck_ok(spyre_memcpy_h2d(card[0], area[0], from, AREA));
	close_gate(stream[1]);
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], AREA));
	atomic_store(&destroyed, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, destroy_context, card[0]), 0);
	usleep(50000);
	ck_assert_int_eq(atomic_load(&destroyed), 0);
	atomic_store(&gate, 1);
	pthread_join(thread, NULL);
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_ok(spyre_memcpy_d2h(card[1], into, area[1], AREA));
	check_bytes(from, AREA);
	ck_ok(spyre_context_create(0, 0, &card[0]));
}
END_TEST

static _Atomic spyre_status called;

static void destroy_here(void *context)
{
	atomic_store(&called, spyre_context_destroy(context));
}

/* A host function may destroy another context, unless its own stream still copies from it. */
START_TEST(destroyed_by_its_user)
{
	ck_ok(spyre_stream_host_fn(stream[1], destroy_here, card[0]));
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_assert_int_eq(atomic_load(&called), SPYRE_SUCCESS);
	ck_ok(spyre_context_create(0, 0, &card[0]));
	ck_ok(spyre_mem_alloc(card[0], AREA, &area[0]));
	close_gate(stream[1]);
	ck_ok(spyre_stream_host_fn(stream[1], destroy_here, card[0]));
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], 128));
	atomic_store(&gate, 1);
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_assert_int_eq(atomic_load(&called), SPYRE_ERROR_BUSY);
}
END_TEST

/* The user of the memory goes first; the memory is free afterwards. */
START_TEST(user_destroyed)
{
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], AREA));
	ck_ok(spyre_mem_free(card[0], area[0]));
	ck_ok(spyre_context_destroy(card[1]));
	ck_ok(spyre_context_synchronize(card[0]));
	ck_assert_uint_eq(memory_info(card[0]).context_used, 0);
	ck_ok(spyre_context_create(1 % cards, 0, &card[1]));
}
END_TEST

/* The other card is reset before or while the copy runs: named, and only that stream. */
START_TEST(peer_card_reset)
{
	const bool in_flight = _i;
	spyre_stream *other = get_stream(card[1], 2);
	spyre_context_state state = { .struct_size = sizeof(state) };

	/* Only root resets a card of the kernel. */
	if (cards < 2 || (!is_embedded(card[0]) && getuid()))
		return;
	if (in_flight)
		close_gate(stream[1]);
	else
		ck_ok(spyre_device_reset(0, 0));
	if (in_flight) {
		ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], AREA));
		ck_ok(spyre_device_reset(0, 0));
		atomic_store(&gate, 1);
		ck_status(spyre_stream_synchronize(stream[1]), SPYRE_ERROR_PEER_LOST);
	} else {
		ck_status(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0],
						  AREA), SPYRE_ERROR_PEER_LOST);
	}
	ck_ok(spyre_memset_async(other, area[1], &in_flight, 1, AREA));
	ck_ok(spyre_stream_synchronize(other));
	if (in_flight) {
		ck_ok(spyre_context_get_state(card[1], &state));
		ck_assert_int_eq(state.status, SPYRE_ERROR_PEER_LOST);
		ck_ok(spyre_context_reset(card[1]));
	}
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[2], area[2], AREA));
	ck_ok(spyre_stream_synchronize(stream[1]));
}
END_TEST

/* A reset of the other context alone keeps its memory, and the copy. */
START_TEST(peer_context_reset)
{
	random_bytes(from, AREA, 9);
	ck_ok(spyre_memcpy_h2d(card[0], area[0], from, AREA));
	close_gate(stream[1]);
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], AREA));
	ck_ok(spyre_context_reset(card[0]));
	atomic_store(&gate, 1);
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_ok(spyre_memcpy_d2h(card[1], into, area[1], AREA));
	check_bytes(from, AREA);
}
END_TEST

/* The waiter's context is reset while the other stream holds: the reset does not wait. */
START_TEST(wait_reset)
{
	const bool submitted = _i;
	spyre_event *event;

	ck_ok(spyre_event_create(card[0], 0, &event));
	close_gate(stream[0]);
	ck_ok(spyre_event_record(event, stream[0]));
	ck_ok(spyre_stream_wait_event(stream[1], event));
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], AREA));
	if (submitted)
		usleep(20000);
	ck_ok(spyre_context_reset(card[1]));
	ck_status(spyre_event_query(event), SPYRE_NOT_READY);
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[2], area[2], AREA));
	ck_ok(spyre_stream_synchronize(stream[1]));
	atomic_store(&gate, 1);
	ck_ok(spyre_event_synchronize(event));
	ck_ok(spyre_event_destroy(event));
}
END_TEST

/* The recording context is reset: the wait ends, the event says why. */
START_TEST(record_reset)
{
	spyre_event *event;

	ck_ok(spyre_event_create(card[0], 0, &event));
	close_gate(stream[0]);
	ck_ok(spyre_event_record(event, stream[0]));
	ck_ok(spyre_stream_wait_event(stream[1], event));
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[2], area[2], AREA));
	ck_status(spyre_stream_query(stream[1]), SPYRE_NOT_READY);
	atomic_store(&gate, 1);
	ck_ok(spyre_context_reset(card[0]));
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_ok(spyre_event_destroy(event));
}
END_TEST

/* A chain over all cards: each card adds its byte to what the one before sent. */
START_TEST(chain)
{
	spyre_event *event[CARDS];

	for (int i = 0; i < CARDS; i++)
		ck_ok(spyre_event_create(card[i], i & 1 ? SPYRE_EVENT_NO_TIMING : 0, &event[i]));
	for (int round = 0; round < 50; round++) {
		if (round % 5 == 4)
			close_gate(stream[0]);
		for (int i = 0; i < CARDS; i++) {
			uint8_t mine = round * CARDS + i;

			if (i) {
				ck_ok(spyre_stream_wait_event(stream[i], event[i - 1]));
				ck_ok(spyre_memcpy_peer_async(stream[i], card[i], area[i],
							      card[i - 1], area[i - 1], 4096));
			}
			ck_ok(spyre_memset_async(stream[i], area[i] + i * 512, &mine, 1, 512));
			ck_ok(spyre_event_record(event[i], stream[i]));
		}
		/* The first card must not overwrite what the second one still reads. */
		ck_ok(spyre_stream_wait_event(stream[0], event[CARDS - 1]));
		atomic_store(&gate, 1);
		ck_ok(spyre_memcpy_d2h_async(stream[CARDS - 1], into, area[CARDS - 1], 4096));
		ck_ok(spyre_stream_synchronize(stream[CARDS - 1]));
		for (int i = 0; i < 4096; i++)
			want[i] = round * CARDS + i / 512;
		check_bytes(want, 4096);
	}
	for (int i = 0; i < CARDS; i++)
		ck_ok(spyre_event_destroy(event[i]));
}
END_TEST

/* What a child of fork() does with contexts of its own; returns its exit status. */
static int copy_in_child(void)
{
	spyre_context *own[2];
	spyre_devptr memory[2];
	spyre_stream *work;
	spyre_status status = SPYRE_SUCCESS;

	for (int i = 0; i < 2; i++) {
		status = status ? status : spyre_context_create(i % cards, 0, &own[i]);
		status = status ? status : spyre_mem_alloc(own[i], 1 << 20, &memory[i]);
	}
	status = status ? status : spyre_stream_get(own[1], 0, &work);
	if (!status)
		status = spyre_memcpy_peer_async(work, own[1], memory[1], own[0], memory[0],
						 1 << 20);
	status = status ? status : spyre_mem_free(own[0], memory[0]);
	status = status ? status : spyre_context_destroy(own[0]);
	return status || spyre_stream_synchronize(work) || spyre_context_destroy(own[1]);
}

/* The parent has a copy under way. */
START_TEST(forked)
{
	int status;
	pid_t child;

	close_gate(stream[1]);
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], AREA));
	/* A thread that allocates during fork() leaves a lock to the child, if ASan allocates. */
	while (!atomic_load(&waits_at_gate))
		usleep(1000);
	child = fork();
	if (!child)
		_exit(copy_in_child());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
	atomic_store(&gate, 1);
	ck_ok(spyre_stream_synchronize(stream[1]));
}
END_TEST

/*
 * Memory that another context allocated, and that the far one has imported, as a process does
 * with another one's: from an offset on.
 */
START_TEST(imported)
{
	spyre_context *owner;
	spyre_devptr memory, shared;
	uint64_t offset;
	int fd;

	if (is_embedded(card[0]))
		return;
	ck_ok(spyre_context_create(0, 0, &owner));
	ck_ok(spyre_mem_alloc(owner, AREA, &memory));
	random_bytes(from, AREA, 21);
	ck_ok(spyre_memcpy_h2d(owner, memory, from, AREA));
	ck_ok(spyre_mem_export_dmabuf(owner, memory, &fd, &offset, NULL));
	ck_status(spyre_mem_import_dmabuf(card[cards > 1], fd, offset, AREA, &shared),
		  cards > 1 ? SPYRE_ERROR_INVALID_ARGUMENT : SPYRE_SUCCESS);
	if (cards > 1)
		ck_mentions("spyre_memcpy_peer_async");
	ck_ok(spyre_mem_import_dmabuf(card[0], fd, offset + 8192, AREA - 8192, &shared));
	close(fd);
	ck_ok(spyre_context_destroy(owner));
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], shared + 128, 1 << 20));
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_ok(spyre_memcpy_d2h(card[1], into, area[1], 1 << 20));
	check_bytes(from + 8192 + 128, 1 << 20);
	ck_ok(spyre_mem_free(card[0], shared));
}
END_TEST

START_TEST(captures)
{
	spyre_graph *graph;
	spyre_event *event;

	ck_ok(spyre_event_create(card[0], 0, &event));
	ck_ok(spyre_stream_begin_capture(stream[0]));
	ck_status(spyre_memcpy_peer_async(stream[0], card[1], area[1], card[0], area[0], 128),
		  SPYRE_ERROR_CAPTURE);
	ck_mentions("graph");
	ck_ok(spyre_event_record(event, stream[0]));
	ck_status(spyre_stream_wait_event(stream[1], event), SPYRE_ERROR_CAPTURE);
	ck_ok(spyre_stream_end_capture(stream[0], &graph));
	ck_ok(spyre_graph_destroy(graph));
	ck_ok(spyre_memcpy_peer_async(stream[0], card[1], area[1], card[0], area[0], 128));
	ck_ok(spyre_stream_synchronize(stream[0]));
	ck_ok(spyre_event_destroy(event));
}
END_TEST

/* Bytes and cycles: 42 bytes a cycle and 1,500 to start, or twice the bytes and 4,500. */
START_TEST(counters)
{
	const uint64_t bytes = 1u << 20;
	spyre_stream_stats near = { .struct_size = sizeof(near) }, far = near, before = near;
	spyre_activity record;
	spyre_activity_log *log;
	uint32_t n;

	if (cards < CARDS)
		return;
	ck_ok(spyre_activity_open(0, &log));
	ck_ok(spyre_stream_get_stats(stream[1], &before));
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], bytes));
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_ok(spyre_stream_get_stats(stream[1], &near));
	ck_assert_uint_eq(near.rdma_read, bytes);
	ck_assert_uint_eq(near.rdma_written, 0);
	ck_assert_uint_eq(near.bytes_read, 0);
	ck_assert_uint_eq(near.bytes_written, bytes);
	ck_assert_uint_eq(near.cycles, (bytes + 41) / 42 + 1500);
	ck_assert_uint_eq(near.copies, 1);
	ck_ok(spyre_activity_read(log, &record, sizeof(record), 1, &n, NULL));
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(record.kind, SPYRE_ACTIVITY_COPY_PEER);
	ck_assert_uint_eq(record.rdma_read, bytes);
	ck_assert_str_eq(record.name, "peer copy");

	ck_ok(spyre_memcpy_peer_async(stream[2], card[6], area[6], card[2], area[2], bytes));
	ck_ok(spyre_stream_synchronize(stream[2]));
	ck_ok(spyre_stream_get_stats(stream[2], &far));
	ck_assert_uint_eq(far.rdma_written, bytes);
	ck_assert_uint_eq(far.rdma_read, 0);
	ck_assert_uint_eq(far.bytes_read, bytes);
	ck_assert_uint_eq(far.cycles, (2 * bytes + 41) / 42 + 4500);
	ck_ok(spyre_stream_get_stats(stream[6], &near));
	ck_assert_uint_eq(near.rdma_read + near.rdma_written + near.cycles, 0);
	ck_ok(spyre_activity_close(log));
}
END_TEST

static uint64_t rdma_read_of(int device)
{
	spyre_telemetry_card all[64];
	int n;

	ck_ok(spyre_telemetry_cards(all, sizeof(all[0]), 64, &n));
	for (int i = 0; i < n && i < 64; i++)
		if (all[i].properties.physical_index == device &&
		    (!all[i].host_pid || all[i].host_pid == getpid()))
			return all[i].rdma_read;
	ck_abort_msg("card %d has no reading", device);
	return 0;
}

START_TEST(telemetry)
{
	uint64_t before;

	if (cards < 2)
		return;
	before = rdma_read_of(1);
	/* The kernel shows exact totals to root alone. */
	if (before == UINT64_MAX)
		return;
	ck_ok(spyre_memcpy_peer_async(stream[1], card[1], area[1], card[0], area[0], 12345));
	ck_ok(spyre_memcpy_peer_async(stream[0], card[1], area[1], card[0], area[0], 1000));
	ck_ok(spyre_stream_synchronize(stream[0]));
	ck_ok(spyre_stream_synchronize(stream[1]));
	ck_assert_uint_eq(rdma_read_of(1) - before, 12345);
}
END_TEST

/* Each thread owns a card; it pulls from the next one while that one pulls from it. */
static pthread_barrier_t barrier;

static void *exchange(void *arg)
{
	const int me = (uintptr_t)arg, next = (me + 1) % CARDS;
	uint8_t *host = malloc(1 << 16);
	spyre_devptr mine;

	ck_ok(spyre_mem_alloc(card[me], 1 << 16, &mine));
	for (int round = 0; round < 40; round++) {
		uint8_t value = me * 40 + round, theirs = next * 40 + round;
		bool ok = true;

		ck_ok(spyre_memset_async(stream[me], area[me], &value, 1, 1 << 16));
		ck_ok(spyre_stream_synchronize(stream[me]));
		pthread_barrier_wait(&barrier);
		ck_ok(spyre_memcpy_peer_async(stream[me], card[me], mine, card[next], area[next],
					      1 << 16));
		ck_ok(spyre_memcpy_d2h_async(stream[me], host, mine, 1 << 16));
		ck_ok(spyre_mem_free(card[me], mine));
		ck_ok(spyre_stream_synchronize(stream[me]));
		for (int i = 0; i < 1 << 16; i++)
			ok &= host[i] == theirs;
		ck_assert(ok);
		ck_ok(spyre_mem_alloc(card[me], 1 << 16, &mine));
		pthread_barrier_wait(&barrier);
	}
	free(host);
	return NULL;
}

START_TEST(threads)
{
	pthread_t thread[CARDS];

	pthread_barrier_init(&barrier, NULL, CARDS);
	for (uintptr_t i = 0; i < CARDS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, exchange, (void *)i), 0);
	for (int i = 0; i < CARDS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&barrier);
}
END_TEST

/* Threads wait for each other's events while contexts come and go. */
static void *come_and_go(void *arg)
{
	const int me = (uintptr_t)arg;

	/* A reset may cancel the fill, but the last round has none. */
	for (int round = 0; round < 13; round++) {
		spyre_context *own;
		spyre_stream *work;
		spyre_devptr memory;
		spyre_event *event;

		ck_ok(spyre_context_create(me % cards, 0, &own));
		work = get_stream(own, 0);
		ck_ok(spyre_mem_alloc(own, 1 << 20, &memory));
		ck_ok(spyre_event_create(own, 0, &event));
		ck_ok(spyre_memset_async(work, memory, &me, 4, 1 << 20));
		ck_ok(spyre_event_record(event, work));
		ck_ok(spyre_stream_wait_event(stream[me], event));
		ck_ok(spyre_memcpy_peer_async(stream[me], card[me], area[me], own, memory,
					      1 << 20));
		ck_ok(spyre_event_record(event, work));
		ck_ok(spyre_stream_wait_event(stream[(me + 1) % CARDS], event));
		ck_ok(spyre_event_destroy(event));
		ck_ok(spyre_mem_free(own, memory));
		if (round % 3 == 2)
			ck_ok(spyre_context_reset(own));
		ck_ok(spyre_context_destroy(own));
		ck_ok(spyre_stream_synchronize(stream[me]));
	}
	return NULL;
}

START_TEST(short_lived)
{
	pthread_t thread[CARDS];

	for (uintptr_t i = 0; i < CARDS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, come_and_go, (void *)i), 0);
	for (int i = 0; i < CARDS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < CARDS; i++) {
		ck_ok(spyre_memcpy_d2h(card[i], into, area[i], 1 << 20));
		ck_assert(all_words((uint32_t *)(void *)into, 1 << 18, i));
	}
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("peer");

	/* The kernel's cards are those that the module was loaded with. */
	setenv("SPYRE_EMBEDDED_CARDS", "8", 0);
	setenv("SPYRE_EMBEDDED_LPDDR_MIB", "64", 0);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, both_ways, 0, sizeof(shapes) / sizeof(shapes[0]));
	tcase_add_test(tests, random_shapes);
	tcase_add_test(tests, out_of_range);
	tcase_add_test(tests, refusals);
	tcase_add_test(tests, paths);
	tcase_add_test(tests, one_card);
	tcase_add_loop_test(tests, freed_behind, 0, 2);
	tcase_add_test(tests, destroyed_behind);
	tcase_add_test(tests, destroyed_by_its_user);
	tcase_add_test(tests, user_destroyed);
	tcase_add_loop_test(tests, peer_card_reset, 0, 2);
	tcase_add_test(tests, peer_context_reset);
	tcase_add_loop_test(tests, wait_reset, 0, 2);
	tcase_add_test(tests, record_reset);
	tcase_add_test(tests, chain);
	tcase_add_test(tests, imported);
	tcase_add_test(tests, forked);
	tcase_add_test(tests, captures);
	tcase_add_test(tests, counters);
	tcase_add_test(tests, telemetry);
	tcase_add_test(tests, threads);
	tcase_add_test(tests, short_lived);
	return run_suite("peer", tests);
}

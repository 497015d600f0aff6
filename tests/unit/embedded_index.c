// SPDX-License-Identifier: MIT
/*
 * An index beyond its extent on an embedded card: the context of the program fails
 * with -EFAULT, that of another user of the card goes on.
 */
#include <errno.h>
#include <stdlib.h>

#include <check.h>

#include "libspyre/backend/backend.h"
#include "model_build.h"
#include "suite.h"
#include "tests/order.h"

#define ROWS 8u
#define POINTS 16u
#define STICK 128u
#define OUT_VA 0x100000ull
#define TABLE_VA 0x200000ull
#define INDEX_VA 0x300000ull

static const struct spyre_backend_ops *const ops = &spyre_backend_embedded;

struct user {
	struct spyre_card *card;
	struct spyre_queue *queue;
	struct spyre_program_handle *program;
	uint64_t point;
};

/* out[p, :] = table[index[p], :] */
static void *gather(size_t *size)
{
	static struct builder b;
	struct spyre_program program;
	struct spyre_verify_error err;
	struct spyre_instr *in;
	struct spyre_view *view;
	void *image;

	build_start(&b, 1, 0, 3);
	build_phase(&b);
	build_stream(&b, 0);
	in = build_instr(&b, SPYRE_OP_GATHER, SPYRE_FUNC_NONE, 1, 64);
	build_more_views(&b, in, 1);
	in->count[0] = POINTS;
	in->reduce_mask = 1;
	in->imm[0] = ROWS;
	build_view(in, 0, 0, 0)->stride[0] = STICK;
	build_view(in, 1, 1, 0)->stride[0] = STICK;
	view = build_view(in, 2, 2, 0);
	view->format = SPYRE_FMT_IEEE_INT32;
	view->lanes = SPYRE_LANES_SPLAT;
	view->stride[0] = 4;
	image = build_image(&b, size);
	ck_assert(build_settle(image, *size, 32, &program, &err));
	return image;
}

static struct user user_open(void)
{
	static const uint64_t va[] = { OUT_VA, TABLE_VA, INDEX_VA };
	struct spyre_verify_error why;
	struct user u = { 0 };
	size_t size;
	void *image = gather(&size);

	ck_assert_int_eq(ops->open(0, &u.card), SPYRE_SUCCESS);
	ck_assert_int_eq(ops->queue_create(u.card, 0, &u.queue), SPYRE_SUCCESS);
	ck_assert_int_eq(ops->program_create(u.card, &image, size, &u.program, &why),
			 SPYRE_SUCCESS);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(ops->mem_map(u.card, va[i], SPYRE_VA_PAGE), SPYRE_SUCCESS);
	free(image);
	return u;
}

static void user_close(struct user *u)
{
	static const uint64_t va[] = { OUT_VA, TABLE_VA, INDEX_VA };

	ops->queue_destroy(u->queue);
	ops->program_destroy(u->program);
	for (int i = 0; i < 3; i++)
		ops->mem_unmap(u->card, va[i], SPYRE_VA_PAGE);
	ops->close(u->card);
}

/* Sets all indices, runs the program twice in one submission; the two statuses. */
static void run(struct user *u, uint32_t index, int status[2])
{
	const uint64_t args[] = { OUT_VA, TABLE_VA, INDEX_VA };
	struct spyre_command commands[3] = {
		{ .type = SPYRE_COMMAND_FILL,
		  .fill = { .dst = INDEX_VA, .bytes = POINTS * 4, .pattern_bytes = 4 } },
		{ .type = SPYRE_COMMAND_EXEC,
		  .exec = { .program = u->program, .args = args, .num_args = 3 } },
	};
	struct spyre_submission submission = {
		.commands = commands, .num_commands = 3, .point = ++u->point,
	};

	put_le(commands[0].fill.pattern, index, 4);
	commands[2] = commands[1];
	ck_assert_int_eq(ops->submit(u->queue, &submission), SPYRE_SUCCESS);
	ck_assert_int_eq(ops->wait(u->queue, u->point, INT64_MAX), SPYRE_SUCCESS);
	status[0] = u->queue->results[1].status;
	status[1] = u->queue->results[2].status;
}

START_TEST(test_index)
{
	static const uint32_t bad[] = { ROWS, 0x7fffffff, 0x80000000, 0xffffffff };
	struct user u = user_open(), other = user_open();
	struct spyre_card_state state;
	int status[2];

	run(&u, ROWS - 1, status);
	ck_assert_int_eq(status[0], 0);
	ck_assert_int_eq(status[1], 0);
	run(&u, bad[_i], status);
	ck_assert_int_eq(status[0], -EFAULT);
	ck_assert_int_eq(status[1], -ECANCELED);
	ck_assert_int_eq(ops->state(u.card, &state), SPYRE_SUCCESS);
	ck_assert_int_eq(state.health, SPYRE_CONTEXT_FAULTED);
	run(&other, ROWS - 1, status);
	ck_assert_int_eq(status[0], 0);
	ck_assert_int_eq(ops->state(other.card, &state), SPYRE_SUCCESS);
	ck_assert_int_eq(state.health, SPYRE_CONTEXT_OK);
	ck_assert_int_eq(ops->context_reset(u.card, false), SPYRE_SUCCESS);
	ck_assert_int_eq(ops->queue_renew(u.queue, 0), SPYRE_SUCCESS);
	run(&u, 0, status);
	ck_assert_int_eq(status[0], 0);
	user_close(&u);
	user_close(&other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("embedded_index");
	TCase *tc = tcase_create("index");

	tcase_add_loop_test(tc, test_index, 0, 4);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}

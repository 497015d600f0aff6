/* SPDX-License-Identifier: MIT */
/*
 * The drm backend on a card. Skipped without an accel node that this user may open;
 * the virtual machine of scripts/test has one.
 */
#include "config.h"
#include "suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libspyre/backend/drm.h"

#define MIB (UINT64_C(1) << 20)
#define VA (UINT64_C(1) << SPYRE_SEGMENT_SHIFT)

static const struct spyre_backend_ops *const ops = &spyre_backend_drm;
static struct spyre_card *card;
static struct spyre_queue *queue;

static void ok(spyre_status status)
{
	ck_assert_msg(status == SPYRE_SUCCESS, "%s: %s", spyre_status_name(status),
		      spyre_last_error());
}

static void setup(void)
{
	ok(ops->open(0, &card));
	ok(ops->queue_create(card, 0, &queue));
}

static void teardown(void)
{
	ops->queue_destroy(queue);
	ops->close(card);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static struct spyre_command fill(uint64_t dst, uint64_t bytes, uint8_t value)
{
	return (struct spyre_command){
		.type = SPYRE_COMMAND_FILL,
		.fill = { .dst = dst, .bytes = bytes, .pattern = { value }, .pattern_bytes = 1 },
	};
}

static struct spyre_dma_desc rows(enum spyre_dma_dir direction, uint32_t count)
{
	return (struct spyre_dma_desc){
		.direction = direction,
		.host_format = SPYRE_FMT_SENINT8,
		.device_format = SPYRE_FMT_SENINT8,
		.num_dims = 2,
		.dim = { { .count = count, .host_stride = 128 },
			 { .count = 128, .host_stride = 1 } },
	};
}

static struct spyre_command dma(const struct spyre_dma_desc *desc, uint64_t device, void *host)
{
	return (struct spyre_command){
		.type = SPYRE_COMMAND_DMA,
		.dma = { .desc = desc, .device = device, .host = host,
			 .host_bytes = desc->dim[0].count * UINT64_C(128) },
	};
}

static spyre_status submit(struct spyre_queue *to, const struct spyre_command *commands,
			   uint32_t count, uint32_t first_result, uint64_t point)
{
	struct spyre_submission submission = {
		.commands = commands, .num_commands = count, .first_result = first_result,
		.point = point,
	};

	return ops->submit(to, &submission);
}

START_TEST(properties_agree_with_the_card)
{
	spyre_device_properties p = { .struct_size = sizeof(p) };

	ok(ops->properties(0, &p));
	ck_assert_uint_eq(p.num_cores, card->properties.num_cores);
	ck_assert_uint_eq(p.lx_bytes, card->properties.lx_bytes);
	ck_assert_uint_eq(p.clock_khz, card->properties.clock_khz);
	ck_assert_uint_eq(p.memory_bytes, card->properties.memory_bytes);
	ck_assert_str_eq(p.unit, card->properties.unit);
	ck_assert_uint_eq(p.stick_bytes, 128);
	ck_assert_uint_eq(strlen(p.uuid), 36);
	ck_assert(fcntl(spyre_drm_card(card)->fd, F_GETFD) & FD_CLOEXEC);
}
END_TEST

START_TEST(memory_is_counted_and_given_back)
{
	uint64_t total, before, used;

	ok(ops->mem_info(card, &total, &before));
	ok(ops->mem_map(card, VA, 4 * MIB));
	ok(ops->mem_map(card, VA + 4 * MIB, 4096));
	ok(ops->mem_info(card, &total, &used));
	ck_assert_uint_eq(used, before + 4 * MIB + 4096);
	ops->mem_unmap(card, VA, 4 * MIB);
	ops->mem_unmap(card, VA + 4 * MIB, 4096);
	ok(ops->mem_info(card, &total, &used));
	ck_assert_uint_eq(used, before);
}
END_TEST

START_TEST(error_of_too_much_memory_has_the_numbers)
{
	uint64_t total, used;
	char text[32];

	ok(ops->mem_info(card, &total, &used));
	ck_assert_int_eq(ops->mem_map(card, VA, total + 4096), SPYRE_ERROR_OUT_OF_DEVICE_MEMORY);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)total);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), text));
	/* The error is not sticky, and the address is free. */
	ok(ops->mem_map(card, VA, 4096));
	ops->mem_unmap(card, VA, 4096);
}
END_TEST

START_TEST(commands_in_order_with_results)
{
	struct spyre_dma_desc in = rows(SPYRE_DMA_H2D, 32), out = rows(SPYRE_DMA_D2H, 64);
	static uint8_t source[4096], target[8192];
	struct spyre_command commands[] = {
		fill(VA, 8192, 0x5a),
		dma(&in, VA, source),
		{ .type = SPYRE_COMMAND_COPY,
		  .copy = { .dst = VA + 4096, .src = VA + 100, .bytes = 1000 } },
		dma(&out, VA, target),
		{ .type = SPYRE_COMMAND_TIMESTAMP },
	};
	uint64_t started = now_ns();
	int i;

	for (i = 0; i < 4096; i++)
		source[i] = i * 7 + i / 256;
	ok(ops->mem_map(card, VA, 8192));
	ok(submit(queue, commands, 5, 100, 1));
	ok(ops->wait(queue, 1, INT64_MAX));
	ck_assert_uint_eq(ops->completed(queue), 1);
	ck_assert_mem_eq(target, source, 4096);
	ck_assert_mem_eq(target + 4096, source + 100, 1000);
	for (i = 4096 + 1000; i < 8192; i++)
		ck_assert_uint_eq(target[i], 0x5a);
	for (i = 100; i < 105; i++) {
		ck_assert_uint_eq(queue->results[i].state, 1);
		ck_assert_int_eq(queue->results[i].status, 0);
		ck_assert_uint_ge(queue->results[i].start_ns, started);
		ck_assert_uint_ge(queue->results[i].end_ns, queue->results[i].start_ns);
	}
	ck_assert_uint_eq(queue->results[100].bytes_written, 8192);
	ck_assert_uint_gt(queue->results[101].cycles, 0);
	ops->mem_unmap(card, VA, 8192);
}
END_TEST

START_TEST(pinned_memory_from_an_offset)
{
	struct spyre_dma_desc in = rows(SPYRE_DMA_H2D, 8), out = rows(SPYRE_DMA_D2H, 8);
	struct spyre_command commands[2];
	void *pinned;
	uint8_t *bytes;
	int i;

	ok(ops->host_alloc(card, 5000, &pinned));
	bytes = pinned;
	for (i = 0; i < 5000; i++)
		ck_assert_uint_eq(bytes[i], 0);
	for (i = 0; i < 1024; i++)
		bytes[i + 77] = i;
	ok(ops->mem_map(card, VA, 4096));
	commands[0] = dma(&in, VA, bytes + 77);
	commands[1] = dma(&out, VA, bytes + 3000);
	ok(submit(queue, commands, 2, 0, 1));
	ok(ops->wait(queue, 1, INT64_MAX));
	ck_assert_mem_eq(bytes + 77, bytes + 3000, 1024);
	ck_assert_uint_eq(bytes[2999], 0);
	ck_assert_uint_eq(bytes[3000 + 1024], 0);
	ops->host_free(card, pinned, 5000);
	ops->mem_unmap(card, VA, 4096);
}
END_TEST

START_TEST(deadline_passes_then_point_is_reached)
{
	struct spyre_command command = fill(VA, 256 * MIB, 1);
	uint64_t seen;

	ok(ops->mem_map(card, VA, 256 * MIB));
	ok(submit(queue, &command, 1, 0, 7));
	/* 256 MiB take a measurable time. */
	ck_assert_int_eq(ops->wait(queue, 7, (int64_t)now_ns()), SPYRE_NOT_READY);
	seen = ops->completed(queue);
	ck_assert(seen == 0 || seen == 7);
	ok(ops->wait(queue, 7, INT64_MAX));
	ck_assert_uint_eq(ops->completed(queue), 7);
	ops->mem_unmap(card, VA, 256 * MIB);
}
END_TEST

/* More waits than one submission takes; each queue writes a byte that the last one reads. */
START_TEST(many_waits)
{
	enum { QUEUES = 140 };
	struct spyre_dma_desc out = rows(SPYRE_DMA_D2H, QUEUES);
	struct spyre_queue *queues[QUEUES];
	struct spyre_wait waits[QUEUES];
	static uint8_t target[QUEUES * 128];
	struct spyre_submission submission;
	struct spyre_command command;
	int i;

	ok(ops->mem_map(card, VA, 8 * MIB));
	for (i = 0; i < QUEUES; i++) {
		struct spyre_command fills[2];

		ok(ops->queue_create(card, -(i & 1), &queues[i]));
		/* The long one comes first, so that the waits matter. */
		fills[0] = fill(VA + 4 * MIB, 4 * MIB, i);
		fills[1] = fill(VA + i * 128, 128, i + 1);
		ok(submit(queues[i], fills, 2, 0, 1));
		waits[i] = (struct spyre_wait){ queues[i], 1 };
	}
	command = dma(&out, VA, target);
	submission = (struct spyre_submission){
		.commands = &command, .num_commands = 1, .waits = waits, .num_waits = QUEUES,
		.point = 3,
	};
	ok(ops->submit(queue, &submission));
	ok(ops->wait(queue, 3, INT64_MAX));
	for (i = 0; i < QUEUES; i++) {
		ck_assert_uint_eq(ops->completed(queues[i]), 1);
		ck_assert_uint_eq(target[i * 128], i + 1);
		ck_assert_uint_eq(target[i * 128 + 127], i + 1);
		ops->queue_destroy(queues[i]);
	}
	ops->mem_unmap(card, VA, 8 * MIB);
}
END_TEST

START_TEST(empty_submission_has_its_own_point)
{
	struct spyre_submission submission = { .point = 1 };

	ok(ops->submit(queue, &submission));
	ok(ops->wait(queue, 1, INT64_MAX));
	ck_assert_uint_eq(ops->completed(queue), 1);
}
END_TEST

START_TEST(ring_wraps_around)
{
	struct spyre_command command = { .type = SPYRE_COMMAND_TIMESTAMP };
	uint64_t point, last = 0;

	for (point = 1; point <= 3 * SPYRE_QUEUE_RESULTS; point++) {
		uint64_t seen;

		/* A slot is free once its previous point is reached. */
		if (point > 64)
			ok(ops->wait(queue, point - 64, INT64_MAX));
		ok(submit(queue, &command, 1, (point * 16) % SPYRE_QUEUE_RESULTS, point));
		seen = ops->completed(queue);
		ck_assert_uint_ge(seen, last);
		ck_assert_uint_le(seen, point);
		last = seen;
	}
	ok(ops->wait(queue, point - 1, INT64_MAX));
	ck_assert_uint_eq(ops->completed(queue), point - 1);
}
END_TEST

START_TEST(largest_number_of_commands)
{
	static struct spyre_command commands[SPYRE_DRM_MAX_CBS + 1];
	uint32_t i;

	ok(ops->mem_map(card, VA, 64 * 1024));
	for (i = 0; i <= SPYRE_DRM_MAX_CBS; i++)
		commands[i] = fill(VA + i * 128, 128, i);
	ok(submit(queue, commands, SPYRE_DRM_MAX_CBS, 0, 1));
	ck_assert_int_eq(submit(queue, commands, SPYRE_DRM_MAX_CBS + 1, 256, 2),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_int_eq(submit(queue, commands, 2, SPYRE_QUEUE_RESULTS - 1, 2),
			 SPYRE_ERROR_INVALID_ARGUMENT);
	ok(submit(queue, commands, 1, SPYRE_QUEUE_RESULTS - 1, 2));
	ok(ops->wait(queue, 2, INT64_MAX));
	ops->mem_unmap(card, VA, 64 * 1024);
}
END_TEST

START_TEST(bad_command_is_reported_and_no_command_runs)
{
	struct spyre_command commands[] = { fill(VA, 128, 1), fill(VA + 4096, 128, 1) };

	ok(ops->mem_map(card, VA, 4096));
	ck_assert_int_eq(submit(queue, commands, 2, 0, 1), SPYRE_ERROR_INVALID_ADDRESS);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "command 1 of 2 (FILL"));
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "0x400001000"));
	ck_assert_uint_eq(ops->completed(queue), 0);
	commands[0].fill.bytes = 0;
	ck_assert_int_eq(submit(queue, commands, 1, 0, 1), SPYRE_ERROR_INVALID_ARGUMENT);
	/* The queue still works. */
	commands[0] = fill(VA, 128, 1);
	ok(submit(queue, commands, 1, 0, 1));
	ok(ops->wait(queue, 1, INT64_MAX));
	ops->mem_unmap(card, VA, 4096);
}
END_TEST

START_TEST(unmapped_host_memory)
{
	struct spyre_dma_desc out = rows(SPYRE_DMA_D2H, 1);
	struct spyre_command command = dma(&out, VA, (void *)(uintptr_t)4096);

	ok(ops->mem_map(card, VA, 4096));
	ck_assert_int_eq(submit(queue, &command, 1, 0, 1), SPYRE_ERROR_INVALID_ADDRESS);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "DMA D2H"));
	ops->mem_unmap(card, VA, 4096);
}
END_TEST

START_TEST(formats_without_a_conversion)
{
	struct spyre_dma_desc in = rows(SPYRE_DMA_H2D, 1);
	static uint8_t source[128];
	struct spyre_command command = dma(&in, VA, source);

	in.host_format = SPYRE_FMT_IEEE_FP32;
	ok(ops->mem_map(card, VA, 4096));
	ck_assert_int_eq(submit(queue, &command, 1, 0, 1), SPYRE_ERROR_FORMAT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "DMA H2D"));
	ops->mem_unmap(card, VA, 4096);
}
END_TEST

START_TEST(program_that_does_not_verify)
{
	static char junk[256] = "not a program";
	struct spyre_program_handle *program;
	struct spyre_verify_error why;
	void *image = junk;

	ck_assert_int_eq(ops->program_create(card, &image, sizeof(junk), &program, &why),
			 SPYRE_ERROR_VERIFY);
	ck_assert_ptr_eq(image, junk);
	ck_assert_int_eq(why.stop, SPYRE_STOP_BAD_MAGIC);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "refused"));
}
END_TEST

START_TEST(queue_with_work_is_destroyed)
{
	struct spyre_queue *other;
	struct spyre_command command = fill(VA, 256 * MIB, 1);

	ok(ops->mem_map(card, VA, 256 * MIB));
	ok(ops->queue_create(card, 0, &other));
	ok(submit(other, &command, 1, 0, 1));
	ok(submit(other, &command, 1, 1, 2));
	ops->queue_destroy(other);
	ok(submit(queue, &command, 1, 0, 1));
	ok(ops->wait(queue, 1, INT64_MAX));
	ck_assert_int_eq(queue->results[0].status, 0);
	ops->mem_unmap(card, VA, 256 * MIB);
}
END_TEST

/* Prints the reason of a skip: no node, or no permission. */
static bool have_card(void)
{
	struct spyre_card *probe;
	int count = 0;

	if (ops->count(&count) != SPYRE_SUCCESS || !count) {
		puts("1..0 # SKIP no card of spyre_vdev");
		return false;
	}
	if (ops->open(0, &probe) == SPYRE_ERROR_NO_PERMISSION) {
		printf("1..0 # SKIP %s\n", spyre_last_error());
		return false;
	}
	ops->close(probe);
	return true;
}

int main(void)
{
	Suite *suite;
	TCase *tcase;

	if (!have_card())
		return 0;
	suite = suite_create("drm_device");
	tcase = tcase_create("card");
	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, properties_agree_with_the_card);
	tcase_add_test(tcase, memory_is_counted_and_given_back);
	tcase_add_test(tcase, error_of_too_much_memory_has_the_numbers);
	tcase_add_test(tcase, commands_in_order_with_results);
	tcase_add_test(tcase, pinned_memory_from_an_offset);
	tcase_add_test(tcase, deadline_passes_then_point_is_reached);
	tcase_add_test(tcase, many_waits);
	tcase_add_test(tcase, empty_submission_has_its_own_point);
	tcase_add_test(tcase, ring_wraps_around);
	tcase_add_test(tcase, largest_number_of_commands);
	tcase_add_test(tcase, bad_command_is_reported_and_no_command_runs);
	tcase_add_test(tcase, unmapped_host_memory);
	tcase_add_test(tcase, formats_without_a_conversion);
	tcase_add_test(tcase, program_that_does_not_verify);
	tcase_add_test(tcase, queue_with_work_is_destroyed);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}

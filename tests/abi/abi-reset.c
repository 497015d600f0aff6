/* SPDX-License-Identifier: MIT */
/* Reset of the card: permissions, the work that it stops, stale files, and recovery. */
#include "abi.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prog.h"

#define VA (64 * MIB)

static int reset(int fd, uint64_t *generation)
{
	struct drm_spyre_reset args = { .generation = 0xdeadbeef };
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_RESET, &args);

	if (generation)
		*generation = args.generation;
	return ret;
}

static uint64_t generation_of(int fd)
{
	struct drm_spyre_card_info card = { 0 };
	struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CARD,
					     .size = sizeof(card), .pointer = PTR(&card) };

	abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);
	return card.generation;
}

/* Every call that would create or queue something is refused; the others work. */
static void test_stale(int fd, struct abi_queue *q, struct abi_buf *mem, uint32_t program)
{
	struct drm_spyre_cb stamp = abi_cb_timestamp();
	struct abi_prog p = abi_prog_add(1, 1);
	struct drm_spyre_program_create create;
	uint64_t size;
	uint32_t id;
	void *image = abi_prog_encode(&p, &size);

	tap_ret(abi_submit(q, &stamp, 1, NULL), -EIO, "stale: SUBMIT");
	tap_ret(abi_queue_create(fd, 0, 0, &id), -EIO, "stale: QUEUE_CREATE");
	tap_ret(abi_bo(fd, PAGE, DRM_SPYRE_BO_DEVICE, &id), -EIO, "stale: BO_CREATE");
	tap_ret(abi_unbind(fd, VA, PAGE), -EIO, "stale: VM_BIND");
	tap_ret(abi_prog_load(fd, image, size, &create), -EIO, "stale: PROGRAM_CREATE");
	tap_ret(abi_queue_query(fd, q->id).error, -EIO, "stale: QUEUE_QUERY reports the error");
	tap_ret(abi_prog_destroy(fd, program), 0, "stale: PROGRAM_DESTROY works");
	tap_ok(abi_memory(fd).context_used >= mem->size, "stale: its memory is still counted");
	tap_eq(*(uint32_t *)mem->map, 7, "stale: it is still readable through a mapping");
	tap_ret(abi_queue_destroy(fd, q->id), 0, "stale: QUEUE_DESTROY works");
}

int main(void)
{
	struct abi_prog p = abi_prog_long();
	int fd = abi_open(), victim = abi_open(), fresh;
	struct drm_spyre_reset bad = { .flags = 1 };
	struct drm_spyre_cb cb, stamp = abi_cb_timestamp(), fill;
	uint64_t before = generation_of(fd), generation, start;
	uint64_t used = abi_memory(fd).used;
	struct abi_queue q = abi_queue(victim, 60000), own = abi_queue(fd, 0);
	struct abi_buf mem = abi_buf(victim, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, VA);
	uint32_t program = abi_prog_create(victim, &p);
	uint64_t args[3] = { VA, VA + ABI_LONG_BYTES, VA + 2 * ABI_LONG_BYTES };

	if (geteuid()) {
		tap_ret(reset(fd, &generation), -EACCES, "RESET requires root");
		tap_eq(generation_of(fd), before, "the refused RESET changed nothing");
		close(victim);
		return tap_done();
	}
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_RESET, &bad), -EINVAL, "unknown flag");
	bad = (struct drm_spyre_reset){ .pad = 1 };
	tap_ret(abi_ioctl(fd, DRM_IOCTL_SPYRE_RESET, &bad), -EINVAL, "pad");

	fill = abi_cb_fill32(VA, ABI_LONG_BYTES, 7);
	tap_ret(abi_run(&q, &fill, 1), 0, "the card works before");
	cb = abi_cb_exec(program, args + 0, 3);
	args[0] = VA + 2 * ABI_LONG_BYTES;
	args[2] = VA;
	tap_ret(abi_submit(&q, &cb, 1, NULL), 0, "work for hours is queued");
	tap_ret(abi_submit(&q, &stamp, 1, NULL), 0, "a job behind it is queued");
	abi_sleep_ms(100);
	start = abi_now_ns();
	tap_ret(reset(fd, &generation), 0, "RESET");
	tap_ok(abi_now_ns() - start < 5000000000ull, "RESET does not wait for the work");
	tap_eq(generation, before + 1, "the generation is one higher");
	tap_eq(generation_of(victim), before + 1, "DEV_QUERY of another file shows the generation");
	tap_ret(abi_wait(&q, 10000), 0, "the fences signal");
	tap_ret(abi_results(&q)->status, -ECANCELED, "the work reports ECANCELED");
	test_stale(victim, &q, &mem, program);

	tap_ret(abi_submit(&own, &stamp, 1, NULL), -ECANCELED,
		"the caller's queue is dead as well");
	abi_queue_free(&own);
	own = abi_queue(fd, 0);
	tap_ret(abi_run(&own, &stamp, 1), 0, "the caller's new queue works");
	fresh = abi_open();
	abi_queue_free(&own);
	own = abi_queue(fresh, 0);
	tap_ret(abi_run(&own, &stamp, 1), 0, "a file opened after the reset works");
	abi_queue_free(&own);
	munmap(q.results.map, q.results.size);
	munmap(mem.map, mem.size);
	close(victim);
	tap_ok(abi_memory_settles(fd, used), "all memory is back");
	return tap_done();
}

/* SPDX-License-Identifier: MIT */
/* abi-submit: programs. */
#include "submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prog.h"

#define STICKS 256u
#define BYTES ((uint64_t)STICKS * STICK)

static uint32_t card_cores(int fd)
{
	struct drm_spyre_card_info info = { 0 };
	struct drm_spyre_dev_query args = { .size = sizeof(info), .pointer = PTR(&info) };

	abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args);
	return info.num_cores;
}

static void fill_inputs(uint8_t *p)
{
	uint16_t *a = (uint16_t *)(p + BYTES), *b = (uint16_t *)(p + 2 * BYTES);
	uint32_t i;

	memset(p, 0xee, BYTES);
	for (i = 0; i < BYTES / 2; i++) {
		a[i] = abi_dl16((int)(i % 401) - 200);
		b[i] = abi_dl16((int)(i * 3 % 501) - 250);
	}
}

static uint32_t wrong_sums(const uint8_t *p)
{
	const uint16_t *out = (const uint16_t *)p;
	uint32_t i, bad = 0;

	for (i = 0; i < BYTES / 2; i++)
		bad += out[i] != abi_dl16((int)(i % 401) - 200 + (int)(i * 3 % 501) - 250);
	return bad;
}

static void test_add(int fd, struct abi_queue *q, struct abi_buf *dev, uint32_t cores)
{
	struct abi_prog p = abi_prog_add(cores, STICKS / cores);
	uint32_t program = abi_prog_create(fd, &p);
	uint64_t args[3] = { dev->va, dev->va + BYTES, dev->va + 2 * BYTES };
	struct drm_spyre_cb cbs[2] = { abi_cb_exec(program, args, 3), abi_cb_timestamp() };
	struct drm_spyre_cb_result *r = abi_results(q), first;

	fill_inputs(dev->map);
	tap_ret(abi_run(q, cbs, 2), 0, "EXEC: add on %u core(s)", cores);
	tap_eq(wrong_sums(dev->map), 0, "EXEC: add on %u core(s): every sum", cores);
	tap_ok(((uint16_t *)dev->map)[3 * BYTES / 2 - 1] ==
	       abi_dl16((int)((BYTES / 2 - 1) * 3 % 501) - 250), "EXEC: inputs are unchanged");
	tap_eq(r[0].bytes_read, 2 * BYTES, "EXEC: LPDDR5 bytes read");
	tap_eq(r[0].bytes_written, BYTES, "EXEC: LPDDR5 bytes written");
	tap_eq(r[0].macs, 0, "EXEC: no multiply-adds");
	tap_ok(r[0].cycles && r[0].start_ns && r[0].start_ns <= r[0].end_ns &&
	       r[0].end_ns <= r[1].start_ns && !r[0].rdma,
	       "EXEC: cycles, and times in order");
	first = r[0];
	fill_inputs(dev->map);
	tap_ret(abi_run(q, cbs, 2), 0, "EXEC: again");
	tap_ok(r[0].cycles == first.cycles, "EXEC: modelled cycles repeat exactly");
	/* Arguments are read at submission: later changes have no effect. */
	fill_inputs(dev->map);
	tap_ret(abi_submit(q, cbs, 1, NULL), 0, "EXEC: submit");
	memset(args, 0xff, sizeof(args));
	abi_prog_destroy(fd, program);
	tap_ret(abi_wait(q, 20000), 0, "EXEC: program destroyed while queued");
	tap_eq(wrong_sums(dev->map), 0, "EXEC: the launch still completes");
}

static void test_operands(int fd, struct abi_queue *q, struct abi_buf *dev)
{
	struct abi_prog p = abi_prog_add(1, STICKS);
	uint32_t program = abi_prog_create(fd, &p);
	struct abi_buf small = abi_buf(fd, 2 * BYTES, DRM_SPYRE_BO_DEVICE, 700 * MIB);
	uint64_t args[3] = { small.va, dev->va, dev->va + BYTES };
	struct drm_spyre_cb cb = abi_cb_exec(program, args, 3);

	tap_ret(abi_run(q, &cb, 1), 0, "EXEC: output in another BO");
	args[0] = small.va + BYTES;
	tap_ret(abi_run(q, &cb, 1), 0, "EXEC: output ends with its mapping");
	args[0] = small.va + BYTES + STICK;
	tap_ret(abi_run(q, &cb, 1), -EFAULT, "EXEC: output a stick past its mapping");
	args[0] = small.va;
	abi_bind(fd, small.handle, 0, small.va, 2 * BYTES, DRM_SPYRE_VM_MAP_READONLY);
	tap_ret(abi_run(q, &cb, 1), -EFAULT, "EXEC: output in a read-only mapping");
	args[0] = dev->va;
	args[1] = small.va;
	tap_ret(abi_run(q, &cb, 1), 0, "EXEC: input from a read-only mapping");
	abi_prog_destroy(fd, program);
	tap_ret(abi_run(q, &cb, 1), -ENOENT, "EXEC: destroyed program");
	abi_buf_free(fd, &small);
}

/* One program in many queues at once: a launch keeps no state in the program. */
static void test_shared_program(int fd, struct abi_buf *dev)
{
	struct abi_prog p = abi_prog_add(1, STICKS);
	uint32_t program = abi_prog_create(fd, &p), i, bad = 0;
	struct abi_queue q[8];
	uint64_t args[3];
	struct drm_spyre_cb cb;

	for (i = 0; i < 8; i++) {
		q[i] = abi_queue(fd, 0);
		fill_inputs((uint8_t *)dev->map + i * 3 * BYTES);
	}
	for (i = 0; i < 64; i++) {
		args[0] = dev->va + i % 8 * 3 * BYTES;
		args[1] = args[0] + BYTES;
		args[2] = args[0] + 2 * BYTES;
		cb = abi_cb_exec(program, args, 3);
		bad += abi_submit(&q[i % 8], &cb, 1, NULL) != 0;
	}
	for (i = 0; i < 8; i++) {
		bad += abi_wait(&q[i], 20000) != 0 || abi_results(&q[i])->status;
		bad += wrong_sums((uint8_t *)dev->map + i * 3 * BYTES);
		abi_queue_free(&q[i]);
	}
	tap_eq(bad, 0, "EXEC: one program, 8 queues, 64 launches");
	abi_prog_destroy(fd, program);
}

void test_exec(int fd, struct abi_buf *dev)
{
	struct abi_queue q = abi_queue(fd, 0);
	uint32_t cores = card_cores(fd), n;
	struct abi_prog p = abi_prog_add(cores + 1, 1);
	struct drm_spyre_program_create args;
	uint64_t size;
	void *image;

	for (n = 1; n <= cores; n *= 4)
		test_add(fd, &q, dev, n);
	if (cores < 32) {
		image = abi_prog_encode(&p, &size);
		tap_ret(abi_prog_load(fd, image, size, &args), -EINVAL,
			"a program of one core too many");
		tap_eq(args.stop, SPYRE_STOP_TOO_MANY_CORES, "a core too many: stop");
		free(image);
	}
	test_operands(fd, &q, dev);
	test_shared_program(fd, dev);
	abi_queue_free(&q);
}

/* SPDX-License-Identifier: MIT */
/* VFs that are removed, reset, unbound and bound, at any moment. */
#include "vf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Releases a saturated file whose node is gone. */
static void drop(int fd, struct abi_queue *q, struct abi_buf *mem)
{
	munmap(q->results.map, q->results.size);
	munmap(mem->map, mem->size);
	close(fd);
}

static void test_gone_while_busy(void)
{
	uint64_t jobs = vf_read(vf_pf.name, "jobs"), start;
	struct drm_spyre_cb stamp = abi_cb_timestamp();
	uint8_t bytes[VF_ADD_BYTES];
	struct vf_device vf[VF_MAX];
	struct abi_queue q;
	struct abi_buf mem;
	int fd, idle;

	tap_ret(vf_set("2"), 0, "num_vfs=2");
	vf_list(vf);
	fd = vf_open(&vf[0]);
	idle = vf_open(&vf[1]);
	tap_ret(vf_run_add(idle, bytes), 0, "a job of VF 2");
	vf_saturate(fd, &q, &mem);
	start = abi_now_ns();
	tap_ret(vf_set("0"), 0, "num_vfs=0 with files open and work running");
	tap_ok(abi_now_ns() - start < 10000000000ull, "num_vfs=0 took %llu ms",
	       (unsigned long long)(abi_now_ns() - start) / 1000000);
	tap_eq(abi_results(&q)[0].state, DRM_SPYRE_CB_DONE, "the running work has ended");
	tap_ret2(abi_results(&q)[0].status, -ENODEV, -ECANCELED,
		 "the running work reports its status");
	tap_ret(abi_submit(&q, &stamp, 1, NULL), -ENODEV, "open file: SUBMIT");
	tap_ret(abi_queue_create(idle, 0, 0, &q.id), -ENODEV, "idle file: QUEUE_CREATE");
	tap_eq(access(vf[0].node, F_OK), (uint64_t)-1, "the node is gone");
	tap_ok(vf_read(vf_pf.name, "jobs") >= jobs + 1, "the card's totals keep the VFs' work");
	drop(fd, &q, &mem);
	close(idle);
	fd = vf_open(&vf_pf);
	tap_ret(vf_run_add(fd, bytes), 0, "the whole card works again");
	close(fd);
}

static void test_reset(void)
{
	struct drm_spyre_reset reset = { 0 };
	struct vf_device vf[VF_MAX];
	int pf = vf_open(&vf_pf), one, two;
	uint8_t bytes[VF_ADD_BYTES];
	struct abi_queue q;
	struct abi_buf mem;
	uint32_t id;

	vf_set("2");
	vf_list(vf);
	one = vf_open(&vf[0]);
	two = vf_open(&vf[1]);
	vf_saturate(one, &q, &mem);
	tap_ret(abi_ioctl(two, DRM_IOCTL_SPYRE_RESET, &reset), 0, "VF 2 resets itself");
	tap_eq(vf_card(one).generation, 0, "VF 1's generation is unchanged");
	tap_eq(abi_queue_query(one, q.id).state, DRM_SPYRE_QUEUE_OK,
	       "VF 1's work is still running");
	tap_ret(abi_ioctl(pf, DRM_IOCTL_SPYRE_RESET, &reset), 0, "RESET of the PF");
	tap_eq(vf_card(one).generation, 1, "VF 1's generation changes");
	tap_eq(vf_card(two).generation, 2, "VF 2's generation changes");
	tap_ret(abi_wait(&q, 10000), 0, "the fence of VF 1's work signals");
	tap_ret(abi_results(&q)->status, -ECANCELED, "VF 1's work reports ECANCELED");
	tap_ret(abi_queue_create(one, 0, 0, &id), -EIO, "files of VFs are stale");
	drop(one, &q, &mem);
	close(two);
	one = vf_open(&vf[0]);
	tap_ret(vf_run_add(one, bytes), 0, "a new file of VF 1 works");
	close(one);
	close(pf);
	vf_set("0");
}

/* A VF behaves like any other device. */
static void test_bind_one(void)
{
	struct vf_device vf[VF_MAX];
	uint8_t bytes[VF_ADD_BYTES];
	struct drm_spyre_card_info before, after;
	int fd;

	vf_set("2");
	vf_list(vf);
	fd = vf_open(&vf[1]);
	before = vf_card(fd);
	close(fd);
	tap_ret(vf_bind("unbind", vf[1].name), 0, "unbind of %s", vf[1].name);
	tap_eq(vf_list(vf), 1, "one node is left");
	tap_eq(vf_read(vf_pf.name, "num_vfs"), 2, "num_vfs is unchanged");
	tap_ret(vf_bind("bind", "spyre_vdev_vf.1"), 0, "bind of the VF");
	tap_eq(vf_list(vf), 2, "the VF's node is back");
	fd = vf_open(&vf[1]);
	after = vf_card(fd);
	tap_ok(after.vf == before.vf && after.num_cores == before.num_cores &&
	       after.lpddr_bytes == before.lpddr_bytes, "the VF has the same share");
	tap_ret(vf_run_add(fd, bytes), 0, "the VF works");
	close(fd);
	vf_bind("unbind", vf[0].name);
	tap_ret(vf_set("0"), 0, "num_vfs=0 with one unbound");
}

static void test_pf_unbind(void)
{
	struct vf_device vf[VF_MAX];
	struct abi_queue q;
	struct abi_buf mem;
	uint32_t id;
	int fd;

	vf_set("2");
	vf_list(vf);
	fd = vf_open(&vf[0]);
	vf_saturate(fd, &q, &mem);
	tap_ret(vf_bind("unbind", vf_pf.name), 0, "unbind of the PF while a VF works");
	tap_eq(vf_list(vf), 0, "its VFs are removed");
	tap_ret(abi_queue_create(fd, 0, 0, &id), -ENODEV, "a file of a VF reports ENODEV");
	drop(fd, &q, &mem);
	tap_ret(vf_bind("bind", vf_pf.name), 0, "bind of the PF");
	tap_eq(vf_read(vf_pf.name, "num_vfs"), 0, "the PF has all cores and memory");
}

static atomic_bool race_over;

static void *race_split(void *arg)
{
	int *made = arg, i;

	for (i = 0; !race_over; i++)
		*made += !vf_set(i % 2 ? "0" : "2");
	return NULL;
}

/* Opens nodes and submits work while the nodes come and go. */
static void *race_open(void *arg)
{
	struct vf_device vf[VF_MAX];
	int *opened = arg, fd, n, i;
	uint32_t id;

	while (!race_over) {
		n = vf_list(vf);
		for (i = 0; i < n; i++) {
			fd = open(vf[i].node, O_RDWR | O_CLOEXEC);
			if (fd < 0)
				continue;
			*opened += !abi_queue_create(fd, 0, 0, &id);
			close(fd);
		}
		sched_yield();
	}
	return NULL;
}

static void test_race(void)
{
	int made = 0, opened = 0, bound = 0, i;
	uint8_t bytes[VF_ADD_BYTES];
	pthread_t split, use;

	race_over = false;
	if (pthread_create(&split, NULL, race_split, &made) ||
	    pthread_create(&use, NULL, race_open, &opened))
		tap_bail("pthread_create");
	for (i = 0; i < 15; i++) {
		abi_sleep_ms(30);
		bound += !vf_bind("unbind", vf_pf.name);
		bound += !vf_bind("bind", vf_pf.name);
	}
	race_over = true;
	pthread_join(split, NULL);
	pthread_join(use, NULL);
	tap_eq(bound, 30, "the PF is unbound and bound while num_vfs is written");
	tap_note("num_vfs took %d values, %d queues on VFs", made, opened);
	vf_set("0");
	abi_find(vf_pf.node, sizeof(vf_pf.node), vf_pf.name, sizeof(vf_pf.name));
	i = vf_open(&vf_pf);
	tap_ret(vf_run_add(i, bytes), 0, "the card works afterwards");
	close(i);
}

/* Fails the @nth allocation that this thread makes from now on; 0 disables that. */
static bool fail_nth(unsigned int nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", nth);
	return !abi_write_file("/proc/thread-self/fail-nth", text);
}

/* Allocations left until one fails; 0 if one has failed. */
static unsigned int fail_nth_left(void)
{
	char text[16] = "0";
	int fd = open("/proc/thread-self/fail-nth", O_RDONLY | O_CLOEXEC);
	unsigned int left = 0;

	if (read(fd, text, sizeof(text) - 1) > 0)
		left = strtoul(text, NULL, 10);
	close(fd);
	return left;
}

static int walk_step(bool binds, unsigned int nth, unsigned int *left)
{
	int ret;

	if (binds)
		vf_bind("unbind", vf_pf.name);
	fail_nth(nth);
	ret = binds ? vf_bind("bind", vf_pf.name) : vf_set("1");
	*left = fail_nth_left();
	fail_nth(0);
	if (binds && ret)
		vf_bind("bind", vf_pf.name);
	if (!binds && !ret)
		vf_set("0");
	return ret;
}

/*
 * Fails the allocations of creating a VF, or of binding a card, one by one, from
 * the last to the middle and as many as a minute allows. The earlier ones belong to
 * the driver core and DRM: 6.12's drm_minor_alloc() puts an error pointer when its
 * own allocation fails, which is not tested here.
 */
static void walk(const char *what, bool binds)
{
	const uint64_t end = abi_now_ns() + 60000000000ull;
	const unsigned int many = 100000;
	unsigned int nth, all, left, failed = 0, refused = 0;
	struct vf_device vf[VF_MAX];
	uint8_t bytes[VF_ADD_BYTES];
	int fd;

	walk_step(binds, many, &left);
	all = many - left;
	for (nth = all; nth > all / 2 && abi_now_ns() < end; nth--) {
		refused += walk_step(binds, nth, &left) < 0;
		failed += !left;
		if (!binds && vf_list(vf))
			tap_ok(false, "%s: allocation %u failed and left a VF", what, nth);
	}
	tap_ok(failed && refused,
	       "%s: %u of %u allocations failed, %u failed the write", what, failed,
	       all, refused);
	fd = vf_open(&vf_pf);
	tap_ret(vf_run_add(fd, bytes), 0, "%s: the card works afterwards", what);
	close(fd);
}

static void test_allocations(void)
{
	if (access("/proc/thread-self/fail-nth", W_OK) ||
	    access("/sys/kernel/debug/failslab", F_OK)) {
		tap_skip("this kernel cannot make allocations fail", "probe that fails half-way");
		return;
	}
	abi_write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	walk("num_vfs=1", false);
	walk("bind", true);
}

void vf_test_lifetime(void)
{
	int i, made = 0;

	test_gone_while_busy();
	test_reset();
	test_bind_one();
	for (i = 0; i < 20; i++)
		made += !vf_set("2") && !vf_set("0");
	tap_eq(made, 20, "num_vfs=2 and num_vfs=0, 20 times");
	test_pf_unbind();
	test_race();
	test_allocations();
}

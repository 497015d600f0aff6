/* SPDX-License-Identifier: MIT */
/*
 * Virtual functions: splits the card repeatedly, and finally leaves it whole. This
 * file tests the values of num_vfs; vf-share.c the resources of VFs, vf-lifetime.c
 * their removal, vf-hold.c clients that must not delay it.
 */
#include "vf.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static void test_values(void)
{
	uint64_t total = vf_read(vf_pf.name, "total_vfs");
	char more[32];

	tap_ok(total >= 1 && total <= VF_MAX, "total_vfs is %llu", (unsigned long long)total);
	snprintf(more, sizeof(more), "%llu", (unsigned long long)total + 1);
	tap_ret(vf_set(more), -ERANGE, "num_vfs=%s", more);
	tap_ret(vf_set("99"), -ERANGE, "num_vfs=99");
	tap_ret(vf_set("4294967295"), -ERANGE, "num_vfs=4294967295");
	tap_ret2(vf_set("4294967296"), -ERANGE, -EINVAL, "num_vfs=4294967296");
	tap_ret(vf_set("-1"), -EINVAL, "num_vfs=-1");
	tap_ret(vf_set("x"), -EINVAL, "num_vfs=x");
	tap_ret(vf_set("1 1"), -EINVAL, "num_vfs=1 1");
	tap_ret(vf_set("\n"), -EINVAL, "num_vfs is a line without a number");
	tap_ret(vf_set("0"), 0, "num_vfs=0 without VFs");
	tap_eq(vf_read(vf_pf.name, "num_vfs"), 0, "refused writes create no VF");
}

/* A card with open files cannot be split. */
static void test_busy(void)
{
	int fd = vf_open(&vf_pf);
	struct abi_prog p = abi_prog_add(1, 1);
	uint32_t queue, program;
	struct abi_buf mem;

	if (tap_ret(abi_queue_create(fd, 0, 0, &queue), 0, "QUEUE_CREATE on the PF without VFs"))
		tap_ret(vf_set("2"), -EBUSY, "num_vfs is refused while the PF has a queue");
	abi_queue_destroy(fd, queue);
	mem = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, 0);
	tap_ret(vf_set("2"), -EBUSY, "num_vfs is refused while memory of the PF is in use");
	abi_buf_free(fd, &mem);
	program = abi_prog_create(fd, &p);
	tap_ret(vf_set("2"), -EBUSY, "num_vfs is refused while the PF has a program");
	abi_prog_destroy(fd, program);
	mem = abi_buf(fd, PAGE, DRM_SPYRE_BO_HOST, 0);
	tap_ret(vf_set("2"), 0, "num_vfs is accepted with host memory and an open file");
	tap_ret(abi_queue_create(fd, 0, 0, &queue), -EBUSY, "split: QUEUE_CREATE on the PF");
	tap_ret(abi_bo(fd, PAGE, DRM_SPYRE_BO_DEVICE, &queue), -EBUSY,
		"split: BO_CREATE on the PF");
	tap_ret(vf_set("3"), -EBUSY, "num_vfs from 2 to 3");
	tap_ret(vf_set("2"), 0, "num_vfs from 2 to 2");
	tap_ret(vf_set("x"), -EINVAL, "num_vfs=x while there are VFs");
	tap_ret(vf_set("0"), 0, "num_vfs from 2 to 0");
	tap_ret(abi_queue_create(fd, 0, 0, &queue), 0, "QUEUE_CREATE on the PF works again");
	abi_buf_free(fd, &mem);
	close(fd);
}

int main(void)
{
	if (!abi_find(vf_pf.node, sizeof(vf_pf.node), vf_pf.name, sizeof(vf_pf.name)))
		tap_skip_all("no accel node of spyre_vdev");
	if (getuid())
		tap_skip_all("splitting a card needs root");
	if (vf_read(vf_pf.name, "num_vfs"))
		tap_skip_all("%s is split already", vf_pf.name);
	if (vf_read(vf_pf.name, "total_vfs") < 2)
		tap_skip_all("%s is too small for two VFs", vf_pf.name);
	if (vf_set("1"))
		tap_skip_all("%s is in use", vf_pf.name);
	vf_set("0");
	test_values();
	test_busy();
	vf_test_share();
	vf_test_hold();
	vf_test_lifetime();
	return tap_done();
}

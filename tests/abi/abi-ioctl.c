/* SPDX-License-Identifier: MIT */
/*
 * Cases beyond the table of fields (see abi-fields): sizes, ranges and values that
 * depend on each other, and their errnos.
 */
#include "ioctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

void test_pointer(int fd, const char *name, unsigned long request, const void *good, int want)
{
	size_t size = _IOC_SIZE(request);
	uint8_t *p = abi_guard(size);

	tap_ret(abi_ioctl(fd, request, NULL), -EFAULT, "%s: NULL argument", name);
	tap_ret(abi_ioctl(fd, request, abi_hole()), -EFAULT, "%s: unmapped argument", name);
	tap_ret(abi_ioctl(fd, request, p + 1), -EFAULT, "%s: argument extends past its page", name);
	memcpy(p, good, size);
	tap_ret(abi_ioctl(fd, request, p), want, "%s: argument ends at its page's end", name);
	abi_guard_free(p, size);
}

int main(void)
{
	struct drm_spyre_memory_info before, after;
	int fd = abi_open();

	before = abi_memory(fd);
	test_dev_query(fd);
	test_bo_create(fd);
	test_bo_mmap_offset(fd);
	test_vm_bind(fd);
	test_program(fd);
	test_queue(fd);
	test_submit(fd);
	test_submit_cb(fd);
	abi_memory_settles(fd, before.used);
	after = abi_memory(fd);
	tap_eq(after.used, before.used, "refused calls keep no device memory");
	tap_eq(after.context_used, before.context_used,
	       "refused calls charge nothing to this file");
	return tap_done();
}

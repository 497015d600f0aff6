/* SPDX-License-Identifier: MIT */
/* Every field of every driver ioctl wrong once, and the errno that it gives. */
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
	tap_ret(abi_ioctl(fd, request, p + 1), -EFAULT, "%s: argument runs off its page", name);
	memcpy(p, good, size);
	tap_ret(abi_ioctl(fd, request, p), want, "%s: argument ends at its page's end", name);
	abi_guard_free(p, size);
}

/* Sizes in the ioctl number that another version of the header would have. */
static void test_struct_sizes(int fd)
{
	struct {
		struct drm_spyre_queue_query args;
		uint64_t more[2];
	} longer;
	uint32_t id;

	if (abi_queue_create(fd, 0, 0, &id))
		tap_bail("QUEUE_CREATE");
	memset(&longer, 0, sizeof(longer));
	longer.args.queue_id = id;
	longer.args.state = 0xa5;
	tap_ret(abi_ioctl(fd, DRM_IOWR(DRM_COMMAND_BASE + DRM_SPYRE_QUEUE_QUERY, longer), &longer),
		0, "longer struct than the kernel's");
	tap_eq(longer.args.state, DRM_SPYRE_QUEUE_OK, "longer struct: outputs are written");
	memset(&longer, 0, sizeof(longer));
	longer.args.queue_id = id;
	longer.args.submitted = 0xa5a5;
	tap_ret(abi_ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd',
				   DRM_COMMAND_BASE + DRM_SPYRE_QUEUE_QUERY, 16), &longer),
		0, "shorter struct than the kernel's");
	tap_eq(longer.args.submitted, 0xa5a5, "shorter struct: nothing is written behind it");
	abi_queue_destroy(fd, id);
}

static void test_unknown_numbers(int fd)
{
	uint8_t arg[1024];
	int nr, bad = 0;

	for (nr = DRM_COMMAND_BASE + DRM_SPYRE_BO_INFO + 1; nr < DRM_COMMAND_END; nr++) {
		memset(arg, 0, sizeof(arg));
		if (abi_ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', nr, sizeof(arg)), arg) !=
		    -EINVAL)
			bad++;
	}
	tap_eq(bad, 0, "driver ioctl numbers that do not exist give EINVAL");
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
	test_struct_sizes(fd);
	test_unknown_numbers(fd);
	abi_memory_settles(fd, before.used);
	after = abi_memory(fd);
	tap_eq(after.used, before.used, "no refused call kept device memory");
	tap_eq(after.context_used, before.context_used, "nor is any on this file's bill");
	return tap_done();
}

// SPDX-License-Identifier: MIT
/*
 * Unplugging a card while its programs run (as root): work ends with -ENODEV,
 * open files stay safe, and the card can come back.
 *
 *	unplug [DEVICE]		default: spyre_vdev.0
 */
#include "tests/abi/abi.h"

#define VA PAGE
#define STICKS 1024u
#define BYTES (STICKS * 128u)

static void driver_write(const char *name, const char *device)
{
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/platform/drivers/spyre_vdev/%s", name);
	fd = open(path, O_WRONLY);
	need(fd >= 0, path);
	need(write(fd, device, strlen(device)) == (ssize_t)strlen(device), path);
	close(fd);
}

static int wait_node(void)
{
	int i, fd;

	for (i = 0; i < 100; i++) {
		fd = open(node_path, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		usleep(20000);
	}
	return -1;
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "spyre_vdev.0";
	struct drm_spyre_cb cb, stamp = { .type = DRM_SPYRE_CB_TIMESTAMP };
	struct drm_spyre_queue_create qc = { 0 };
	struct drm_spyre_dev_query query = { 0 };
	uint64_t args[3] = { VA, VA + BYTES, VA + 2 * BYTES };
	uint32_t bo, result_bo, syncobj, queues[3], i;
	struct drm_spyre_cb_result *results;
	struct image image;
	uint8_t *map;
	uint64_t start;
	int fd = node_open();

	bo = bo_create(fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE);
	map = bo_map(fd, bo, BYTES);
	need(!vm_bind(fd, DRM_SPYRE_VM_MAP, 0, bo, 0, VA, 3 * BYTES), "VM_BIND");
	result_bo = bo_create(fd, PAGE, DRM_SPYRE_BO_HOST);
	results = bo_map(fd, result_bo, PAGE);
	syncobj = syncobj_create(fd);
	image_add(&image, STICKS, 60000);
	cb = (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_EXEC, .num_args = 3,
				    .program = program_create(fd, &image),
				    .args = (uintptr_t)args };
	for (i = 0; i < 3; i++)
		queues[i] = queue_create(fd, i & 1, 60000);
	need(!submit(fd, queues[0], &cb, 1, result_bo, syncobj, 1), "SUBMIT");
	need(!submit(fd, queues[1], &cb, 1, 0, syncobj, 2), "SUBMIT");
	need(!submit(fd, queues[2], &cb, 1, 0, syncobj, 3), "SUBMIT");
	need(!submit(fd, queues[0], &stamp, 1, 0, syncobj, 4), "SUBMIT");
	usleep(50000);

	start = now_ns();
	driver_write("unbind", device);
	ok(now_ns() - start < 10000000000ull, "unplugging with work in flight takes %llu ms",
	   (unsigned long long)(now_ns() - start) / 1000000);
	usleep(200000);
	ok(results[0].state == DRM_SPYRE_CB_DONE && results[0].status == -ENODEV,
	   "the running job's result is ENODEV (%d)", results[0].status);
	gives(-ENODEV, fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query, "DEV_QUERY of an unplugged card");
	gives(-ENODEV, fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &qc, "QUEUE_CREATE of an unplugged card");
	ok(submit(fd, queues[0], &stamp, 1, 0, 0, 0) == -ENODEV, "SUBMIT to an unplugged card");
	map[5] = 1;
	ok(map[5] == 1, "mapped memory stays");
	ok(open(node_path, O_RDWR) < 0, "the node is gone (%s)", strerror(errno));

	driver_write("bind", device);
	i = wait_node();
	ok((int)i >= 0, "the card can come back while the old file is open");
	syncobj = syncobj_create(i);
	ok(!submit_wait(i, queue_create(i, 0, 0), &stamp, 1, 0, syncobj, 1), "and works");
	close(i);
	munmap(map, BYTES);
	munmap(results, PAGE);
	close(fd);
	return done_testing();
}

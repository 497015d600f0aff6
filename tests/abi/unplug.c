// SPDX-License-Identifier: MIT
/*
 * Unplugging a card while its programs run (as root): work ends with -ENODEV,
 * open files stay safe, and the card can come back.
 *
 *	unplug [DEVICE]		default: spyre_vdev.0
 */
#include <dirent.h>

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

/* The node of @device; its number is a new one while the old is still open. */
static int wait_node(const char *device)
{
	char path[300];
	struct dirent *entry;
	int i, fd;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/bus/platform/devices/%s/accel", device);
	for (i = 0; i < 250; i++) {
		dir = opendir(path);
		while (dir && (entry = readdir(dir))) {
			char node[300];

			if (strncmp(entry->d_name, "accel", 5))
				continue;
			snprintf(node, sizeof(node), "/dev/accel/%s", entry->d_name);
			fd = open(node, O_RDWR | O_CLOEXEC);
			if (fd >= 0) {
				closedir(dir);
				return fd;
			}
		}
		if (dir)
			closedir(dir);
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
	char path[100];
	uint8_t *map;
	uint64_t start;
	int fd = wait_node(device), back;

	need(fd >= 0, device);
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
	snprintf(path, sizeof(path), "/sys/bus/platform/devices/%s/accel", device);
	ok(access(path, F_OK) < 0, "the node is gone (%s)", strerror(errno));

	driver_write("bind", device);
	back = wait_node(device);
	need(back >= 0, "the node of the card that came back");
	ok(true, "the card can come back while the old file is open");
	syncobj = syncobj_create(back);
	ok(!submit_wait(back, queue_create(back, 0, 0), &stamp, 1, 0, syncobj, 1), "and works");
	close(back);
	munmap(map, BYTES);
	munmap(results, PAGE);
	close(fd);
	return done_testing();
}

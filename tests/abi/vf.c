/* SPDX-License-Identifier: MIT */
/* Cards and their VFs in sysfs, and work for a VF. */
#include "vf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICES "/sys/bus/platform/devices/"
#define DRIVER "/sys/bus/platform/drivers/spyre_vdev/"

struct vf_device vf_pf;

uint64_t vf_read(const char *device, const char *attribute)
{
	char path[PATH_MAX], line[32] = "";
	int fd;

	snprintf(path, sizeof(path), DEVICES "%s/%s", device, attribute);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0)
		strcpy(line, "-1");
	close(fd);
	return strtoull(line, NULL, 10);
}

int vf_set(const char *count)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DEVICES "%s/num_vfs", vf_pf.name);
	return abi_write_file(path, count);
}

int vf_bind(const char *how, const char *device)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DRIVER "%s", how);
	return abi_write_file(path, device);
}

static bool find_node(struct vf_device *device)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), DEVICES "%s/accel", device->name);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		found = !strncmp(entry->d_name, "accel", 5);
		if (found)
			snprintf(device->node, sizeof(device->node), "/dev/accel/%.32s",
				 entry->d_name);
	}
	closedir(dir);
	return found;
}

static int by_number(const void *left, const void *right)
{
	const struct vf_device *a = left, *b = right;

	return (int)vf_read(a->name, "vf") - (int)vf_read(b->name, "vf");
}

int vf_list(struct vf_device vf[VF_MAX])
{
	char path[PATH_MAX];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), DEVICES "%s", vf_pf.name);
	dir = opendir(path);
	while (dir && count < VF_MAX && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "spyre_vdev_vf.", 14))
			continue;
		snprintf(vf[count].name, sizeof(vf[count].name), "%.60s", entry->d_name);
		if (find_node(&vf[count]))
			count++;
	}
	if (dir)
		closedir(dir);
	qsort(vf, count, sizeof(*vf), by_number);
	return count;
}

int vf_open(const struct vf_device *device)
{
	int i, fd = -1;

	/* udev may not have created the node yet. */
	for (i = 0; i < 100 && fd < 0; i++) {
		fd = open(device->node, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			abi_sleep_ms(20);
	}
	if (fd < 0)
		tap_bail("cannot open %s of %s: %s", device->node, device->name, strerror(errno));
	return fd;
}

struct drm_spyre_card_info vf_card(int fd)
{
	struct drm_spyre_card_info info = { 0 };
	struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CARD,
					     .size = sizeof(info), .pointer = PTR(&info) };
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);

	if (ret)
		tap_bail("DEV_QUERY of the card: %s", strerror(-ret));
	return info;
}

int vf_run_add(int fd, uint8_t out[VF_ADD_BYTES])
{
	struct abi_prog p = abi_prog_add(1, VF_ADD_BYTES / STICK);
	struct abi_buf mem = abi_buf(fd, 3 * VF_ADD_BYTES, DRM_SPYRE_BO_DEVICE, VF_DATA);
	uint64_t args[3] = { mem.va, mem.va + VF_ADD_BYTES, mem.va + 2 * VF_ADD_BYTES };
	struct abi_queue q = abi_queue(fd, 0);
	uint32_t program = abi_prog_create(fd, &p);
	struct drm_spyre_cb cb = abi_cb_exec(program, args, 3);
	uint16_t *value = mem.map;
	uint32_t i;
	int ret;

	for (i = 0; i < 3 * VF_ADD_BYTES / sizeof(*value); i++)
		value[i] = abi_dl16((int)(i * 37 % 1025) - 512);
	ret = abi_run(&q, &cb, 1);
	memcpy(out, mem.map, VF_ADD_BYTES);
	abi_prog_destroy(fd, program);
	abi_queue_free(&q);
	abi_buf_free(fd, &mem);
	return ret;
}

void vf_saturate(int fd, struct abi_queue *q, struct abi_buf *mem)
{
	struct abi_prog p = abi_prog_long();
	uint32_t program = abi_prog_create(fd, &p);
	uint64_t args[3];
	struct drm_spyre_cb cb = abi_cb_exec(program, args, 3);
	int ret;

	*mem = abi_buf(fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, VF_DATA);
	args[0] = mem->va;
	args[1] = mem->va + ABI_LONG_BYTES;
	args[2] = mem->va + 2 * ABI_LONG_BYTES;
	*q = abi_queue(fd, 60000);
	ret = abi_submit(q, &cb, 1, NULL);
	if (ret)
		tap_bail("SUBMIT of a long program: %s", strerror(-ret));
	abi_sleep_ms(100);
}

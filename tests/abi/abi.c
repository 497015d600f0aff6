/* SPDX-License-Identifier: MIT */
/* The node, raw ioctls and buffers. */
#include "config.h"

#include "abi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static bool is_spyre(const char *name)
{
	char path[PATH_MAX], driver[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/accel/%s/device/driver", name);
	n = readlink(path, driver, sizeof(driver) - 1);
	if (n < 0)
		return false;
	driver[n] = 0;
	return !strcmp(strrchr(driver, '/') ? strrchr(driver, '/') + 1 : driver, "spyre_vdev");
}

bool abi_find(char *node, size_t node_size, char *device, size_t device_size)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *dir;

	dir = opendir("/sys/class/accel");
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "accel", 5) || !is_spyre(entry->d_name))
			continue;
		found = true;
		snprintf(node, node_size, "/dev/accel/%s", entry->d_name);
		snprintf(path, sizeof(path), "/sys/class/accel/%s/device", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		snprintf(device, device_size, "%s",
			 strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
	}
	closedir(dir);
	return found;
}

int abi_open(void)
{
	char node[PATH_MAX], device[NAME_MAX];
	int fd;

	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		tap_skip_all("no accel node of spyre_vdev");
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		tap_bail("cannot open %s: %s", node, strerror(errno));
	return fd;
}

int abi_ioctl(int fd, unsigned long request, void *arg)
{
	int ret;

	do
		ret = ioctl(fd, request, arg);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

pid_t abi_fork(int *socket)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		tap_bail("socketpair: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("fork: %s", strerror(errno));
	*socket = ends[!pid];
	close(ends[pid != 0]);
	return pid;
}

uint64_t abi_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void abi_sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000l };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static size_t guard_pages(size_t size)
{
	return (size + PAGE - 1) / PAGE * PAGE;
}

void *abi_guard(size_t size)
{
	size_t bytes = guard_pages(size);
	uint8_t *p;

	p = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || mprotect(p + bytes, PAGE, PROT_NONE))
		tap_bail("mmap of %zu bytes: %s", bytes, strerror(errno));
	return p + bytes - size;
}

void abi_guard_free(void *p, size_t size)
{
	size_t bytes = guard_pages(size);

	munmap((uint8_t *)p + size - bytes, bytes + PAGE);
}

void *abi_hole(void)
{
	static void *hole;

	if (!hole)
		hole = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0);
	if (hole == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	return hole;
}

int abi_bo(int fd, uint64_t size, uint32_t flags, uint32_t *handle)
{
	struct drm_spyre_bo_create args = { .size = size, .flags = flags };
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_CREATE, &args);

	*handle = args.handle;
	return ret;
}

void abi_gem_close(int fd, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	if (handle)
		abi_ioctl(fd, DRM_IOCTL_GEM_CLOSE, &args);
}

static int bind_one(int fd, const struct drm_spyre_vm_bind_op *op)
{
	struct drm_spyre_vm_bind args = {
		.ops = { .stride = sizeof(*op), .count = 1, .array = PTR(op) },
	};

	return abi_ioctl(fd, DRM_IOCTL_SPYRE_VM_BIND, &args);
}

int abi_bind(int fd, uint32_t handle, uint64_t offset, uint64_t va, uint64_t range, uint32_t flags)
{
	struct drm_spyre_vm_bind_op op = {
		.op = DRM_SPYRE_VM_MAP,
		.flags = flags,
		.handle = handle,
		.bo_offset = offset,
		.va = va,
		.range = range,
	};

	return bind_one(fd, &op);
}

int abi_unbind(int fd, uint64_t va, uint64_t range)
{
	struct drm_spyre_vm_bind_op op = { .op = DRM_SPYRE_VM_UNMAP, .va = va, .range = range };

	return bind_one(fd, &op);
}

void *abi_mmap(int fd, uint32_t handle, uint64_t size)
{
	struct drm_spyre_bo_mmap_offset args = { .handle = handle };
	void *p;

	if (abi_ioctl(fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args))
		return NULL;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)args.offset);
	return p == MAP_FAILED ? NULL : p;
}

struct abi_buf abi_buf(int fd, uint64_t size, uint32_t flags, uint64_t va)
{
	struct abi_buf buf = { .size = size, .va = va };
	int ret;

	ret = abi_bo(fd, size, flags, &buf.handle);
	if (ret)
		tap_bail("BO_CREATE of %llu bytes: %s", (unsigned long long)size, strerror(-ret));
	buf.map = abi_mmap(fd, buf.handle, size);
	if (!buf.map)
		tap_bail("mmap of a BO of %llu bytes: %s", (unsigned long long)size,
			 strerror(errno));
	ret = va ? abi_bind(fd, buf.handle, 0, va, size, 0) : 0;
	if (ret)
		tap_bail("VM_BIND of %llu bytes at 0x%llx: %s", (unsigned long long)size,
			 (unsigned long long)va, strerror(-ret));
	return buf;
}

void abi_buf_free(int fd, struct abi_buf *buf)
{
	if (buf->map)
		munmap(buf->map, buf->size);
	if (buf->va)
		abi_unbind(fd, buf->va, buf->size);
	abi_gem_close(fd, buf->handle);
	memset(buf, 0, sizeof(*buf));
}

struct drm_spyre_memory_info abi_memory(int fd)
{
	struct drm_spyre_memory_info info = { 0 };
	struct drm_spyre_dev_query args = {
		.type = DRM_SPYRE_DEV_QUERY_MEMORY,
		.size = sizeof(info),
		.pointer = PTR(&info),
	};
	int ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args);

	if (ret)
		tap_bail("DEV_QUERY of the memory: %s", strerror(-ret));
	return info;
}

/* Bytes that an idle card reports as used to a plain user's file: the part reserved for others. */
static uint64_t memory_kept(int fd)
{
	return geteuid() ? abi_memory(fd).total / 16 & ~(PAGE - 1) : 0;
}

bool abi_memory_settles(int fd, uint64_t used)
{
	int i;

	if (!used)
		used = memory_kept(fd);
	/* The kernel ends a dead process's io_uring late: seconds later on a slow machine. */
	for (i = 0; i < 3000; i++) {
		if (abi_memory(fd).used == used)
			return true;
		abi_sleep_ms(10);
	}
	tap_note("%llu bytes used, expected %llu", (unsigned long long)abi_memory(fd).used,
		 (unsigned long long)used);
	return false;
}

int abi_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

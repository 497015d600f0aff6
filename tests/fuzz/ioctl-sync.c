// SPDX-License-Identifier: MIT
/* Calls on syncobjs, sync files and dma-bufs. */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <drm.h>

static int syncobj_create(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_syncobj_create args = { .flags = (c->p[0] & 3) == 3 };
	int ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_CREATE, &args);

	if (!ret && args.handle)
		fz_put(&file->syncobj, args.handle);
	return ret;
}

static int syncobj_destroy(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_syncobj_destroy args = { .handle = fz_pick(&file->syncobj, c->p[0]) };

	fz_drop(&file->syncobj, args.handle);
	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_DESTROY, &args);
}

/* Fills the arena's handles and points; returns their number. */
static uint32_t targets(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	uint32_t *handles = (uint32_t *)w->arena->handles, n = 1 + c->p[0] % 3, i;

	for (i = 0; i < n; i++) {
		handles[i] = fz_pick(&file->syncobj, c->p[1 + i]);
		w->arena->points[i] = c->p[4 + i] < 240 ? c->p[4 + i] % 8 :
							  fz_special(c->p[4 + i]);
	}
	return n;
}

static int syncobj_wait(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	const uint32_t n = targets(w, c, file);
	struct drm_syncobj_wait wait = {
		.handles = fz_pointer(w, c->p[10], w->arena->handles),
		.count_handles = n,
		.flags = c->p[8] & 7,
	};
	struct drm_syncobj_timeline_wait timeline = {
		.handles = fz_pointer(w, c->p[10], w->arena->handles),
		.points = fz_pointer(w, c->p[11], w->arena->points),
		.count_handles = n,
		.flags = c->p[8] & 15,
	};
	int ret;

	/* Deadlines are in the past; instead of waiting, an execution sometimes sleeps briefly. */
	if (c->p[7] & 1)
		ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait);
	else
		ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &timeline);
	if (ret == -ETIME && c->p[9] >= 200)
		nanosleep(&(struct timespec){ .tv_nsec = (c->p[9] - 199) * 20000 }, NULL);
	return ret;
}

static int syncobj_signal(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	const uint32_t n = targets(w, c, file);
	struct drm_syncobj_array array = {
		.handles = fz_pointer(w, c->p[10], w->arena->handles), .count_handles = n,
	};
	struct drm_syncobj_timeline_array timeline = {
		.handles = fz_pointer(w, c->p[10], w->arena->handles),
		.points = fz_pointer(w, c->p[11], w->arena->points),
		.count_handles = n,
	};

	switch (c->p[7] & 3) {
	case 0: return fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_SIGNAL, &array);
	case 1: return fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_RESET, &array);
	case 2: return fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &timeline);
	default:
		timeline.flags = c->p[8] & 1;
		return fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_QUERY, &timeline);
	}
}

static int syncobj_transfer(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_syncobj_transfer args = {
		.src_handle = fz_pick(&file->syncobj, c->p[0]),
		.dst_handle = fz_pick(&file->syncobj, c->p[1]),
		.src_point = c->p[2] % 8,
		.dst_point = c->p[3] % 8,
	};

	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_TRANSFER, &args);
}

static void keep_fd(struct fz_world *w, int fd)
{
	if (w->fd.used == FZ_SLOTS)
		close(fd);
	else
		fz_put(&w->fd, fd);
}

/* Picks an fd that the execution opened, never one of the fuzzer's own. */
static int pick_fd(const struct fz_world *w, uint8_t choice)
{
	return w->fd.used && choice < 250 ? (int)w->fd.id[choice % w->fd.used] : -1;
}

static int syncobj_export(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_syncobj_handle args = {
		.handle = fz_pick(&file->syncobj, c->p[0]), .flags = c->p[1] & 1, .fd = -1,
	};
	int ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &args);

	if (!ret && args.fd >= 0)
		keep_fd(w, args.fd);
	return ret;
}

static int syncobj_import(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_syncobj_handle args = {
		.fd = pick_fd(w, c->p[0]), .flags = c->p[1] & 1,
	};
	struct fz_call quiet = *c;
	int ret;

	quiet.poke_op = 0;	/* its fd must belong to the execution */
	if (args.flags)
		args.handle = fz_pick(&file->syncobj, c->p[2]);
	ret = fz_ioctl(w, &quiet, file->fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args);
	if (!ret && !args.flags)
		fz_put(&file->syncobj, args.handle);
	return ret;
}

static int prime_export(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_prime_handle args = {
		.handle = fz_pick(&file->bo, c->p[0]),
		.flags = DRM_CLOEXEC | (c->p[1] & 1 ? DRM_RDWR : 0),
		.fd = -1,
	};
	int ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);

	if (!ret && args.fd >= 0)
		keep_fd(w, args.fd);
	return ret;
}

static int prime_import(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_prime_handle args = { .fd = pick_fd(w, c->p[0]) };
	struct fz_call quiet = *c;
	int ret;

	quiet.poke_op = 0;
	ret = fz_ioctl(w, &quiet, file->fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);
	if (!ret)
		fz_put(&file->bo, args.handle);
	return ret;
}

static int close_fd(struct fz_world *w, const struct fz_call *c)
{
	const int fd = pick_fd(w, c->p[0] % 250);

	if (fd < 0)
		return 0;
	fz_drop(&w->fd, fd);
	return close(fd) ? -errno : 0;
}

int fz_call_sync(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	switch (c->kind) {
	case FZ_SYNCOBJ_CREATE: return syncobj_create(w, c, file);
	case FZ_SYNCOBJ_DESTROY: return syncobj_destroy(w, c, file);
	case FZ_SYNCOBJ_WAIT: return syncobj_wait(w, c, file);
	case FZ_SYNCOBJ_SIGNAL: return syncobj_signal(w, c, file);
	case FZ_SYNCOBJ_TRANSFER: return syncobj_transfer(w, c, file);
	case FZ_SYNCOBJ_EXPORT: return syncobj_export(w, c, file);
	case FZ_SYNCOBJ_IMPORT: return syncobj_import(w, c, file);
	case FZ_PRIME_EXPORT: return prime_export(w, c, file);
	case FZ_PRIME_IMPORT: return prime_import(w, c, file);
	case FZ_CLOSE_FD: return close_fd(w, c);
	default: return -ENOSYS;
	}
}

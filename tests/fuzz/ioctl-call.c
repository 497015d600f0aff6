// SPDX-License-Identifier: MIT
/* Calls on files, memory, programs and queues. */
#include "config.h"

#include "tests/fuzz/ioctl.h"
#include "tests/unit/model_generate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <drm.h>

#define MAX_BOS (16ull << 20)

static int call_open(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	if (c->p[0] & 1) {
		close(file->fd);
		memset(file, 0, sizeof(*file));
		file->fd = -1;
	}
	return fz_open(w, file) < 0 ? -errno : 0;
}

static int call_dev_query(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_dev_query args = {
		.type = c->p[0] < 250 ? c->p[0] % 4 : (uint32_t)fz_special(c->p[1]),
		.size = c->p[2] < 192 ? sizeof(w->arena->query) : c->p[2],
		.pointer = fz_pointer(w, c->p[3], w->arena->query),
	};
	struct drm_spyre_memory_info *info = (void *)w->arena->query;
	int ret;

	ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &args);
	if (!ret && args.type == DRM_SPYRE_DEV_QUERY_MEMORY && args.pointer == (uintptr_t)info &&
	    c->poke_op < FZ_POKE && c->p[2] < 192 && info->free + info->used != info->total)
		fz_fail("%llu bytes free and %llu used are not %llu",
			(unsigned long long)info->free, (unsigned long long)info->used,
			(unsigned long long)info->total);
	return ret;
}

static int call_bo_create(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_bo_create args = {
		.size = fz_bytes(c->p[0]),
		.flags = c->p[1] < 250 ? 1u << (c->p[1] & 1) : (uint32_t)fz_special(c->p[2]),
	};
	int ret;

	if (w->bos > MAX_BOS)
		return -EDQUOT;
	ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_BO_CREATE, &args);
	if (!ret && args.handle) {
		w->bos += args.size;
		fz_put(&file->bo, args.handle);
	}
	return ret;
}

static int call_bo_info(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_bo_info args = { .handle = fz_pick(&file->bo, c->p[0]) };

	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_BO_INFO, &args);
}

static int call_bo_mmap_offset(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_bo_mmap_offset args = { .handle = fz_pick(&file->bo, c->p[0]) };

	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args);
}

static int call_gem_close(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_gem_close args = { .handle = fz_pick(&file->bo, c->p[0]) };

	fz_drop(&file->bo, args.handle);
	return fz_ioctl(w, c, file->fd, DRM_IOCTL_GEM_CLOSE, &args);
}

static int call_op(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_vm_bind_op *op;

	if (w->num_ops == FZ_PENDING)
		return -EDQUOT;
	op = &w->arena->op[w->num_ops++];
	*op = (struct drm_spyre_vm_bind_op){
		.op = c->p[0] < 250 ? (c->p[0] & 15) == 15 : c->p[0],
		.va = fz_va(c->p[1]),
		.range = fz_bytes(c->p[2]),
	};
	if (op->op != DRM_SPYRE_VM_UNMAP) {
		op->handle = fz_pick(&file->bo, c->p[3]);
		op->flags = (c->p[4] & 7) == 7;
		op->bo_offset = c->p[5] < 16 ? 0 : c->p[5] * 4096ull;
		/* The size of the usual BO. */
		if (c->p[2] < 64)
			op->range = 64 * 4096;
	}
	fz_poke(c, op, sizeof(*op));
	return 0;
}

static int call_vm_bind(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_vm_bind args = {
		.ops = fz_array(w, c->p[0], c->p[1], c->p[2], w->arena->op,
				sizeof(w->arena->op[0]), w->num_ops),
		.flags = c->p[3] < 250 ? (c->p[3] & 3) == 3 : (uint32_t)fz_special(c->p[4]),
	};

	if (args.flags & DRM_SPYRE_VM_BIND_ASYNC) {
		args.syncs = fz_array(w, c->p[5] & ~0x40, c->p[6], c->p[7], w->arena->sync,
				      sizeof(w->arena->sync[0]), w->num_syncs);
		w->num_syncs = 0;
	}
	w->num_ops = 0;
	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_VM_BIND, &args);
}

static int call_program_create(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	static struct { void *image; size_t size; } known[256];
	struct spyre_verify_error err;
	struct spyre_program program;
	struct drm_spyre_program_create args = { 0 };
	uint8_t *image = w->arena->image;
	bool changed = false;
	uint32_t i, at;
	size_t size;
	int ret;

	if (!known[c->p[0]].image)
		known[c->p[0]].image = generate_program(c->p[0], true, &known[c->p[0]].size,
							&program, &err);
	size = known[c->p[0]].size;
	if (!known[c->p[0]].image || size > sizeof(w->arena->image))
		return -EDQUOT;
	memcpy(image, known[c->p[0]].image, size);
	for (i = 1; i + 2 < 12; i += 3) {
		if (c->p[i] < 128)
			continue;
		at = ((uint32_t)c->p[i + 1] << 3 | (c->p[i] & 7)) % size;
		image[at] = c->p[i] & 8 ? c->p[i + 2] : image[at] + c->p[i + 2];
		changed = true;
	}
	/* With this, most mutants pass the checks of the operand table. */
	if (changed && c->p[12] < 128)
		build_settle(image, size, SPYRE_MAX_CORES, &program, &err);
	args.data = fz_pointer(w, c->p[13], image);
	args.size = size;
	ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &args);
	if (!ret && args.handle)
		fz_put(&file->program, args.handle << 8 | image[16]);
	return ret;
}

static int call_program_destroy(struct fz_world *w, const struct fz_call *c,
				struct fz_file *file)
{
	uint32_t id = fz_pick(&file->program, c->p[0]);
	struct drm_spyre_program_destroy args = { .handle = id >> 8 };

	fz_drop(&file->program, id);
	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_PROGRAM_DESTROY, &args);
}

static int call_queue_create(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	static const uint32_t timeouts[] = { 0, 20, 1, 5, 60000, 60001, 100, 10 };
	struct drm_spyre_queue_create args = {
		.priority = c->p[0] < 250 ? c->p[0] & 1 : c->p[0],
		.timeout_ms = timeouts[c->p[1] % 8],
	};
	int ret;

	if (c->p[2] >= 8 && c->p[2] < 224) {
		args.core_first = c->p[3] % 32;
		args.core_count = 1 + c->p[4] % 32;
	}
	ret = fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &args);
	if (!ret && args.queue_id)
		fz_put(&file->queue, args.queue_id);
	return ret;
}

static int call_queue_destroy(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_queue_destroy args = { .queue_id = fz_pick(&file->queue, c->p[0]) };

	fz_drop(&file->queue, args.queue_id);
	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &args);
}

static int call_queue_query(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_queue_query args = { .queue_id = fz_pick(&file->queue, c->p[0]) };

	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &args);
}

static int call_reset(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_context_reset context = { 0 };
	struct drm_spyre_reset card = { 0 };

	if (c->kind == FZ_CONTEXT_RESET)
		return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_CONTEXT_RESET, &context);
	return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_RESET, &card);
}

/* The files below the card's debugfs folder that root may write, if there are any. */
static int call_inject(struct fz_world *w, const struct fz_call *c)
{
	static const char *const words[] = {
		"fault=access", "fault=escape", "fault=compute", "fault=hang times=1",
		"fault=compute after=1", "fault=access after=3 times=2", "fault=escape times=3",
		"client=1 fault=compute", "fault=compute client=4294967296", "clear", "fault=",
		"after=1", "times=0 fault=hang", "client=-1 fault=hang", "fault=x", "", "x",
	};
	static char files[8][PATH_MAX];
	static int num = -1;
	const char *word = words[c->p[1] % (sizeof(words) / sizeof(words[0]))];
	struct dirent *entry;
	char path[PATH_MAX];
	DIR *dir;
	int fd, ret;

	if (num < 0) {
		num = 0;
		dir = w->debugfs[0] ? opendir(w->debugfs) : NULL;
		while (dir && num < 8 && (entry = readdir(dir))) {
			snprintf(path, sizeof(path), "%s/%s", w->debugfs, entry->d_name);
			if (entry->d_type == DT_REG && !access(path, W_OK))
				snprintf(files[num++], sizeof(files[0]), "%s", path);
		}
		if (dir)
			closedir(dir);
	}
	if (!num)
		return -EDQUOT;
	fd = open(files[c->p[0] % num], O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, word, strlen(word)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

/* Any driver number with any size, direction and argument. */
static int call_raw(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	uint8_t args[256];
	unsigned int nr = DRM_COMMAND_BASE + c->p[0] % 16;
	uint32_t i;

	memset(args, c->p[1] < 128 ? 0 : c->p[1], sizeof(args));
	for (i = 2; i + 1 < FZ_PARAMS; i += 2)
		args[c->p[i]] = c->p[i + 1];
	return fz_ioctl(w, c, file->fd, _IOC(c->p[13] & 3, 'd', nr, c->p[12]), args);
}

int fz_call(struct fz_world *w, const struct fz_call *c)
{
	struct fz_file *file = &w->file[c->file % FZ_FILES];

	if (fz_open(w, file) < 0)
		return -errno;
	switch (c->kind) {
	case FZ_OPEN: return call_open(w, c, file);
	case FZ_DEV_QUERY: return call_dev_query(w, c, file);
	case FZ_BO_CREATE: return call_bo_create(w, c, file);
	case FZ_BO_MMAP_OFFSET: return call_bo_mmap_offset(w, c, file);
	case FZ_BO_INFO: return call_bo_info(w, c, file);
	case FZ_GEM_CLOSE: return call_gem_close(w, c, file);
	case FZ_MMAP:
	case FZ_MUNMAP:
	case FZ_REMAP:
	case FZ_TOUCH: return fz_call_map(w, c, file);
	case FZ_OP: return call_op(w, c, file);
	case FZ_VM_BIND: return call_vm_bind(w, c, file);
	case FZ_PROGRAM_CREATE: return call_program_create(w, c, file);
	case FZ_PROGRAM_DESTROY: return call_program_destroy(w, c, file);
	case FZ_QUEUE_CREATE: return call_queue_create(w, c, file);
	case FZ_QUEUE_DESTROY: return call_queue_destroy(w, c, file);
	case FZ_QUEUE_QUERY: return call_queue_query(w, c, file);
	case FZ_CONTEXT_RESET:
	case FZ_RESET: return call_reset(w, c, file);
	case FZ_INJECT: return call_inject(w, c);
	case FZ_RAW: return call_raw(w, c, file);
	case FZ_CB:
	case FZ_SYNC:
	case FZ_SUBMIT:
	case FZ_URING_SUBMIT:
	case FZ_URING_OPEN:
	case FZ_URING_WAIT: return fz_call_submit(w, c, file);
	case FZ_FORK:
	case FZ_DUP:
	case FZ_SEND_FD:
	case FZ_RECV_FD: return fz_call_process(w, c, file);
	default: return fz_call_sync(w, c, file);
	}
}

// SPDX-License-Identifier: MIT
/*
 * The objects of calls: files, handles, memory at known addresses; and the
 * conversion of bytes to values.
 */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <drm.h>

#define PAGE 4096ull
/* Far from other mappings, so that flipping a bit of a pointer hits no memory of the fuzzer. */
#define ARENA ((void *)0x100000000000ul)
#define VA_BASE (16ull << 20)
#define MAX_BO (1ull << 20)
#define MAX_WAIT_NS 2000000

void fz_world_init(struct fz_world *w)
{
	const size_t arena = (sizeof(*w->arena) + PAGE - 1) / PAGE * PAGE;
	const size_t size = arena + 6 * PAGE;
	uint8_t *p = mmap(ARENA, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	uint32_t i;

	if (p != ARENA)
		fz_die("no memory at %p", ARENA);
	w->arena = (struct fz_arena *)p;
	w->readonly = p + arena + PAGE;
	w->edge = p + arena + 5 * PAGE;
	w->hole = w->edge;
	if (mprotect(p + arena, PAGE, PROT_NONE) || mprotect(w->readonly, PAGE, PROT_READ) ||
	    mprotect(w->readonly + PAGE, PAGE, PROT_NONE) || mprotect(w->edge, PAGE, PROT_NONE))
		fz_die("mprotect: %s", strerror(errno));
	for (i = 0; i < FZ_FILES; i++)
		w->file[i].fd = -1;
	fz_mail_open(w);
	/* The ring's descriptors come before those that executions open. */
	fz_uring_reset(w);
	w->first_fd = dup(0);
	close(w->first_fd);
}

void fz_world_reset(struct fz_world *w)
{
	uint32_t i;

	/* Children may share these descriptors, so they end before these are closed. */
	fz_process_reset();
	fz_map_reset(w);
	fz_uring_reset(w);
	/* This includes descriptors that the kernel created but could not report. */
	close_range(w->first_fd, ~0u, 0);
	for (i = 0; i < FZ_FILES; i++) {
		memset(&w->file[i], 0, sizeof(w->file[i]));
		w->file[i].fd = -1;
	}
	w->fd.used = 0;
	w->num_cbs = w->num_syncs = w->num_ops = 0;
	w->bos = 0;
}

int fz_open(struct fz_world *w, struct fz_file *file)
{
	if (file->fd < 0)
		file->fd = open(w->node, O_RDWR | O_CLOEXEC);
	return file->fd;
}

void fz_put(struct fz_slots *slots, uint32_t id)
{
	if (slots->used == FZ_SLOTS) {
		memmove(slots->id, slots->id + 1, (FZ_SLOTS - 1) * sizeof(id));
		slots->used--;
	}
	slots->id[slots->used++] = id;
}

void fz_drop(struct fz_slots *slots, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < slots->used; i++)
		if (slots->id[i] == id) {
			memmove(&slots->id[i], &slots->id[i + 1],
				(--slots->used - i) * sizeof(id));
			return;
		}
}

uint32_t fz_pick(const struct fz_slots *slots, uint8_t choice)
{
	if (choice >= 240)
		return choice == 255 ? ~0u : choice == 254 ? 1u << 31 : choice - 240u;
	return slots->used ? slots->id[choice % slots->used] : 0;
}

uint64_t fz_special(uint8_t choice)
{
	static const uint64_t value[] = {
		0, 1, 2, 3, 7, 8, 15, 31, 32, 63, 64, 65, 127, 128, 255, 256, 257, 4095, 4096, 4097,
		65535, 65536, 1u << 20, 1u << 26, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32,
		(1ull << 34) - 4096, 1ull << 34, 1ull << 37, (1ull << 37) - 4096, 1ull << 62,
		1ull << 63, 0x7ffffffff000ull, 0xffff888000000000ull, INT64_MAX,
		UINT64_MAX - 4095, UINT64_MAX - 127, UINT64_MAX,
	};

	return value[choice % (sizeof(value) / sizeof(value[0]))];
}

uint64_t fz_va(uint8_t choice)
{
	if (choice < 160)
		return VA_BASE + (choice % 32) * 8192;
	if (choice < 224)
		return VA_BASE + (uint64_t)DRM_SPYRE_STICK_BYTES * (choice - 160u) / 2;
	if (choice < 232)
		return ((uint64_t)(choice - 224u) << DRM_SPYRE_SEGMENT_SHIFT) + VA_BASE;
	return fz_special(choice * 5);
}

uint64_t fz_bytes(uint8_t choice)
{
	static const uint64_t value[] = {
		PAGE, 128, 2 * PAGE, 16 * PAGE, 32 * PAGE, 64 * PAGE, 1u << 20, 4, 16, 64, 256, 1,
		PAGE - 1, PAGE + 1, 1024, 512,
	};

	return choice < 224 ? value[choice % 16] : fz_special(choice * 3);
}

uint64_t fz_pointer(struct fz_world *w, uint8_t choice, const void *good)
{
	const uint64_t at = (uint64_t)(uintptr_t)good;

	if (choice < 232)
		return at;
	switch (choice & 7) {
	case 0: return 0;
	case 1: return (uint64_t)(uintptr_t)w->hole;
	case 2: return (uint64_t)(uintptr_t)w->edge - 8;
	case 3: return (uint64_t)(uintptr_t)w->readonly;
	case 4: return at + 1;
	case 5: return 0xffff888000000000ull;
	case 6: return ~0ull - 64;
	default: return (uint64_t)(uintptr_t)w->edge - 128;
	}
}

struct drm_spyre_array fz_array(struct fz_world *w, uint8_t where, uint8_t stride, uint8_t count,
				const void *data, uint32_t size, uint32_t num)
{
	struct drm_spyre_array array = { .stride = size, .count = num };

	if (stride >= 236)
		array.stride = stride < 240 ? size + 8 * (stride - 235u) :
			       (uint32_t)fz_special(stride);
	if (count >= 236)
		array.count = count < 240 ? num - (count - 235u) : (uint32_t)fz_special(count);
	if (where >= 192 && where < 224) {
		/* The array ends at the end of the mapped memory. */
		array.array = (uint64_t)(uintptr_t)w->edge - num * size;
		memcpy(w->edge - num * size, data, num * size);
	} else {
		array.array = fz_pointer(w, where, data);
	}
	return array;
}

/*
 * drm_syncobj_array_find() asks the page allocator for any number of handles and
 * triggers its warning, on every driver's node: an issue of the DRM core.
 */
static void clamp_count(uint32_t *count)
{
	if (*count > 65536)
		*count = *count % 65536;
}

/* Limits sizes and times that are valid but would make an execution long or large. */
static void clamp(unsigned int nr, void *arg)
{
	struct drm_syncobj_array *array = arg;
	struct drm_syncobj_timeline_array *points = arg;
	struct drm_spyre_program_create *program = arg;
	struct drm_syncobj_timeline_wait *timeline = arg;
	struct drm_syncobj_wait *wait = arg;
	struct drm_syncobj_transfer *transfer = arg;
	struct drm_spyre_bo_create *bo = arg;

	switch (nr) {
	case DRM_COMMAND_BASE + DRM_SPYRE_BO_CREATE:
		if (bo->size > MAX_BO && bo->size <= 1ull << 37)
			bo->size = bo->size % MAX_BO + 1;
		break;
	case DRM_COMMAND_BASE + DRM_SPYRE_PROGRAM_CREATE:
		if (program->size > 1u << 20 && program->size <= 64u << 20)
			program->size = program->size % (1u << 20) + 1;
		break;
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_WAIT):
		if (wait->timeout_nsec > MAX_WAIT_NS)
			wait->timeout_nsec = 0;
		clamp_count(&wait->count_handles);
		break;
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT):
		if (timeline->timeout_nsec > MAX_WAIT_NS)
			timeline->timeout_nsec = 0;
		clamp_count(&timeline->count_handles);
		break;
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_SIGNAL):
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_RESET):
		clamp_count(&array->count_handles);
		break;
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL):
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_QUERY):
		clamp_count(&points->count_handles);
		break;
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_TRANSFER):
		/* Otherwise the call sleeps for seconds. */
		transfer->flags &= ~DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
		break;
	}
}

void fz_poke(const struct fz_call *c, void *arg, size_t size)
{
	uint8_t *at = (uint8_t *)arg + c->poke_at % size;
	uint64_t value = 0;
	size_t width = 1;

	if (c->poke_op < FZ_POKE || !size)
		return;
	switch (c->poke_op % 8) {
	case 0: *at = c->poke_value; return;
	case 1: *at ^= 1 << c->poke_value % 8; return;
	case 2: *at += c->poke_value; return;
	case 3: width = 4; value = fz_special(c->poke_value); break;
	case 4: width = 8; value = fz_special(c->poke_value); break;
	default: return;	/* see fz_ioctl() */
	}
	at = (uint8_t *)arg + c->poke_at % size / width * width;
	if (at + width <= (uint8_t *)arg + size)
		memcpy(at, &value, width);
}

int fz_ioctl(struct fz_world *w, const struct fz_call *c, int fd, unsigned long request,
	     void *arg)
{
	size_t size = _IOC_SIZE(request), as = size, off = 0;
	uint8_t *p;
	int ret;

	if (c->poke_op >= FZ_POKE && c->poke_op % 8 == 6)
		as = c->poke_value;		/* a header of another version */
	if (c->poke_op >= FZ_POKE && c->poke_op % 8 == 7)
		off = c->poke_value;
	fz_poke(c, arg, size);
	clamp(_IOC_NR(request), arg);
	p = w->edge - (as > size ? as : size);
	memset(p, 0, as > size ? as : size);
	memcpy(p, arg, size);
	request = _IOC(_IOC_DIR(request), _IOC_TYPE(request), _IOC_NR(request), as);
	do
		ret = ioctl(fd, request, off < 250 ? p + off : NULL) < 0 ? -errno : 0;
	while (ret == -EINTR);
	memcpy(arg, p, size);
	return ret;
}

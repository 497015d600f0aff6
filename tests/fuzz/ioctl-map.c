// SPDX-License-Identifier: MIT
/* Mappings that are created, moved and removed while other threads touch them. */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <drm.h>

#define MAX_TOUCHERS 3

struct toucher {
	pthread_t thread;
	void *map[FZ_SLOTS];
	uint64_t size[FZ_SLOTS];
	uint32_t num, rounds;
	_Atomic bool stop;
};

static struct toucher touchers[MAX_TOUCHERS];
static uint32_t num_touchers;
static __thread sigjmp_buf fault;

static void on_fault(int signal)
{
	siglongjmp(fault, signal);
}

/*
 * A mapping may have no page behind it, or be gone. Its address may meanwhile be
 * the fuzzer's own memory, so a write must not change its contents.
 */
static void touch(uint8_t *p, uint64_t size, uint8_t how, bool write)
{
	static bool installed;
	struct sigaction act = { .sa_handler = on_fault };
	uint8_t *at = p + (how * 4096ull + 5) % size;

	if (!installed) {
		sigaction(SIGBUS, &act, NULL);
		sigaction(SIGSEGV, &act, NULL);
		installed = true;
	}
	if (sigsetjmp(fault, 1))
		return;
	if (write)
		__atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
	else
		(void)*(volatile uint8_t *)at;
}

static int call_mmap(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	static const int prots[] = {
		PROT_READ | PROT_WRITE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC,
		PROT_NONE,
	};
	struct drm_spyre_bo_mmap_offset args = { .handle = fz_pick(&file->bo, c->p[0]) };
	uint64_t size = fz_bytes(c->p[1]);
	int prot = prots[c->p[2] % 5];
	void *p;

	if (w->num_maps == FZ_SLOTS || size > 1ull << 40)
		return -EDQUOT;
	if (c->p[5] >= 240 && w->fd.used) {
		p = mmap(NULL, size, prot, MAP_SHARED, fz_pick(&w->fd, c->p[5] - 240), 0);
	} else {
		ioctl(file->fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &args);
		args.offset += c->p[3] < 240 ? 0 : fz_special(c->p[3]) & ~4095ull;
		p = mmap(NULL, size, prot, c->p[4] < 224 ? MAP_SHARED : MAP_PRIVATE, file->fd,
			 (off_t)args.offset);
	}
	if (p == MAP_FAILED)
		return -errno;
	w->map[w->num_maps] = p;
	w->map_size[w->num_maps++] = size;
	if (prot & PROT_READ)
		touch(p, size, c->p[6], prot & PROT_WRITE && c->p[6] & 1);
	return 0;
}

static int call_munmap(struct fz_world *w)
{
	if (!w->num_maps)
		return 0;
	w->num_maps--;
	return munmap(w->map[w->num_maps], w->map_size[w->num_maps]) ? -errno : 0;
}

static int move_map(struct fz_world *w, const struct fz_call *c, uint32_t i)
{
	const uint64_t size = c->p[2] & 1 ? w->map_size[i] : fz_bytes(c->p[3] % 16);
	void *p = mremap(w->map[i], w->map_size[i], size, MREMAP_MAYMOVE);

	if (p == MAP_FAILED)
		return -errno;
	w->map[i] = p;
	w->map_size[i] = size;
	return 0;
}

static int call_remap(struct fz_world *w, const struct fz_call *c)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTFORK, MADV_COLD,
		MADV_PAGEOUT, MADV_REMOVE, MADV_WILLNEED,
	};
	const uint32_t i = w->num_maps ? c->p[0] % w->num_maps : 0;
	uint64_t half;

	if (!w->num_maps)
		return 0;
	half = (w->map_size[i] / 2 + 4095) & ~4095ull;
	switch (c->p[1] % 5) {
	case 0: return move_map(w, c, i);
	case 1:	/* splits the mapping in two */
		return mprotect(w->map[i], half, c->p[2] & 3) ? -errno : 0;
	case 2:
		return madvise(w->map[i], w->map_size[i], advices[c->p[2] % 8]) ? -errno : 0;
	case 3:
		return msync(w->map[i], w->map_size[i], MS_SYNC) ? -errno : 0;
	default: /* a hole at its end */
		if (half < w->map_size[i])
			munmap((uint8_t *)w->map[i] + half, w->map_size[i] - half);
		return 0;
	}
}

static void *touch_all(void *data)
{
	struct toucher *t = data;
	uint32_t i, round;

	for (round = 0; round < t->rounds && !t->stop; round++)
		for (i = 0; i < t->num; i++)
			touch(t->map[i], t->size[i], (uint8_t)round, round & 1);
	return NULL;
}

static int call_touch(struct fz_world *w, const struct fz_call *c)
{
	struct toucher *t = &touchers[num_touchers];
	uint32_t i;

	if (num_touchers == MAX_TOUCHERS)
		return -EDQUOT;
	t->num = w->num_maps;
	t->rounds = 1u << c->p[0] % 12;
	t->stop = false;
	for (i = 0; i < w->num_maps; i++) {
		t->map[i] = w->map[i];
		t->size[i] = w->map_size[i];
	}
	if (pthread_create(&t->thread, NULL, touch_all, t))
		return -EAGAIN;
	num_touchers++;
	return 0;
}

/* Unmaps memory while threads touch it, which is their purpose. */
void fz_map_reset(struct fz_world *w)
{
	uint32_t i;

	for (i = 0; i < w->num_maps; i++)
		munmap(w->map[i], w->map_size[i]);
	w->num_maps = 0;
	for (i = 0; i < num_touchers; i++)
		touchers[i].stop = true;
	/* A child has the list, but not the threads. */
	for (i = 0; i < num_touchers && !fz_is_child(); i++)
		pthread_join(touchers[i].thread, NULL);
	num_touchers = 0;
}

int fz_call_map(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	switch (c->kind) {
	case FZ_MMAP: return call_mmap(w, c, file);
	case FZ_MUNMAP: return call_munmap(w);
	case FZ_REMAP: return call_remap(w, c);
	default: return call_touch(w, c);
	}
}

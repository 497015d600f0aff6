/* SPDX-License-Identifier: MIT */
/*
 * Shared by the ABI tests: the node, raw ioctls, memory, queues. Nothing here uses
 * libspyre, because these programs check the module against its header.
 */
#ifndef TESTS_ABI_H
#define TESTS_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include <drm/spyre_accel.h>

#include "tap.h"

/* Of the host: BOs are rounded up to it.  The card's granule, DRM_SPYRE_VA_PAGE, may be smaller. */
#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE))
#define MOST_PAGE (64u << 10)
#define MIB (1ull << 20)
#define STICK DRM_SPYRE_STICK_BYTES
#define NEVER (~0u)		/* a handle that never exists */
#define PTR(p) ((uint64_t)(uintptr_t)(p))

/* Opens another file of the card; skips the whole program if there is no card. */
int abi_open(void);
/* Finds the node and its device's name under /sys/bus/platform; returns false if there is none. */
bool abi_find(char *node, size_t node_size, char *device, size_t device_size);
/* Returns 0 or the negative errno; restarts after a signal, like any restartable call. */
int abi_ioctl(int fd, unsigned long request, void *arg);
uint64_t abi_now_ns(void);
/* Forks with a socket pair, of which each process gets one end; bails out on failure. */
pid_t abi_fork(int *socket);
void abi_sleep_ms(unsigned int ms);

/* Memory whose last byte is followed by an unmapped page. */
void *abi_guard(size_t size);
void abi_guard_free(void *p, size_t size);
/* An address at which nothing is ever mapped. */
void *abi_hole(void);

/* --- buffers --- */
struct abi_buf {
	uint32_t handle;
	uint64_t size;
	uint64_t va;		/* device address, 0: not mapped */
	void *map;		/* in this process */
};

int abi_bo(int fd, uint64_t size, uint32_t flags, uint32_t *handle);
void abi_gem_close(int fd, uint32_t handle);
int abi_bind(int fd, uint32_t handle, uint64_t offset, uint64_t va, uint64_t range, uint32_t flags);
int abi_unbind(int fd, uint64_t va, uint64_t range);
void *abi_mmap(int fd, uint32_t handle, uint64_t size);
/* Creates a BO, maps it here and, if @va is not 0, on the card; bails out on failure. */
struct abi_buf abi_buf(int fd, uint64_t size, uint32_t flags, uint64_t va);
void abi_buf_free(int fd, struct abi_buf *buf);
struct drm_spyre_memory_info abi_memory(int fd);
/*
 * Work ends shortly after its fence: waits until @used is reached, returns false
 * after 5 s. 0 stands for the bytes that a file sees as used on an idle card.
 */
bool abi_memory_settles(int fd, uint64_t used);

/* --- queues --- */
#define ABI_RESULTS 256
struct abi_queue {
	int fd;
	uint32_t id;
	uint32_t syncobj;	/* timeline */
	uint64_t point;		/* last submitted */
	struct abi_buf results;
};

/* DEV_QUERY_CONTEXT; bails out on failure. */
struct drm_spyre_context_info abi_context(int fd);
/* CONTEXT_RESET; @queues may be NULL. */
int abi_context_reset(int fd, uint32_t *queues);
/* Returns true if this thread has CAP_SYS_NICE, which DRM_SPYRE_PRIORITY_HIGH requires. */
bool abi_may_be_high(void);
/* Drops the capability, or restores it. */
void abi_set_high(bool may);
int abi_queue_create(int fd, uint32_t priority, uint32_t timeout_ms, uint32_t *id);
int abi_queue_destroy(int fd, uint32_t id);
struct drm_spyre_queue_query abi_queue_query(int fd, uint32_t id);
struct abi_queue abi_queue(int fd, uint32_t timeout_ms);
void abi_queue_free(struct abi_queue *q);
struct drm_spyre_cb_result *abi_results(struct abi_queue *q);

/* Signals q->point + 1 on success; results start at results[0]. */
int abi_submit(struct abi_queue *q, const struct drm_spyre_cb *cbs, uint32_t count,
	       uint32_t *error_cb);
/* The same with two more syncs, if they have a handle. */
int abi_submit_sync(struct abi_queue *q, const struct drm_spyre_cb *cbs, uint32_t count,
		    struct drm_spyre_sync a, struct drm_spyre_sync b);
int abi_wait_point(int fd, uint32_t syncobj, uint64_t point, unsigned int ms);
int abi_wait(struct abi_queue *q, unsigned int ms);
/* Submits and waits; returns an errno of SUBMIT, of the wait, or the first bad status. */
int abi_run(struct abi_queue *q, const struct drm_spyre_cb *cbs, uint32_t count);
uint32_t abi_syncobj(int fd);

/* --- control blocks --- */
struct drm_spyre_cb abi_cb_timestamp(void);
struct drm_spyre_cb abi_cb_fill32(uint64_t dst, uint64_t size, uint32_t value);
struct drm_spyre_cb abi_cb_copy(uint64_t dst, uint64_t src, uint64_t size);
struct drm_spyre_cb abi_cb_dma(const struct drm_spyre_dma *desc, uint64_t device, void *host,
			       uint64_t size);
struct drm_spyre_cb abi_cb_dma_bo(const struct drm_spyre_dma *desc, uint64_t device,
				  uint32_t handle, uint64_t offset, uint64_t size);
struct drm_spyre_cb abi_cb_exec(uint32_t program, const uint64_t *args, uint32_t num_args);
/* A raw move of @bytes (a multiple of the stick) as sticks of fp32. */
struct drm_spyre_dma abi_dma_raw(uint8_t direction, uint64_t bytes);

/* Writes @text to a file of sysfs or debugfs; returns 0 or -errno. */
int abi_write_file(const char *path, const char *text);

#endif /* TESTS_ABI_H */

/* SPDX-License-Identifier: MIT */
/*
 * Helpers of the ABI tests: TAP, the node, and the few objects most tests
 * need.  The tests speak to the kernel directly, not through libspyre.
 */
#ifndef TESTS_ABI_H
#define TESTS_ABI_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <drm.h>
#include <drm/spyre_accel.h>

#include "model/program.h"

#define PAGE 4096ull

/* abi.c */
extern const char *node_path;

/* TAP: a line per check; returns @good. */
bool ok(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
int done_testing(void);
/* For what no later check makes sense without. */
void need(bool good, const char *what);

/* 0 or -errno, not restarted. */
int call(int fd, unsigned long request, void *argument);
/* ok() that the call gives @expected (0 or -errno). */
bool gives(int expected, int fd, unsigned long request, void *argument, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

int node_open(void);
uint64_t now_ns(void);

uint32_t bo_create(int fd, uint64_t size, uint32_t flags);
void *bo_map(int fd, uint32_t handle, size_t size);
void gem_close(int fd, uint32_t handle);
int vm_bind(int fd, uint32_t op, uint32_t flags, uint32_t handle, uint64_t offset, uint64_t va,
	    uint64_t range);
uint32_t queue_create(int fd, uint32_t priority, uint32_t timeout_ms);

uint32_t syncobj_create(int fd);
/* 0, or -ETIME after @ms. */
int timeline_wait(int fd, uint32_t syncobj, uint64_t point, int ms);

/* Submits @num control blocks, results at the start of @result_bo, signals @point. */
int submit(int fd, uint32_t queue, const struct drm_spyre_cb *cbs, uint32_t num,
	   uint32_t result_bo, uint32_t syncobj, uint64_t point);
/* The same, to the end. */
int submit_wait(int fd, uint32_t queue, const struct drm_spyre_cb *cbs, uint32_t num,
		uint32_t result_bo, uint32_t syncobj, uint64_t point);

/* A program image, built piece by piece. */
struct image {
	uint8_t bytes[4096];
	size_t size;
};

/* out = a + b, DL16, @sticks sticks each, @turns times over. */
void image_add(struct image *image, uint32_t sticks, uint32_t turns);
/* The same through the scratchpad: out = (lx = a + b) + b. */
void image_add_lx(struct image *image, uint32_t sticks);
/* out = the first @sticks sticks of the scratchpad of core 0. */
void image_peek_lx(struct image *image, uint32_t sticks);
uint32_t program_create(int fd, const struct image *image);

#endif

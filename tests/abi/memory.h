/* SPDX-License-Identifier: MIT */
/* Queries of memory use, by each interface of the kernel. */
#ifndef TESTS_ABI_MEMORY_H
#define TESTS_ABI_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <drm/spyre_accel.h>

int memory_info(int fd, uint32_t handle, struct drm_spyre_bo_info *info);
/* BO_INFO's resident; bails out on failure. */
uint64_t memory_resident(int fd, uint32_t handle);
/* A size in bytes in the file's fdinfo; UINT64_MAX if the key is missing. */
uint64_t memory_fdinfo(int fd, const char *key);
/* A number in the card's folder in sysfs; UINT64_MAX if the file is missing. */
uint64_t memory_sysfs(const char *name);
/* A number in a file with lines "key value"; UINT64_MAX if it is missing. */
uint64_t memory_key(const char *path, const char *key);

#endif /* TESTS_ABI_MEMORY_H */

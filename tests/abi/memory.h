/* SPDX-License-Identifier: MIT */
/* What the kernel says about memory, by each way of asking. */
#ifndef TESTS_ABI_MEMORY_H
#define TESTS_ABI_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <drm/spyre_accel.h>

int memory_info(int fd, uint32_t handle, struct drm_spyre_bo_info *info);
/* BO_INFO's resident; bails out if there is none. */
uint64_t memory_resident(int fd, uint32_t handle);
/* A size in bytes of the file's fdinfo; UINT64_MAX if the key is not there. */
uint64_t memory_fdinfo(int fd, const char *key);
/* A number of the card's folder in sysfs; UINT64_MAX if the file is not there. */
uint64_t memory_sysfs(const char *name);
/* A number of a file with lines "key value"; UINT64_MAX if it is not there. */
uint64_t memory_key(const char *path, const char *key);

#endif /* TESTS_ABI_MEMORY_H */

/* SPDX-License-Identifier: MIT */
/* The cgroup that abi-memcg makes, and what its parts share. */
#ifndef TESTS_ABI_MEMCG_H
#define TESTS_ABI_MEMCG_H

#include <stdint.h>

#include "abi.h"

#define MEMCG_LIMIT (64 * MIB)

/* In a child: ends it if it cannot. */
void memcg_join(void);
/* A file of the group; bails out if it has no number. */
uint64_t memcg_number(const char *name);
/* A key of its memory.stat. */
uint64_t memcg_stat(const char *key);
/* Processes of the group that the OOM killer ended. */
uint64_t memcg_kills(void);

/* A descriptor through a socket; bails out, or ends the child, if that fails. */
void memcg_send_fd(int socket, int fd);
int memcg_receive_fd(int socket);

/* @fd: of a process outside the group. */
void memcg_test_oom(int fd);
void memcg_test_jobs(int fd);
void memcg_test_charge(void);

#endif /* TESTS_ABI_MEMCG_H */

/* SPDX-License-Identifier: MIT */
/* The cgroup of abi-memcg, shared by its parts. */
#ifndef TESTS_ABI_MEMCG_H
#define TESTS_ABI_MEMCG_H

#include <stdint.h>

#include "abi.h"

#define MEMCG_LIMIT (64 * MIB)

/* For a child: joins the group, and exits on failure. */
void memcg_join(void);
/* Reads a file of the group; bails out if it has no number. */
uint64_t memcg_number(const char *name);
/* Reads a key of its memory.stat. */
uint64_t memcg_stat(const char *key);
/* Number of processes of the group that the OOM killer killed. */
uint64_t memcg_kills(void);

/* Sends a descriptor through a socket; bails out, or exits the child, on failure. */
void memcg_send_fd(int socket, int fd);
int memcg_receive_fd(int socket);

/* @fd: of a process outside the group. */
void memcg_test_oom(int fd);
void memcg_test_jobs(int fd);
void memcg_test_files(int fd);
void memcg_test_charge(void);

#endif /* TESTS_ABI_MEMCG_H */

/* SPDX-License-Identifier: MIT */
/* Fences for tests: a gate that stays shut as long as the test needs, and sync_files. */
#ifndef ABI_FENCE_H
#define ABI_FENCE_H

#include "abi.h"
#include "prog.h"

/* A separate file whose only job runs until the gate is opened. */
struct abi_gate {
	int fd;
	struct abi_queue queue;
	struct abi_buf mem;
	uint32_t program;
	uint32_t syncobj;	/* binary: the job's fence */
};

/* Returns an open gate. A shut one occupies a worker of the card: use one at a time. */
struct abi_gate abi_gate_make(void);
void abi_gate_shut(struct abi_gate *gate);
/* Returns a shut gate. */
struct abi_gate abi_gate(void);
/* Returns the job's fence in a binary syncobj of file @fd. */
uint32_t abi_gate_syncobj(const struct abi_gate *gate, int fd);
/* Ends the job; its fence signals with -ECANCELED. */
void abi_gate_open(struct abi_gate *gate);
/* Ends the job if necessary and closes the file. */
void abi_gate_free(struct abi_gate *gate);

struct drm_spyre_sync abi_sync_wait(uint32_t handle, uint64_t point);
struct drm_spyre_sync abi_sync_signal(uint32_t handle, uint64_t point);

/* Exports the fence of binary syncobj @handle as a sync_file; bails out if there is none. */
int abi_sync_file(int fd, uint32_t handle);
/* The status of SYNC_IOC_FILE_INFO: 0 not signalled, 1 signalled, or a negative errno. */
int abi_sync_file_status(int file);
/* Waits until it is readable; returns false after @ms. */
bool abi_sync_file_poll(int file, unsigned int ms);

#endif /* ABI_FENCE_H */

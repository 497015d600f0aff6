/* SPDX-License-Identifier: MIT */
/* Fences for tests: one that stays shut as long as the test likes, and sync_files. */
#ifndef ABI_FENCE_H
#define ABI_FENCE_H

#include "abi.h"
#include "prog.h"

/* A file of its own whose only job runs until the gate is opened. */
struct abi_gate {
	int fd;
	struct abi_queue queue;
	struct abi_buf mem;
	uint32_t program;
	uint32_t syncobj;	/* binary: the job's fence */
};

/* Open. A shut one takes one of the card's workers: no more than one at a time. */
struct abi_gate abi_gate_make(void);
void abi_gate_shut(struct abi_gate *gate);
/* Shut. */
struct abi_gate abi_gate(void);
/* The job's fence in a binary syncobj of file @fd. */
uint32_t abi_gate_syncobj(const struct abi_gate *gate, int fd);
/* Ends the job; its fence signals with -ECANCELED. */
void abi_gate_open(struct abi_gate *gate);
/* Ends it if need be and closes the file. */
void abi_gate_free(struct abi_gate *gate);

struct drm_spyre_sync abi_sync_wait(uint32_t handle, uint64_t point);
struct drm_spyre_sync abi_sync_signal(uint32_t handle, uint64_t point);

/* The fence of binary syncobj @handle as a sync_file; bails out if there is none. */
int abi_sync_file(int fd, uint32_t handle);
/* As SYNC_IOC_FILE_INFO has it: 0 not signalled, 1 signalled, or a negative errno. */
int abi_sync_file_status(int file);
/* Waits until it can be read; false after @ms. */
bool abi_sync_file_poll(int file, unsigned int ms);

#endif /* ABI_FENCE_H */

/* SPDX-License-Identifier: MIT */
/*
 * One call of the driver whose allocations fail in turn. prepare() and undo()
 * run without failures; call() gives 0 or a negative errno and leaves nothing
 * behind if it fails.
 */
#ifndef ABI_FAILNTH_H
#define ABI_FAILNTH_H

#include "prog.h"

#define FAIL_VA (64 * MIB)
#define FAIL_BYTES (64 * 1024u)

struct fail_ctx {
	int fd;			/* the file that the calls are made on */
	int other;		/* another of the card, for imports */
	struct abi_queue queue;	/* of @fd */
	struct abi_buf dev;	/* mapped at FAIL_VA */
	struct abi_buf host;
	uint32_t program;
	void *image;
	uint64_t image_size;
	uint8_t *user;		/* FAIL_BYTES */
	uint32_t handle;	/* what prepare() or call() made */
	uint32_t imported;	/* of @other */
	int file;
	void *map;
	uint32_t round;
	bool high;		/* may make queues of the high class */
};

struct fail_call {
	const char *name;
	void (*prepare)(struct fail_ctx *c);
	int (*call)(struct fail_ctx *c);
	void (*undo)(struct fail_ctx *c);	/* after success */
	void (*release)(struct fail_ctx *c);	/* what prepare() made, always */
	/*
	 * call() gives a number back: if that cannot be copied out, nobody knows it. It
	 * is the lowest that is free, so undo() finds it.
	 */
	bool gives_number;
};

extern const struct fail_call fail_memory_calls[], fail_work_calls[], fail_uring_calls[],
	fail_reset_calls[];

/* Closes all that @c has, and opens it anew. */
void fail_renew(struct fail_ctx *c);

#endif /* ABI_FAILNTH_H */

/* SPDX-License-Identifier: MIT */
/*
 * A call of the driver whose allocations fail in turn. prepare() and undo() run
 * without failures; call() returns 0 or a negative errno and leaves nothing behind
 * if it fails.
 */
#ifndef ABI_FAILNTH_H
#define ABI_FAILNTH_H

#include "prog.h"

#define FAIL_VA (64 * MIB)
#define FAIL_BYTES (64 * 1024u)

struct fail_ctx {
	int fd;			/* the file for the calls */
	int other;		/* another of the card, for imports */
	struct abi_queue queue;	/* of @fd */
	struct abi_buf dev;	/* mapped at FAIL_VA */
	struct abi_buf host;
	uint32_t program;
	void *image;
	uint64_t image_size;
	uint8_t *user;		/* FAIL_BYTES */
	uint32_t handle;	/* created by prepare() or call() */
	uint32_t imported;	/* of @other */
	int file;
	void *map;
	uint32_t round;
	bool high;		/* may create queues of the high class */
};

struct fail_call {
	const char *name;
	void (*prepare)(struct fail_ctx *c);
	int (*call)(struct fail_ctx *c);
	void (*undo)(struct fail_ctx *c);	/* after success */
	void (*release)(struct fail_ctx *c);	/* objects of prepare(), always */
	/*
	 * call() returns a number. If the copy to user space fails, the number is
	 * lost; it is the lowest free one, so undo() can find it.
	 */
	bool gives_number;
};

extern const struct fail_call fail_memory_calls[], fail_work_calls[], fail_uring_calls[],
	fail_reset_calls[];

/* Closes everything that @c has, and opens it again. */
void fail_renew(struct fail_ctx *c);

#endif /* ABI_FAILNTH_H */

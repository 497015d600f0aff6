/* SPDX-License-Identifier: MIT */
/* A client that uses all features until it is killed. */
#ifndef ABI_KILL_H
#define ABI_KILL_H

#include "abi.h"

struct kill_client {
	int lent_file;		/* a dma-buf of the card, to import */
	int syncobj_file;	/* every submission is the newest fence of it */
	unsigned int seed;
};

/* Prints the failed call on stderr and exits; does not return otherwise. */
void kill_client_run(const struct kill_client *client) __attribute__((noreturn));

#endif /* ABI_KILL_H */

/* SPDX-License-Identifier: MIT */
/* A client that does everything until it is killed. */
#ifndef ABI_KILL_H
#define ABI_KILL_H

#include "abi.h"

struct kill_client {
	int lent_file;		/* a dma-buf of the card, to import */
	int syncobj_file;	/* every submission is the newest fence of it */
	unsigned int seed;
};

/* Says on stderr what fails and exits; else does not return. */
void kill_client_run(const struct kill_client *client) __attribute__((noreturn));

#endif /* ABI_KILL_H */

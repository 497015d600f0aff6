/* SPDX-License-Identifier: MIT */
/* Waits that fail if the card completes no job, however slow it is. */
#ifndef ABI_STUCK_H
#define ABI_STUCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Waits as long as the card completes jobs. Returns -ETIME once it has completed
 * none for @patience_ms. The first time that @patience_ms are over, and when it
 * gives up, it prints what the card has done and where its threads sleep.
 */
int stuck_wait_point(int fd, uint32_t syncobj, uint64_t point, unsigned int patience_ms);

/* The same for the end of a child process; false if the card completed no job. */
bool stuck_wait_exit(pid_t pid, int *status, unsigned int patience_ms);

#endif /* ABI_STUCK_H */

/* SPDX-License-Identifier: MIT */
/* A progress bar on the terminal; nothing where stdout is not one. */
#ifndef DIGITS_PROGRESS_H
#define DIGITS_PROGRESS_H

#include <stdint.h>

void progress_show(uint64_t done, uint64_t total);
/* Takes the bar away. */
void progress_end(void);

#endif /* DIGITS_PROGRESS_H */

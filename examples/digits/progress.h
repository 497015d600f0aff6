/* SPDX-License-Identifier: MIT */
/* A progress bar on the terminal; nothing where stdout is not one. */
#ifndef DIGITS_PROGRESS_H
#define DIGITS_PROGRESS_H

#include <stdint.h>

/* @fraction of the work is done, 0..1, and @images of images. */
void progress_show(double fraction, uint64_t images);
/* Takes the bar away. */
void progress_end(void);

#endif /* DIGITS_PROGRESS_H */

/* SPDX-License-Identifier: MIT */
/* Windows of convolutions and pooling. Internal. */
#ifndef SPYRE_SDSC_WINDOW_H
#define SPYRE_SDSC_WINDOW_H

#include "libspyre/sdsc/lower/lower.h"

/*
 * @count outputs of an axis from @first on, in the core's share, of which exactly
 * the taps @tap to @tap + @taps - 1 lie in the input. @at is the input coordinate
 * of the first of them, relative to the core's start address.
 */
struct window_run {
	int64_t first, count, tap, taps, at;
};

/* Finds the longest such run from @first on; taps is 0 if all taps are in padding. */
void window_run(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core, int64_t first,
		struct window_run *run);
/* Finds the outputs for which tap @tap lies in the input; count may be 0. */
void window_tap(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core, int64_t tap,
		struct window_run *run);
/* Sizes of a core's share along an axis. */
int64_t window_outputs(const struct ir_sdsc *s, const struct ir_axis *a);
int64_t window_taps(const struct ir_sdsc *s, const struct ir_axis *a);
/* Elements of the input along an axis from the core's start address to the last that it reaches. */
int64_t window_reach(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core);
/*
 * Refuses start addresses of the input other than those of the first elements that the cores
 * access, if the file is of the public form, which could also count the rows of the output.
 */
spyre_status window_check_starts(const struct lower *l);

#endif /* SPYRE_SDSC_WINDOW_H */

// SPDX-License-Identifier: MIT
/* A progress bar on the terminal. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define WIDTH 40
#define REDRAW_NS 50000000

static int on_terminal = -1;
static uint64_t next_draw;

void progress_show(double fraction, uint64_t images)
{
	char bar[WIDTH + 1];
	struct timespec t;
	uint64_t now;

	if (on_terminal < 0)
		on_terminal = isatty(STDOUT_FILENO);
	if (!on_terminal)
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
	if (now < next_draw && fraction < 1)
		return;
	next_draw = now + REDRAW_NS;
	fraction = fraction < 1 ? fraction : 1;
	for (int i = 0; i < WIDTH; i++)
		bar[i] = i < (int)(fraction * WIDTH) ? '#' : '.';
	bar[WIDTH] = '\0';
	printf("\r[%s] %3d %%  %llu images", bar, (int)(fraction * 100),
	       (unsigned long long)images);
	fflush(stdout);
}

void progress_end(void)
{
	if (on_terminal == 1)
		fputs("\r\033[K", stdout);
	fflush(stdout);
}

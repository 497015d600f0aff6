/* SPDX-License-Identifier: MIT */
/* Sends a signal to the selected process of top, after a question. */
#include "config.h"

#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/smi/top.h"

static const struct {
	int number;
	const char *name;
} signals[] = {
	{ SIGTERM, "SIGTERM" }, { SIGINT, "SIGINT" }, { SIGKILL, "SIGKILL" },
	{ SIGHUP, "SIGHUP" }, { SIGQUIT, "SIGQUIT" }, { SIGSTOP, "SIGSTOP" },
	{ SIGCONT, "SIGCONT" }, { SIGUSR1, "SIGUSR1" }, { SIGUSR2, "SIGUSR2" },
};
#define NUM_SIGNALS ((int)(sizeof(signals) / sizeof(signals[0])))
#define BOX_COLUMNS 44

/* Returns 0 or an errno. Signal 0 only checks. */
static int send(int pidfd, int number)
{
	return syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0) ? errno : 0;
}

void top_end_signal(struct top *top)
{
	if (top->pidfd >= 0)
		close(top->pidfd);
	top->pidfd = -1;
	top->mode = TOP_TABLE;
}

static void complain(struct top *top, const char *signal, int error)
{
	switch (error) {
	case EPERM:
		top_complain(top, "cannot send %s to %s: it belongs to another user; run spyre-smi "
			     "as that user or as root", signal, top->target);
		break;
	case ESRCH:
		top_complain(top, "cannot send %s to %s: it has ended", signal, top->target);
		break;
	default:
		top_complain(top, "cannot send %s to %s: %s", signal, top->target,
			     strerror(error));
	}
}

/*
 * True if the process of @pidfd is the one of @row: its number may have been given to another
 * process since the snapshot, but not after the descriptor was opened.
 */
static bool still_uses_card(const struct smi_row *row)
{
	struct smi_snapshot again;
	bool found = false;
	int i;

	if (smi_take_snapshot(&again) == SMI_OK)
		for (i = 0; i < again.num_processes && !found; i++) {
			const spyre_telemetry_process *process = &again.processes[i];

			found = process->pid == row->process->pid &&
				process->uid == row->process->uid &&
				!strcmp(process->name, row->process->name) &&
				!strcmp(again.cards[process->card].properties.uuid,
					row->card->properties.uuid);
		}
	smi_free_snapshot(&again);
	return found;
}

void top_choose_signal(struct top *top)
{
	const struct smi_row *row = &top->rows[top->selected];
	int error;

	top_end_signal(top);
	if (!top->num_rows) {
		top_complain(top, "cannot send a signal: no process uses a card");
		return;
	}
	snprintf(top->target, sizeof(top->target), "process %d (%s)", row->process->pid,
		 row->process->name);
	if (getenv("SPYRE_FSROOT")) {
		top_complain(top, "cannot send a signal to %s: SPYRE_FSROOT is set, so its number "
			     "may be that of another process here; unset it", top->target);
		return;
	}
	top->pidfd = (int)syscall(SYS_pidfd_open, row->process->pid, 0);
	if (top->pidfd < 0)
		error = errno;
	else
		error = still_uses_card(row) ? send(top->pidfd, 0) : ESRCH;
	if (error) {
		top_end_signal(top);
		complain(top, "a signal", error);
		return;
	}
	top->mode = TOP_SIGNALS;
	top->signal = 0;
}

void top_draw_signals(const struct top *top)
{
	int i, y, x;

	if (top->mode == TOP_CONFIRM) {
		top_box(2, BOX_COLUMNS, &y, &x);
		top_text(&top->style, y, x, BOX_COLUMNS, " Send %s to", signals[top->signal].name);
		top_text(&top->style, y + 1, x, BOX_COLUMNS, " %.*s? [y/N]", BOX_COLUMNS - 9,
			 top->target);
		return;
	}
	top_box(NUM_SIGNALS + 2, BOX_COLUMNS, &y, &x);
	top_text(&top->style, y, x, BOX_COLUMNS, " Signal for %s", top->target);
	for (i = 0; i < NUM_SIGNALS; i++) {
		if (i == top->signal)
			attron(A_REVERSE);
		top_text(&top->style, y + 1 + i, x + 1, BOX_COLUMNS - 2, "%s %2d %s",
			 i == top->signal ? ">" : " ", signals[i].number, signals[i].name);
		attroff(A_REVERSE);
	}
	top_text(&top->style, y + 1 + i, x, BOX_COLUMNS, " Enter: choose   Esc: cancel");
}

void top_signal_key(struct top *top, int key)
{
	switch (key) {
	case KEY_UP:
		top->signal -= top->signal > 0;
		break;
	case KEY_DOWN:
		top->signal += top->signal < NUM_SIGNALS - 1;
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		top->mode = TOP_CONFIRM;
		break;
	case 27:
	case 'q':
		top_end_signal(top);
		break;
	}
}

void top_confirm_key(struct top *top, int key)
{
	const char *name = signals[top->signal].name;
	int error;

	if (key == 'y' || key == 'Y') {
		error = send(top->pidfd, signals[top->signal].number);
		if (error) {
			complain(top, name, error);
		} else {
			snprintf(top->message, sizeof(top->message), "sent %s to %s", name,
				 top->target);
			top->error = false;
		}
	} else {
		snprintf(top->message, sizeof(top->message), "sent nothing to %s", top->target);
		top->error = false;
	}
	top_end_signal(top);
}

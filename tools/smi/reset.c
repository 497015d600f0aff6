/* SPDX-License-Identifier: MIT */
/* spyre-smi reset: refuses cards in use, resets the card and confirms the reset. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "tools/smi/smi.h"

/* Counts the other processes that have the card open; prints them if @show. */
static int count_users(const struct smi_snapshot *snapshot, int card, bool show)
{
	int count = 0, i;

	for (i = 0; i < snapshot->num_processes; i++) {
		const spyre_telemetry_process *process = &snapshot->processes[i];

		if (process->card != card || process->pid == getpid())
			continue;
		count++;
		if (show)
			fprintf(stderr, "  %d %s (uid %u)\n", process->pid, process->name,
				process->uid);
	}
	return count;
}

/* Returns SMI_OK if this card can be reset now, else prints the reason. */
static int check_card(const struct smi_snapshot *snapshot, int card, bool force)
{
	const spyre_telemetry_card *c = &snapshot->cards[card];

	if (c->host_pid) {
		fprintf(stderr,
			"spyre-smi: cannot reset card %d (%s): it is embedded in process %d, and "
			"only that process can reset it; call spyre_device_reset() there or end "
			"it\n",
			card, c->properties.bus_id, c->host_pid);
		return SMI_NOT_AVAILABLE;
	}
	if (snapshot->visible[card] < 0) {
		fprintf(stderr,
			"spyre-smi: cannot reset card %d (%s): SPYRE_DEVICES, SPYRE_BACKEND or "
			"FLEX_DEVICE hides it; unset them\n",
			card, c->properties.bus_id);
		return SMI_NOT_FOUND;
	}
	if (geteuid()) {
		fprintf(stderr,
			"spyre-smi: cannot reset card %d (%s): a reset cancels the work of every "
			"user and requires root; run it with sudo\n",
			card, c->properties.bus_id);
		return SMI_NO_PERMISSION;
	}
	if (!force && count_users(snapshot, card, false)) {
		fprintf(stderr,
			"spyre-smi: cannot reset card %d (%s): it is in use, and these processes "
			"would lose their work:\n",
			card, c->properties.bus_id);
		count_users(snapshot, card, true);
		fputs("End them, or reset the card anyway with --force.\n", stderr);
		return SMI_IN_USE;
	}
	return SMI_OK;
}

static bool confirmed(const struct smi_snapshot *snapshot, int card)
{
	char answer[16];

	printf("Reset card %d (%s, %s)? [y/N] ", card, snapshot->cards[card].properties.bus_id,
	       snapshot->cards[card].properties.uuid);
	fflush(stdout);
	return fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y');
}

/* Returns the current generation of the card with this UUID; UINT64_MAX if it is gone. */
static uint64_t generation_now(const char *uuid)
{
	struct smi_snapshot snapshot;
	uint64_t generation = UINT64_MAX;
	int card;

	if (smi_take_snapshot(&snapshot) == SMI_OK)
		for (card = 0; card < snapshot.num_cards; card++)
			if (!strcmp(snapshot.cards[card].properties.uuid, uuid))
				generation = snapshot.cards[card].generation;
	smi_free_snapshot(&snapshot);
	return generation;
}

static int reset_card(const struct smi_snapshot *snapshot, int card)
{
	const spyre_telemetry_card *c = &snapshot->cards[card];
	spyre_status status = spyre_device_reset(snapshot->visible[card], 0);
	uint64_t now;

	if (status) {
		fprintf(stderr, "spyre-smi: cannot reset card %d (%s): %s\n", card,
			c->properties.bus_id, spyre_last_error());
		return status == SPYRE_ERROR_NO_PERMISSION ? SMI_NO_PERMISSION : SMI_OTHER;
	}
	now = generation_now(c->properties.uuid);
	if (now == UINT64_MAX || now <= c->generation) {
		fprintf(stderr,
			"spyre-smi: cannot confirm the reset of card %d (%s): generation %lld "
			"before, %lld after\n",
			card, c->properties.bus_id, (long long)c->generation, (long long)now);
		return SMI_OTHER;
	}
	printf("Card %d (%s) was reset: generation %llu, ready.\n", card, c->properties.bus_id,
	       (unsigned long long)now);
	return SMI_OK;
}

/* Without -i only the kernel's cards are reset; no process can reset another's embedded one. */
static bool is_meant(const struct smi_snapshot *snapshot, int card, const char *ids)
{
	return snapshot->chosen[card] && (ids || !snapshot->cards[card].host_pid);
}

/* Checks all chosen cards before it resets the first. */
int smi_reset(const struct smi_snapshot *snapshot, const struct smi_options *options)
{
	int status = SMI_OK, meant = 0, card;

	for (card = 0; card < snapshot->num_cards && status == SMI_OK; card++) {
		if (!is_meant(snapshot, card, options->ids))
			continue;
		meant++;
		status = check_card(snapshot, card, options->force);
	}
	if (!meant) {
		fputs("spyre-smi: cannot find a card of the kernel module to reset; embedded cards "
		      "can be reset only by their processes\n",
		      stderr);
		return SMI_NOT_AVAILABLE;
	}
	for (card = 0; card < snapshot->num_cards && status == SMI_OK; card++) {
		if (!is_meant(snapshot, card, options->ids))
			continue;
		if (!options->yes && isatty(STDIN_FILENO) && !confirmed(snapshot, card))
			fprintf(stderr, "spyre-smi: card %d was not reset\n", card);
		else
			status = reset_card(snapshot, card);
	}
	return status;
}

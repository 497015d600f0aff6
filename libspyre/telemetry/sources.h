/* SPDX-License-Identifier: MIT */
/*
 * Where readings come from: kernel.c (sysfs, /proc) and pages.c (pages of
 * embedded cards). history.c turns two readings into shares. Internal.
 */
#ifndef SPYRE_TELEMETRY_SOURCES_H
#define SPYRE_TELEMETRY_SOURCES_H

#include <dirent.h>

#include <spyre/telemetry.h>

/* Power limit of the card: 75 W, the limit of its slot. */
#define SPYRE_POWER_LIMIT_MW 75000u

/* Identifies a card within one reading and across readings. */
struct spyre_card_key {
	int32_t pid;		/* 0: kernel card */
	uint32_t card;		/* minor of the node, or card of the process */
	uint32_t sequence;
	uint64_t start_time;
};

struct spyre_reading {
	struct spyre_card_key key;
	spyre_telemetry_card card;
	/* Embedded cards: owner of the process. */
	uint32_t uid;
	char process[64];
	/* Embedded cards: their counters, as those of the only process that uses them. */
	spyre_telemetry_process work;
};

struct spyre_readings {
	struct spyre_reading *reading;
	int count;
	int waits;		/* pages.c */
	size_t capacity;
};

struct spyre_processes {
	spyre_telemetry_process *process;
	int count;
	size_t capacity;
};

/* counters.c: a counter's names and its place in each struct; 0: the struct has no such field. */
struct spyre_counter {
	const char *attribute;	/* in sysfs, NULL: none */
	const char *key;	/* in fdinfo, NULL: none */
	size_t card;
	size_t process;
	size_t page;
};

extern const struct spyre_counter spyre_telemetry_counters[];
extern const int spyre_telemetry_num_counters;

/* These return NULL if cards, or processes, do not have the counter. */
uint64_t *spyre_counter_of_card(const struct spyre_counter *counter, spyre_telemetry_card *card);
uint64_t *spyre_counter_of_process(const struct spyre_counter *counter,
				   spyre_telemetry_process *process);

/* Appends a zeroed entry; NULL (with an error text) if memory is short. */
struct spyre_reading *spyre_readings_add(struct spyre_readings *readings);
spyre_telemetry_process *spyre_processes_add(struct spyre_processes *processes);

/* Append their readings in the order of spyre_telemetry_cards(). */
spyre_status spyre_telemetry_read_kernel(struct spyre_readings *readings);
spyre_status spyre_telemetry_read_pages(struct spyre_readings *readings);
/* Appends the processes with an open node; cards are numbered from 0. */
spyre_status spyre_telemetry_kernel_processes(struct spyre_processes *processes);

/*
 * Fills utilization, and power and temperature of embedded cards, from earlier
 * readings; false, with the fields unchanged, if no earlier reading is kept.
 */
bool spyre_telemetry_compare(struct spyre_reading *reading);
/* Keeps the reading for later comparisons. */
void spyre_telemetry_remember(const struct spyre_reading *reading);

/* topology.c: fill the processors and nodes near a card: those of a NUMA node or a process. */
void spyre_telemetry_near_node(spyre_telemetry_card *card, uint64_t node);
void spyre_telemetry_near_process(spyre_telemetry_card *card, int32_t pid);

/*
 * Opens the folder of this user's pages and events, -1 (logged at "warn") if it cannot be used.
 * Others may write to /tmp, so it counts only when it is a real folder of this user and closed
 * to everyone else.
 */
int spyre_telemetry_folder(bool create);
/*
 * The status after a failed open() of the file or folder @name, with its errno. Files that are
 * gone or belong to others are passed over; without descriptors or memory, cards would be missing.
 */
spyre_status spyre_telemetry_not_opened(const char *name);
/*
 * Calls @visit for the folder of this user, for root for those of all users, until it returns
 * an error. Skips folders that other users can write.
 */
spyre_status spyre_telemetry_visit_folders(spyre_status (*visit)(int folder, uint32_t owner,
								 void *data),
					   void *data);

uint64_t spyre_telemetry_now(void);
/* Field 22 of /proc/<pid>/stat; false if there is no such process. */
bool spyre_telemetry_start_time(int32_t pid, uint64_t *start_time);
/* Names the namespace in which this process sees pids; 0 without /proc. */
uint64_t spyre_telemetry_pid_namespace(void);
/* Cleans a text of another process: cuts it to @size with a NUL and replaces
 * characters that could steer a terminal by '?'. */
void spyre_telemetry_clean(char *text, size_t size);
/* Process id of a folder of /proc, 0 for other entries. */
int32_t spyre_telemetry_pid(const char *name);

#endif /* SPYRE_TELEMETRY_SOURCES_H */

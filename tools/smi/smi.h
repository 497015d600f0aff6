/* SPDX-License-Identifier: MIT */
/*
 * spyre-smi shows cards and the processes that use them. It uses the public headers
 * of libspyre only and opens a card only to reset or test it.
 */
#ifndef SMI_H
#define SMI_H

#include <stdio.h>
#include <time.h>

#include <spyre/spyre.h>

#define SMI_SCHEMA_VERSION 1

/* Exit statuses; nvidia-smi's where it has an equivalent. */
enum smi_exit {
	SMI_OK = 0,
	SMI_FAILED = 1,			/* a test of diag */
	SMI_BAD_ARGUMENT = 2,
	SMI_NOT_AVAILABLE = 3,
	SMI_NO_PERMISSION = 4,
	SMI_NOT_FOUND = 6,
	SMI_NO_DRIVER = 9,
	SMI_IN_USE = 19,
	SMI_OTHER = 255,
};

/* Everything that one screen or query shows. */
struct smi_snapshot {
	struct timespec time;		/* CLOCK_REALTIME */
	spyre_telemetry_card *cards;
	int *visible;			/* index under SPYRE_DEVICES, -1: hidden */
	int num_cards;
	spyre_telemetry_process *processes;
	int num_processes;
	bool *chosen;			/* by -i */
	int num_chosen;
};

enum smi_mode {
	SMI_SCREEN,
	SMI_LIST,
	SMI_REPORT,
	SMI_QUERY_DEVICE,
	SMI_QUERY_APPS,
	SMI_TOPOLOGY,
	SMI_RESET,
	SMI_DMON,
	SMI_PMON,
	SMI_PROMETHEUS,
	SMI_DIAG,
	SMI_EVENTS,
	SMI_TOP,
};

enum smi_format {
	SMI_TEXT,
	SMI_CSV,
	SMI_JSON,
};

#define SMI_MAX_FIELDS 64

struct smi_options {
	enum smi_mode mode;
	enum smi_format format;
	bool no_header;
	bool no_units;
	bool force; /* reset cards that are in use */
	bool yes;   /* reset without a prompt */
	const struct smi_field *fields[SMI_MAX_FIELDS];
	int num_fields;
	unsigned int sections;		/* bits of enum smi_section, for -q */
	const char *ids;		/* -i, NULL: all */
	double interval;		/* seconds, 0: once */
	unsigned long count;		/* 0: no limit */
	const char *groups;		/* of columns, for dmon and pmon; NULL: all */
	const char *stamps;		/* D and T, NULL: none */
	const char *file;		/* for --prometheus, NULL: standard output */
	bool aiu;			/* dmon: aiu-smi's columns */
	int level;			/* of diag */
	bool follow;			/* of events */
	bool xml;			/* with -q */
	char access;			/* topo -p2p: the way of access, 0: links */
	const char *output;		/* -f, NULL: standard output */
};

/* A value of a field; a NUMBER is in the integer unit of the field's getter. */
struct smi_value {
	enum { SMI_NONE, SMI_STRING, SMI_NUMBER } kind;
	char text[96];
	uint64_t number;
};

/* A field describes a card, or a process and its card. */
struct smi_subject {
	const struct smi_snapshot *snapshot;
	const spyre_telemetry_card *card;
	int index;			/* of the card */
	const spyre_telemetry_process *process;
};

enum smi_section {
	SMI_SECTION_NONE = -1,
	SMI_SECTION_DEVICE,
	SMI_SECTION_MEMORY,
	SMI_SECTION_UTILIZATION,
	SMI_SECTION_TEMPERATURE,
	SMI_SECTION_POWER,
	SMI_SECTION_CLOCK,
	SMI_SECTION_COUNTERS,
	SMI_SECTION_PROCESSES,
	SMI_NUM_SECTIONS,
};

struct smi_field {
	const char *name;		/* as in --query-device */
	const char *aliases;		/* comma separated, or NULL */
	const char *json;		/* ends with the unit */
	const char *label;		/* in -q */
	enum smi_section section;
	const char *unit;		/* of CSV and text, NULL: none */
	double divisor;			/* from the getter's unit to the text's */
	int decimals;
	double json_divisor;		/* to the base unit; 1: stays an integer */
	void (*get)(const struct smi_subject *subject, struct smi_value *value);
	const char *help;
};

/* fields.c, app_fields.c: an entry without a name ends the tables. */
extern const struct smi_field smi_device_fields[];
extern const struct smi_field smi_app_fields[];
const struct smi_field *smi_find_field(const struct smi_field *table, const char *name,
				       size_t length);
void smi_print_fields(const struct smi_field *table);
/* Formats a field, or @missing if it is not available. */
void smi_field_text(const struct smi_field *field, const struct smi_subject *subject,
		    bool units, const char *missing, char *text, size_t size);
void smi_set_string(struct smi_value *value, const char *text);
/* UINT64_MAX, which telemetry uses for "not available", becomes NONE. */
void smi_set_number(struct smi_value *value, uint64_t number);

/* options.c: returns false if the program should exit with *exit_status. */
bool smi_parse_options(int argc, char **argv, struct smi_options *options, int *exit_status);
extern const char *const smi_section_names[SMI_NUM_SECTIONS];

/* snapshot.c */
/* Print an error and return the exit status. */
int smi_status(spyre_status status);
int smi_no_memory(const char *what);
int smi_take_snapshot(struct smi_snapshot *snapshot);
/*
 * Marks the cards of @ids ("0,2", UUIDs, bus ids; NULL: all). Returns SMI_NOT_FOUND
 * if one is missing.
 */
int smi_choose(struct smi_snapshot *snapshot, const char *ids);
void smi_free_snapshot(struct smi_snapshot *snapshot);

/* reset.c: resets the chosen cards; returns an exit status. */
int smi_reset(const struct smi_snapshot *snapshot, const struct smi_options *options);

/* These print to stdout. */
void smi_screen(const struct smi_snapshot *snapshot);
void smi_list(const struct smi_snapshot *snapshot);
void smi_report(const struct smi_snapshot *snapshot, unsigned int sections);
void smi_xml(const struct smi_snapshot *snapshot);
void smi_csv_header(const struct smi_options *options);
void smi_csv(const struct smi_snapshot *snapshot, const struct smi_options *options);
/* Quotes as RFC 4180 requires: a process name or a list of processors may contain a comma. */
void smi_print_cell(const char *text);
/* These return false if out of memory. */
bool smi_json(const struct smi_snapshot *snapshot, const struct smi_options *options);
bool smi_topology(const struct smi_snapshot *snapshot, const struct smi_options *options);

#endif /* SMI_H */

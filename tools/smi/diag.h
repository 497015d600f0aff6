/* SPDX-License-Identifier: MIT */
/* spyre-smi diag: tests of a card by what programs do with it. */
#ifndef SMI_DIAG_H
#define SMI_DIAG_H

#include "tools/smi/smi.h"

#define SMI_DIAG_LEVELS 3

/* A card under test. */
struct diag_card {
	int index;			/* among the visible cards */
	int num_cards;			/* that are visible */
	int level;			/* 1 to SMI_DIAG_LEVELS */
	spyre_device_properties properties;
	spyre_context *context;
	spyre_stream *stream;
	char detail[256];		/* of the test that ran last */
};

enum diag_result { DIAG_PASS, DIAG_FAIL, DIAG_SKIP };

/* A test runs from level @level on; its detail says what it did, or why it failed. */
struct diag_test {
	const char *name;
	int level;
	enum diag_result (*run)(struct diag_card *card);
};

/* An entry without a name ends the table. */
extern const struct diag_test diag_tests[];

/* Tests the visible cards that are chosen; returns an exit status. */
int smi_diag(const struct smi_options *options);

#endif /* SMI_DIAG_H */

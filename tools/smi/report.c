/* SPDX-License-Identifier: MIT */
/* -L and -q. */
#include "config.h"

#include <inttypes.h>

#include "tools/smi/smi.h"

void smi_list(const struct smi_snapshot *snapshot)
{
	int i;

	for (i = 0; i < snapshot->num_cards; i++) {
		const spyre_telemetry_card *card = &snapshot->cards[i];

		if (!snapshot->chosen[i])
			continue;
		printf("Card %d: %s (UUID: %s) [%s", i, card->properties.name,
		       card->properties.uuid[0] ? card->properties.uuid : "N/A",
		       card->properties.bus_id);
		if (card->host_pid)
			printf(" in process %" PRId32, card->host_pid);
		puts("]");
	}
}

static void print_section(const struct smi_subject *subject, enum smi_section section)
{
	const struct smi_field *field;
	char text[128];

	printf("    %s\n", smi_section_names[section]);
	for (field = smi_device_fields; field->name; field++) {
		if (field->section != section)
			continue;
		smi_field_text(field, subject, true, "N/A", text, sizeof(text));
		printf("        %-28s: %s\n", field->label, text);
	}
}

static void print_process(const struct smi_subject *subject)
{
	const struct smi_field *field;
	char text[128];

	for (field = smi_app_fields; field->name; field++) {
		bool first = field == smi_app_fields;

		/* Fields without a label identify the card and are printed above. */
		if (!field->label)
			continue;
		smi_field_text(field, subject, true, "N/A", text, sizeof(text));
		printf("        %s%-*s: %s\n", first ? "" : "    ", first ? 28 : 24, field->label,
		       text);
	}
}

static void print_processes(struct smi_subject *subject)
{
	const struct smi_snapshot *snapshot = subject->snapshot;
	int i, shown = 0;

	printf("    %s\n", smi_section_names[SMI_SECTION_PROCESSES]);
	for (i = 0; i < snapshot->num_processes; i++) {
		if (snapshot->processes[i].card != subject->index)
			continue;
		subject->process = &snapshot->processes[i];
		print_process(subject);
		shown++;
	}
	if (!shown)
		puts("        None");
}

void smi_report(const struct smi_snapshot *snapshot, unsigned int sections)
{
	struct smi_subject subject = { .snapshot = snapshot };
	int i, section;
	char text[64];

	subject.card = snapshot->cards;
	smi_field_text(&smi_device_fields[0], &subject, true, "N/A", text, sizeof(text));
	printf("\n==============SPYRE-SMI LOG==============\n\n");
	printf("%-36s: %s\n%-36s: %d\n", "Timestamp", text, "Cards", snapshot->num_cards);
	for (i = 0; i < snapshot->num_cards; i++) {
		if (!snapshot->chosen[i])
			continue;
		subject.card = &snapshot->cards[i];
		subject.index = i;
		printf("\nCard %d\n", i);
		for (section = 0; section < SMI_SECTION_PROCESSES; section++)
			if (!sections || (sections & 1u << section))
				print_section(&subject, section);
		if (!sections || (sections & 1u << SMI_SECTION_PROCESSES))
			print_processes(&subject);
	}
}

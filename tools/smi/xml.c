/* SPDX-License-Identifier: MIT */
/*
 * -q -x: the elements of nvidia-smi's document that this card has values for, so that programs
 * which read that document (telegraf) read this one, and all values under their names in JSON.
 */
#include "config.h"

#include <string.h>

#include "tools/markup.h"
#include "tools/smi/smi.h"

/* Elements in the order of the document; those of one parent are adjacent. */
static const struct {
	const char *parent;	/* NULL: the card */
	const char *name;
	const char *field;
} elements[] = {
	{ NULL, "product_name", "name" },
	{ NULL, "uuid", "uuid" },
	{ NULL, "minor_number", "index" },
	{ "pci", "pci_bus_id", "bus_id" },
	{ "fb_memory_usage", "total", "memory.total" },
	{ "fb_memory_usage", "used", "memory.used" },
	{ "fb_memory_usage", "free", "memory.free" },
	{ "utilization", "gpu_util", "utilization.device" },
	{ "temperature", "gpu_temp", "temperature.device" },
	{ "gpu_power_readings", "power_draw", "power.draw" },
	{ "gpu_power_readings", "current_power_limit", "power.limit" },
	{ "clocks", "graphics_clock", "clocks.core" },
	{ "clocks", "sm_clock", "clocks.core" },
};

/* The same for each process. */
static const struct {
	const char *name;
	const char *field;
} process_elements[] = {
	{ "pid", "pid" },
	{ "process_name", "process_name" },
	{ "used_memory", "used_memory" },
};

static void print_element(int depth, const char *name, const struct smi_field *field,
			  const struct smi_subject *subject)
{
	char text[128];

	smi_field_text(field, subject, true, "N/A", text, sizeof(text));
	printf("%.*s<%s>", depth, "\t\t\t\t", name);
	put_markup(text);
	printf("</%s>\n", name);
}

static const struct smi_field *field_of(const struct smi_field *table, const char *name)
{
	return smi_find_field(table, name, strlen(name));
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void print_known(const struct smi_subject *subject)
{
	const char *parent = NULL;
	size_t i;

	for (i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
		if (!same(parent, elements[i].parent)) {
			if (parent)
				printf("\t\t</%s>\n", parent);
			parent = elements[i].parent;
			printf("\t\t<%s>\n", parent);
		}
		print_element(parent ? 3 : 2, elements[i].name,
			      field_of(smi_device_fields, elements[i].field), subject);
	}
	printf("\t\t</%s>\n", parent);
}

static void print_processes(struct smi_subject *subject)
{
	const struct smi_snapshot *snapshot = subject->snapshot;
	size_t k;
	int i;

	puts("\t\t<processes>");
	for (i = 0; i < snapshot->num_processes; i++) {
		if (snapshot->processes[i].card != subject->index)
			continue;
		subject->process = &snapshot->processes[i];
		puts("\t\t\t<process_info>\n\t\t\t\t<type>C</type>");
		for (k = 0; k < sizeof(process_elements) / sizeof(process_elements[0]); k++)
			print_element(4, process_elements[k].name,
				      field_of(smi_app_fields, process_elements[k].field), subject);
		puts("\t\t\t</process_info>");
	}
	puts("\t\t</processes>");
}

static void print_card(struct smi_subject *subject)
{
	const struct smi_field *field;
	char text[128];

	smi_field_text(field_of(smi_device_fields, "bus_id"), subject, true, "N/A", text,
		       sizeof(text));
	fputs("\t<gpu id=\"", stdout);
	put_markup(text);
	puts("\">");
	print_known(subject);
	print_processes(subject);
	puts("\t\t<spyre>");
	for (field = smi_device_fields; field->name; field++)
		if (field->section != SMI_SECTION_NONE)
			print_element(3, field->json, field, subject);
	puts("\t\t</spyre>\n\t</gpu>");
}

void smi_xml(const struct smi_snapshot *snapshot)
{
	struct smi_subject subject = { .snapshot = snapshot, .card = snapshot->cards };
	char time[64];
	struct tm tm;
	int i;

	/* Readers choose their rules for the elements by the name of the document type. */
	puts("<?xml version=\"1.0\" ?>\n"
	     "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>");
	if (localtime_r(&snapshot->time.tv_sec, &tm) &&
	    strftime(time, sizeof(time), "%a %b %e %H:%M:%S %Y", &tm))
		printf("\t<timestamp>%s</timestamp>\n", time);
	if (snapshot->num_cards)
		print_element(1, "driver_version", field_of(smi_device_fields, "driver_version"),
			      &subject);
	printf("\t<attached_gpus>%d</attached_gpus>\n", snapshot->num_cards);
	for (i = 0; i < snapshot->num_cards; i++) {
		if (!snapshot->chosen[i])
			continue;
		subject.card = &snapshot->cards[i];
		subject.index = i;
		subject.process = NULL;
		print_card(&subject);
	}
	puts("</nvidia_smi_log>");
}

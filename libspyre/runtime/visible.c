// SPDX-License-Identifier: MIT
/*
 * Cards that are visible to a process. SPYRE_DEVICES lists them in the order of
 * their visible indices: numbers, bus ids or UUIDs, blanks allowed; repeated and
 * absent ones are dropped. It takes precedence over AIU_WORLD_SIZE=N, which
 * selects the first N. Cards of another kind than FLEX_DEVICE, and cards that
 * are split into virtual functions, are hidden.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/runtime/ras.h"
#include "libspyre/runtime/visible.h"

#define ENTRY_BYTES 64

static bool is_number(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (!isdigit((unsigned char)*text))
			return false;
	return true;
}

/* Index of the card with this bus id or UUID, -1 if no card has it. */
static int find_by_name(const struct spyre_backend_ops *ops, int total, const char *entry)
{
	spyre_device_properties properties = { .struct_size = sizeof(properties) };

	for (int i = 0; ops && i < total; i++)
		if (!ops->properties(i, &properties) &&
		    (!strcmp(entry, properties.bus_id) || !strcasecmp(entry, properties.uuid)))
			return i;
	return -1;
}

static void add(struct spyre_visible *visible, int physical, const bool *usable)
{
	if (usable && !usable[physical])
		return;
	for (int i = 0; i < visible->count; i++)
		if (visible->physical[i] == physical)
			return;
	if (visible->count < SPYRE_MAX_CARDS)
		visible->physical[visible->count++] = physical;
}

/* Copies the entry up to the comma without blanks around it; returns its end. */
static const char *next_entry(const char *text, char *entry)
{
	const char *end = text + strcspn(text, ",");
	const char *first = text, *last = end;
	size_t len;

	while (first < last && isspace((unsigned char)*first))
		first++;
	while (last > first && isspace((unsigned char)last[-1]))
		last--;
	len = last - first;
	if (len >= ENTRY_BYTES)
		len = ENTRY_BYTES - 1;
	memcpy(entry, first, len);
	entry[len] = '\0';
	return end;
}

static spyre_status parse_list(struct spyre_visible *visible, int total, const char *name,
			       const char *devices, const bool *usable,
			       const struct spyre_backend_ops *ops)
{
	const char *text = devices;
	char entry[ENTRY_BYTES];

	for (;;) {
		text = next_entry(text, entry);
		if (is_number(entry)) {
			unsigned long physical = strtoul(entry, NULL, 10);

			if (physical < (unsigned long)total)
				add(visible, physical, usable);
			else
				spyre_log(SPYRE_LOG_INFO, "%s: there is no card %s, dropped", name,
					  entry);
		} else {
			int physical = find_by_name(ops, total, entry);

			if (physical < 0) {
				spyre_error(SPYRE_ERROR_CONFIGURATION,
					    "%s=\"%s\": \"%s\" is not the number, bus id or UUID "
					    "of a card; write numbers from 0 on with commas, like "
					    "\"0,2\"", name, devices, entry);
				spyre_ras_devices(spyre_last_error());
				return SPYRE_ERROR_CONFIGURATION;
			}
			add(visible, physical, usable);
		}
		if (!*text++)
			return SPYRE_SUCCESS;
	}
}

/* A job with more ranks than cards starts nevertheless, so a RAS record reports it. */
static void report_too_few(int count, const char *name, const char *devices, const char *world)
{
	char text[256];

	snprintf(text, sizeof(text), "%s=\"%.100s\" gives %d cards, AIU_WORLD_SIZE is %.20s", name,
		 devices, count, world);
	spyre_ras_devices(text);
}

static bool is_blank(const char *text)
{
	return !text || !text[strspn(text, " \t\n")];
}

spyre_status spyre_visible_parse(struct spyre_visible *visible, int total, const char *name,
				 const char *devices, const char *world, const bool *usable,
				 const struct spyre_backend_ops *ops)
{
	unsigned long most = SPYRE_MAX_CARDS;
	char size[ENTRY_BYTES];

	visible->count = 0;
	if (total > SPYRE_MAX_CARDS)
		total = SPYRE_MAX_CARDS;
	if (!is_blank(world)) {
		if (*next_entry(world, size) || !is_number(size))
			return spyre_error(SPYRE_ERROR_CONFIGURATION,
					   "AIU_WORLD_SIZE=\"%s\": expected a number of cards", world);
	}
	if (!is_blank(devices)) {
		spyre_status status = parse_list(visible, total, name, devices, usable, ops);

		if (!status && !is_blank(world) &&
		    strtoul(size, NULL, 10) > (unsigned long)visible->count)
			report_too_few(visible->count, name, devices, size);
		return status;
	}
	if (!is_blank(world))
		most = strtoul(size, NULL, 10);
	for (int i = 0; i < total && (unsigned long)visible->count < most; i++)
		add(visible, i, usable);
	return SPYRE_SUCCESS;
}

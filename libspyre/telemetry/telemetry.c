// SPDX-License-Identifier: MIT
/* spyre_telemetry_cards() and spyre_telemetry_processes(). */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libspyre/base/error.h"
#include "libspyre/telemetry/sources.h"

/* Time between two readings if no earlier one is kept. */
#define SAMPLE_NS (100 * 1000 * 1000)

static spyre_status check_array(const char *function, const void *array, size_t stride,
				size_t size, int capacity, const int *count)
{
	if (!count)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "%s: count is NULL", function);
	if (capacity < 0 || (capacity && !array))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: array %p with capacity %d", function, array, capacity);
	if (capacity && stride < size)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: stride %zu is less than the %zu bytes of an entry",
				   function, stride, size);
	return SPYRE_SUCCESS;
}

static spyre_status read_all(struct spyre_readings *readings)
{
	readings->count = 0;
	TRY(spyre_telemetry_read_kernel(readings));
	return spyre_telemetry_read_pages(readings);
}

/* Fills the fields that need an earlier reading; false if a card has none. */
static bool compare_all(struct spyre_readings *readings)
{
	bool all = true;
	int i;

	for (i = 0; i < readings->count; i++) {
		if (!spyre_telemetry_compare(&readings->reading[i]))
			all = false;
		spyre_telemetry_remember(&readings->reading[i]);
	}
	return all;
}

static void pause_for_sample(void)
{
	struct timespec left = { .tv_nsec = SAMPLE_NS };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

spyre_status spyre_telemetry_cards(spyre_telemetry_card *cards, size_t stride, int capacity,
				   int *count)
{
	struct spyre_readings readings = { 0 };
	spyre_status status;
	int i;

	status = check_array(__func__, cards, stride, sizeof(*cards), capacity, count);
	if (status)
		return status;
	status = read_all(&readings);
	if (!status && capacity && !compare_all(&readings)) {
		pause_for_sample();
		status = read_all(&readings);
		if (!status)
			compare_all(&readings);
	}
	for (i = 0; !status && i < readings.count && i < capacity; i++) {
		readings.reading[i].card.properties.index = i;
		memcpy((char *)cards + stride * i, &readings.reading[i].card, sizeof(*cards));
	}
	*count = status ? 0 : readings.count;
	free(readings.reading);
	return status;
}

/* Appends the processes of embedded cards, which are those that published the pages. */
static spyre_status add_hosts(struct spyre_processes *processes)
{
	struct spyre_readings readings = { 0 };
	spyre_telemetry_process *process;
	spyre_status status;
	int i;

	status = read_all(&readings);
	for (i = 0; i < readings.count && !status; i++) {
		const struct spyre_reading *reading = &readings.reading[i];

		if (!reading->key.pid)
			continue;
		process = spyre_processes_add(processes);
		if (!process) {
			status = SPYRE_ERROR_OUT_OF_HOST_MEMORY;
			break;
		}
		*process = reading->work;
		process->struct_size = sizeof(*process);
		process->card = i;
		process->pid = reading->key.pid;
		process->uid = reading->uid;
		memcpy(process->name, reading->process, sizeof(process->name));
	}
	free(readings.reading);
	return status;
}

static int by_card(const void *left, const void *right)
{
	const spyre_telemetry_process *a = left, *b = right;

	if (a->card != b->card)
		return a->card < b->card ? -1 : 1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

spyre_status spyre_telemetry_processes(spyre_telemetry_process *processes, size_t stride,
				       int capacity, int *count)
{
	struct spyre_processes found = { 0 };
	spyre_status status;
	int i;

	status = check_array(__func__, processes, stride, sizeof(*processes), capacity, count);
	if (status)
		return status;
	status = spyre_telemetry_kernel_processes(&found);
	if (!status)
		status = add_hosts(&found);
	if (!status && found.count > 1)
		qsort(found.process, found.count, sizeof(*found.process), by_card);
	for (i = 0; !status && i < found.count && i < capacity; i++)
		memcpy((char *)processes + stride * i, &found.process[i], sizeof(*processes));
	*count = status ? 0 : found.count;
	free(found.process);
	return status;
}

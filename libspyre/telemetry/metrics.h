/* SPDX-License-Identifier: MIT */
/*
 * SPYRE_METRICS=DIR/metrics.%BUSID: a file of each card that the process has open, in the form
 * "AiuM" that the tools of the public stack read. Internal.
 */
#ifndef SPYRE_TELEMETRY_METRICS_H
#define SPYRE_TELEMETRY_METRICS_H

#include <spyre/telemetry.h>

#define SPYRE_METRICS_INTERVAL_MS 1000u

/* The file of a card; zeroed, with fd -1 and seqnum 0, before it is opened. */
struct spyre_metrics_file {
	int fd;			/* -1: it could not be opened, or is full */
	uint32_t seqnum;	/* of the last update */
};

/*
 * Opens the file that @pattern names for the card @bus_id. Without it (logged at "warn") the
 * updates do nothing.
 */
void spyre_metrics_file_open(struct spyre_metrics_file *file, const char *pattern,
			     const char *bus_id);
/* Replaces the contents by the readings of @card that are available. */
void spyre_metrics_file_update(struct spyre_metrics_file *file, const spyre_telemetry_card *card);
/* The last values stay in the file. */
void spyre_metrics_file_close(struct spyre_metrics_file *file);

/*
 * A context of the card was opened, or is about to be closed. While there is one, a thread
 * updates the card's file. Both do nothing without SPYRE_METRICS.
 */
void spyre_metrics_hold(const spyre_device_properties *properties);
void spyre_metrics_release(const spyre_device_properties *properties);

#endif /* SPYRE_TELEMETRY_METRICS_H */

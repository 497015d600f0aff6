/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_DEBUGFS_H
#define SPYRE_DEBUGFS_H

struct spyre_device;

/* Adds the card's files to its folder in debugfs; they go with the device. */
void spyre_debugfs_start(struct spyre_device *spyre);

#endif

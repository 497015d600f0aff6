/* SPDX-License-Identifier: MIT */
/*
 * A tree that looks like /sys and /proc of a machine with cards of spyre_vdev,
 * for SPYRE_FSROOT. Its nodes are /dev/null: a test needs no root.
 */
#ifndef FAKE_CARDS_H
#define FAKE_CARDS_H

#include <stdbool.h>
#include <stddef.h>

/* Creates an empty tree in a new folder of /tmp and points SPYRE_FSROOT to it. */
void fake_begin(void);
void fake_end(void);
const char *fake_root(void);
/* Writes a file and creates the folders above it; @path starts with '/'. */
void fake_file(const char *path, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void fake_link(const char *path, const char *target);
void fake_remove(const char *path);

/*
 * Creates card accel<minor> with all attributes; its device number is that of
 * /dev/null or /dev/zero.
 */
void fake_card(int minor, int card_index, const char *device);
/* Creates the files of a VF that a test needs: card @card_index, number @vf. */
void fake_vf(int minor, int card_index, int vf);
/* Splits card @card_index into VFs. */
void fake_split(int card_index, int num_vfs);
/* An accel node of another driver. */
void fake_stranger(int minor);
/* Process @pid with @device open as descriptor @fd of client @client. */
void fake_open_node(int pid, const char *comm, int fd, const char *device, int client,
		    unsigned long kib);

/* Removes @path and everything below it. */
void remove_tree(const char *path);

#endif /* FAKE_CARDS_H */

/* SPDX-License-Identifier: MIT */
/*
 * Kernel cards as sysfs shows them. Reads /sys/class/accel only: no node is
 * opened, so enumeration works without permission and wakes no card.
 * SPYRE_FSROOT (ignored in set-user-id programs) goes in front of /sys, /proc
 * and /dev: a container's mount of the host, or the tree of a test.
 */
#ifndef SPYRE_SYSFS_H
#define SPYRE_SYSFS_H

#include <sys/types.h>

#include <spyre/device.h>

#define SPYRE_DRM_DRIVER "spyre_vdev"

struct spyre_sysfs_card {
	int card_index;		/* N of the module's cards=; sort key */
	uint32_t vf;		/* 0: the card itself (PF), else a virtual function of it */
	uint32_t num_vfs;	/* PF: number of its VFs; a split PF does no work itself */
	int minor;		/* N of accelN */
	dev_t rdev;		/* device number of the node, 0 if unknown */
	char bus_id[32];	/* "spyre_vdev.0" */
};

struct spyre_sysfs_cards {
	struct spyre_sysfs_card *card;
	int count;
	size_t capacity;
};

/* The prefix of absolute paths, "" by default. */
const char *spyre_sysfs_root(void);

/*
 * Reads a file of sysfs or /proc, whose text is cut to @size and NUL-terminated.
 * False, with "" in @text, if the file cannot be read or is empty.
 */
bool spyre_sysfs_read(const char *path, char *text, size_t size);
/* Its first line, without the newline. */
bool spyre_sysfs_read_line(const char *path, char *line, size_t size);

/*
 * Lists the cards of spyre_vdev in order of card_index, each before its virtual
 * functions. Succeeds with an empty list if there are no cards.
 * Free with spyre_sysfs_fini(), also after an error.
 */
spyre_status spyre_sysfs_scan(struct spyre_sysfs_cards *cards);
void spyre_sysfs_fini(struct spyre_sysfs_cards *cards);

/* Reads an attribute of the card's device; false, with @value unchanged, if it is missing. */
bool spyre_sysfs_u64(const struct spyre_sysfs_card *card, const char *attribute,
		     uint64_t *value);
/* Reads the first line, cut to fit; false, with "", if the attribute is missing. */
bool spyre_sysfs_string(const struct spyre_sysfs_card *card, const char *attribute,
			char *value, size_t size);

/*
 * The index of the physical card, which its virtual functions share; -1 if the module is older
 * than interface 1.4 and executes no copies between cards.
 */
int32_t spyre_sysfs_peer_index(const struct spyre_sysfs_card *card);

/* Path of the card's node, "/dev/accel/accel0". */
void spyre_sysfs_node(const struct spyre_sysfs_card *card, char *path, size_t size);

/*
 * Fills all but struct_size; @position is the card's index in the scan. Fields
 * that sysfs does not have stay 0 or "".
 */
void spyre_sysfs_properties(const struct spyre_sysfs_card *card, int position,
			    spyre_device_properties *properties);

#endif /* SPYRE_SYSFS_H */

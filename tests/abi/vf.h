/* SPDX-License-Identifier: MIT */
/* Helpers shared by the tests of virtual functions: sysfs, nodes, one small program. */
#ifndef ABI_VF_H
#define ABI_VF_H

#include "abi.h"
#include "prog.h"

#define VF_MAX 16
#define VF_DATA (64 * MIB)	/* device address of vf_run_add()'s operands */
#define VF_ADD_BYTES (64 * STICK)

/* A platform device of the driver. */
struct vf_device {
	char name[64];		/* "spyre_vdev_vf.1" */
	char node[64];		/* "/dev/accel/accel2" */
};

/* The card under test. */
extern struct vf_device vf_pf;

/* An attribute of a platform device: a number, or ~0 if it is missing. */
uint64_t vf_read(const char *device, const char *attribute);
/* Writes num_vfs of the card. */
int vf_set(const char *count);
/* Lists the existing VFs in order; returns their number. */
int vf_list(struct vf_device vf[VF_MAX]);
int vf_open(const struct vf_device *device);
struct drm_spyre_card_info vf_card(int fd);
/* driver/unbind or bind of a device */
int vf_bind(const char *how, const char *device);

/* Adds 64 sticks of known numbers and fills @out with the sums; returns 0 or an errno. */
int vf_run_add(int fd, uint8_t out[VF_ADD_BYTES]);
/* Queues work for hours; the caller frees @q and @mem. */
void vf_saturate(int fd, struct abi_queue *q, struct abi_buf *mem);

void vf_test_share(void);
void vf_test_lifetime(void);
void vf_test_hold(void);

#endif /* ABI_VF_H */

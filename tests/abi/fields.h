/* SPDX-License-Identifier: MIT */
/*
 * abi-fields: every field of every argument, invalid in turn, by table.
 *
 * A target is a struct that reaches the kernel: the argument of an ioctl, or a
 * struct to which the argument points. Its table gives the kind of each field,
 * which determines the invalid values and their errnos.
 */
#ifndef ABI_FIELDS_H
#define ABI_FIELDS_H

#include "config.h"

#include "abi.h"

enum field_kind {
	/* bits other than .arg: EINVAL */
	FIELD_FLAGS,
	/* must be zero: EINVAL */
	FIELD_MBZ,
	/* numbers above .arg: EINVAL */
	FIELD_ENUM,
	/* as FIELD_ENUM, and 0 is invalid as well */
	FIELD_ENUM1,
	/* GEM handles: ENOENT if unknown; .arg: the accepted kinds of BO */
	FIELD_BO,
	/* ids of programs, queues, syncobjs: ENOENT if unknown */
	FIELD_PROGRAM,
	FIELD_QUEUE,
	FIELD_SYNCOBJ,
	/* address of .arg bytes that the kernel reads, or writes: EFAULT */
	FIELD_READ,
	FIELD_WRITE,
	/* struct drm_spyre_array of elements of .arg bytes, at most .max */
	FIELD_ARRAY,
	/* written by the kernel; its input does not matter */
	FIELD_OUT,
	/* tested by hand in abi-ioctl: sizes, addresses and offsets with special rules */
	FIELD_OTHER,
};

/* The value 0 means "none" and is valid. */
#define FIELD_OR_NONE 1u
/* The value 0 refers to an address, which is NULL here: EFAULT. */
#define FIELD_OR_ADDRESS 2u

struct fields_context;

struct field {
	const char *name;
	uint16_t offset, size;
	enum field_kind kind;
	uint64_t arg;
	uint32_t max;
	uint32_t how;
	/* does this module support the field? */
	bool (*probe)(struct fields_context *c);
};

#define FIELD(type, field, kind_, ...) { \
	.name = #field, .offset = offsetof(struct type, field), \
	.size = sizeof(((struct type *)0)->field), .kind = kind_, ##__VA_ARGS__ \
}

/* The objects of good arguments: one set per open file. */
struct fields_context {
	int fd;
	struct abi_queue queue;
	struct abi_buf device, host, small;	/* small: of one page, on the device */
	uint32_t program, syncobj;
	/* for calls that destroy theirs */
	uint32_t spare_program, spare_queue;
	uint64_t image_size;
	void *image;
	/* pointees of arguments */
	struct drm_spyre_cb cb;
	struct drm_spyre_sync sync;
	struct drm_spyre_vm_bind_op op;
	struct drm_spyre_dma desc;
	struct drm_spyre_peer_copy peer;
	uint64_t args[3];
	uint8_t out[512];
};

#define FIELDS_VA (64 * MIB)
#define FIELDS_BYTES (16 * PAGE)

struct target {
	const char *name;
	unsigned long request;
	const struct field *fields;
	uint32_t num_fields;
	/* bytes of the struct with the fields, if that is not the argument itself */
	uint32_t size;
	/* bytes of the argument in the first version of the interface that has it */
	uint32_t first_size;
	/* fills a good argument, whose pointees are in @c */
	void (*good)(struct fields_context *c, void *argument);
	/* returns the struct with the fields, if it is not the argument itself */
	void *(*subject)(struct fields_context *c);
	/* reverts a good call */
	void (*undo)(struct fields_context *c, const void *argument);
	/* the header's minor version that introduced it */
	uint32_t since;
	bool root;
};

#define FIELDS_MAX_ARGUMENT 128

extern const struct target fields_targets[];
extern const uint32_t fields_num_targets;

struct fields_context fields_context(void);
void fields_context_free(struct fields_context *c);
/* Passes @argument, of @size bytes, to the kernel: by ioctl, or another path. */
typedef int (*fields_issue)(struct fields_context *c, const struct target *t, void *argument);
/* Tries all values of all fields of @t; returns the number of invalid ones tried. */
uint32_t fields_walk(struct fields_context *c, const struct target *t, fields_issue issue,
		     const char *how);
int fields_ioctl(struct fields_context *c, const struct target *t, void *argument);
/* Refused calls leave nothing: handles, ids, memory; and work still runs. */
struct fields_state {
	uint32_t bo, queue, program, syncobj;
	uint64_t used;
};
struct fields_state fields_state(struct fields_context *c);
void fields_same_state(struct fields_context *c, const struct fields_state *before,
		       const char *name);
/* Returns true if this module supports @t. */
bool fields_supported(struct fields_context *c, const struct target *t);

#ifdef HAVE_LIBURING
void test_fields_uring(void);
#endif

#endif /* ABI_FIELDS_H */

/* SPDX-License-Identifier: MIT */
/*
 * fuzz-ioctl: sequences of calls on the node, mutated and, where the kernel
 * has KCOV, guided by the coverage of the driver.
 *
 * An input is a list of calls.  A call is a kind, the file that it is made on,
 * bytes that choose each argument (mostly from what earlier calls made, now and
 * then from what is wrong) and a poke: one change to the finished argument.
 * Every byte string is an input; none can make an execution long or large.
 */
#ifndef FUZZ_IOCTL_H
#define FUZZ_IOCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drm/spyre_accel.h>

#define FZ_PARAMS 14
#define FZ_MAX_CALLS 24
#define FZ_FILES 3
#define FZ_SLOTS 8
#define FZ_PENDING 8		/* control blocks, syncs and operations that wait for their call */
#define FZ_ARGS 64

/* One line each: its name in text, and its weight in the generator. */
#define FZ_KINDS(X) \
	X(OPEN, 1) X(DEV_QUERY, 4) X(BO_CREATE, 8) X(BO_MMAP_OFFSET, 2) X(BO_INFO, 3) \
	X(GEM_CLOSE, 3) X(MMAP, 4) X(MUNMAP, 1) X(OP, 10) X(VM_BIND, 8) X(PROGRAM_CREATE, 6) \
	X(PROGRAM_DESTROY, 2) X(QUEUE_CREATE, 5) X(QUEUE_DESTROY, 2) X(QUEUE_QUERY, 2) \
	X(CB, 20) X(SYNC, 8) X(SUBMIT, 14) X(URING_SUBMIT, 6) X(URING_WAIT, 2) \
	X(CONTEXT_RESET, 2) X(RESET, 1) X(SYNCOBJ_CREATE, 3) X(SYNCOBJ_DESTROY, 1) \
	X(SYNCOBJ_WAIT, 3) X(SYNCOBJ_SIGNAL, 3) X(SYNCOBJ_TRANSFER, 1) X(SYNCOBJ_EXPORT, 2) \
	X(SYNCOBJ_IMPORT, 2) X(PRIME_EXPORT, 2) X(PRIME_IMPORT, 2) X(CLOSE_FD, 1) X(INJECT, 1) \
	X(RAW, 2) X(URING_OPEN, 1) X(FORK, 1) X(DUP, 1) X(SEND_FD, 2) X(RECV_FD, 2) X(REMAP, 2) \
	X(TOUCH, 1)

enum fz_kind {
#define X(name, weight) FZ_##name,
	FZ_KINDS(X)
#undef X
	FZ_KIND_COUNT
};

struct fz_call {
	uint8_t kind;
	uint8_t file;
	uint8_t p[FZ_PARAMS];
	uint16_t poke_at;
	uint8_t poke_op;	/* below FZ_POKE: none */
	uint8_t poke_value;
};

#define FZ_POKE 128

struct fz_input {
	uint32_t count;
	struct fz_call call[FZ_MAX_CALLS];
};

/* --- ioctl-main.c --- */
/* The kernel violated a guarantee: prints it, saves the input and ends the run. */
void fz_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The machine lacks something that the fuzzer requires. */
void fz_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* --- ioctl-text.c --- */
const char *fz_kind_name(uint8_t kind);
/* Writes one line per call; false if the file cannot be written. */
bool fz_write(const char *path, const struct fz_input *input);
/* Returns false if the file is not an input. */
bool fz_read(const char *path, struct fz_input *input);

/* --- ioctl-mutate.c --- */
void fz_srandom(uint64_t seed);
uint32_t fz_random(uint32_t limit);
void fz_generate(struct fz_input *input);
/* @other: another input from which calls are copied. */
void fz_mutate(struct fz_input *input, const struct fz_input *other);

/* --- ioctl-kcov.c --- */
/* Call this before privileges are dropped. Returns false if KCOV is unavailable. */
bool fz_kcov_open(void);
void fz_kcov_begin(void);
/* Returns the number of new features since fz_kcov_begin(). */
uint32_t fz_kcov_end(void);
/* The result of a call is a feature as well; the only one without KCOV. */
uint32_t fz_kcov_result(uint8_t kind, int result);
uint32_t fz_kcov_pcs(void);
uint32_t fz_kcov_features(void);

/* --- ioctl-world.c --- */
struct fz_slots {
	uint32_t id[FZ_SLOTS];
	uint32_t used;
};

struct fz_file {
	int fd;			/* -1: not open */
	struct fz_slots bo, queue, program, syncobj;
};

/*
 * Memory that the kernel reads and writes, at the same address in every run,
 * isolated from other mappings.
 */
struct fz_arena {
	struct drm_spyre_cb cb[FZ_PENDING];
	struct drm_spyre_sync sync[FZ_PENDING];
	struct drm_spyre_vm_bind_op op[FZ_PENDING];
	struct drm_spyre_dma desc[FZ_PENDING];
	struct drm_spyre_peer_copy peer[FZ_PENDING];
	uint64_t args[FZ_PENDING][FZ_ARGS];
	uint64_t handles[FZ_PENDING], points[FZ_PENDING];
	uint8_t query[1024];
	uint8_t image[1 << 16];
	uint8_t host[1 << 16];
};

struct fz_world {
	char node[64], debugfs[128];
	struct fz_file file[FZ_FILES];
	struct fz_slots fd;		/* dma-bufs, syncobjs and sync files */
	void *map[FZ_SLOTS];
	uint64_t map_size[FZ_SLOTS];
	uint32_t num_maps;
	uint32_t num_cbs, num_syncs, num_ops;
	struct fz_arena *arena;
	uint8_t *edge, *readonly, *hole;	/* edge: first byte that is not mapped */
	uint64_t bos;			/* bytes made in this execution */
	int mail[2];			/* descriptors in transit: written to 0, read from 1 */
	int first_fd;			/* the first that an execution opens */
};

void fz_world_init(struct fz_world *w);
/* Closes and unmaps everything that an execution left. */
void fz_world_reset(struct fz_world *w);
/* Opens the file if necessary; returns -1 on failure. */
int fz_open(struct fz_world *w, struct fz_file *file);

void fz_put(struct fz_slots *slots, uint32_t id);
void fz_drop(struct fz_slots *slots, uint32_t id);
/* Picks an existing entry in most cases, else an invalid one. */
uint32_t fz_pick(const struct fz_slots *slots, uint8_t choice);
uint64_t fz_special(uint8_t choice);
uint64_t fz_va(uint8_t choice);
uint64_t fz_bytes(uint8_t choice);
uint64_t fz_pointer(struct fz_world *w, uint8_t choice, const void *good);
struct drm_spyre_array fz_array(struct fz_world *w, uint8_t where, uint8_t stride, uint8_t count,
				const void *data, uint32_t size, uint32_t num);
/* Applies the call's poke to @arg. */
void fz_poke(const struct fz_call *c, void *arg, size_t size);
/* Applies the call's poke and calls ioctl; returns 0 or a negative errno. */
int fz_ioctl(struct fz_world *w, const struct fz_call *c, int fd, unsigned long request,
	     void *arg);

/* --- ioctl-call.c, ioctl-sync.c, ioctl-submit.c, ioctl-process.c, ioctl-map.c --- */
/* Returns 0 or a negative errno. */
int fz_call(struct fz_world *w, const struct fz_call *c);
int fz_call_sync(struct fz_world *w, const struct fz_call *c, struct fz_file *file);
int fz_call_submit(struct fz_world *w, const struct fz_call *c, struct fz_file *file);
int fz_call_process(struct fz_world *w, const struct fz_call *c, struct fz_file *file);
int fz_call_map(struct fz_world *w, const struct fz_call *c, struct fz_file *file);
/* Reaps the ring's completions; replaces a ring that has work in flight. */
void fz_uring_reset(struct fz_world *w);
/* A forked child leaves the ring to its parent and opens its own. */
void fz_uring_forget(void);
/* Ends the threads that touch mappings, then unmaps all of them. */
void fz_map_reset(struct fz_world *w);

/* --- ioctl-process.c --- */
void fz_mail_open(struct fz_world *w);
/* Closes every descriptor in transit. */
void fz_mail_drain(struct fz_world *w);
/* Returns true in a child that FORK created: it reports nothing and ends with its input. */
bool fz_is_child(void);
bool fz_shares_files(void);
/* Kills and reaps the children of this execution. */
void fz_process_reset(void);

/*
 * Runs @worker in @processes processes for @seconds; kills them one by one at any
 * time and replaces each. @check reads the kernel log. Returns the number of
 * processes killed.
 */
uint64_t fz_supervise(unsigned int processes, double seconds, void (*worker)(uint64_t number),
		      void (*check)(void));

#endif /* FUZZ_IOCTL_H */

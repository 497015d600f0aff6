/* SPDX-License-Identifier: MIT */
/* A small encoder of device programs: one instruction per core, in loops. */
#ifndef ABI_PROG_H
#define ABI_PROG_H

#include "abi.h"
#include "model/program.h"

struct abi_prog {
	uint32_t cores;			/* each does its own part */
	uint32_t num_loops;
	uint32_t loops[SPYRE_MAX_LOOPS];
	uint32_t lx_bytes;
	uint32_t lx_kept;
	uint32_t num_operands;
	struct spyre_prog_operand operands[SPYRE_MAX_VIEWS];
	struct spyre_instr instr;
	struct spyre_view views[SPYRE_MAX_VIEWS];
	uint64_t core_step;		/* bytes from one core's part to the next */
};

/* out = a + b over DL16 sticks: operands out, a, b. @sticks: per core. */
struct abi_prog abi_prog_add(uint32_t cores, uint32_t sticks);
/* The same for hours, within the verifier's work bound; reads and writes 1 MiB. */
struct abi_prog abi_prog_long(void);
#define ABI_LONG_BYTES MIB
/* Takes minutes of host time but 16 modelled cycles: moves one stick again and again. */
struct abi_prog abi_prog_cheap(void);

/* Returns the malloc()ed image. */
void *abi_prog_encode(const struct abi_prog *p, uint64_t *size);
int abi_prog_load(int fd, const void *image, uint64_t size, struct drm_spyre_program_create *args);
/* Bails out if the card refuses. */
uint32_t abi_prog_create(int fd, const struct abi_prog *p);
/* Nanoseconds that a program with three operands takes on the card, on a separate file. */
uint64_t abi_prog_ns(const struct abi_prog *p);
int abi_prog_destroy(int fd, uint32_t handle);

/* DL16 bits of the whole number @n, |n| <= 512. */
uint16_t abi_dl16(int n);

#endif /* ABI_PROG_H */

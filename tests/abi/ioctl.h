/* SPDX-License-Identifier: MIT */
/* abi-ioctl: one function per ioctl, with each field invalid in turn. */
#ifndef ABI_IOCTL_H
#define ABI_IOCTL_H

#include "abi.h"

void test_dev_query(int fd);
void test_bo_create(int fd);
void test_bo_mmap_offset(int fd);
void test_vm_bind(int fd);
void test_program(int fd);
void test_queue(int fd);
void test_submit(int fd);
void test_submit_cb(int fd);

/*
 * The argument struct itself: unmapped, half mapped, and with its last byte at the
 * end of mapped memory, which must work as anywhere else.
 */
void test_pointer(int fd, const char *name, unsigned long request, const void *good, int want);

#endif /* ABI_IOCTL_H */

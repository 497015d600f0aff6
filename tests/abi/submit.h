/* SPDX-License-Identifier: MIT */
/* The parts of abi-submit. */
#ifndef ABI_SUBMIT_H
#define ABI_SUBMIT_H

#include "abi.h"

/* Each may overwrite @dev, 4 MiB of mapped device memory. */
void test_dma(int fd, struct abi_buf *dev);
void test_exec(int fd, struct abi_buf *dev);
void test_sync(int fd, struct abi_buf *dev);
/* Uses buffers of its own. */
void test_boxes(int fd);

#endif /* ABI_SUBMIT_H */

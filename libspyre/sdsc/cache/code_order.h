/* SPDX-License-Identifier: MIT */
/*
 * Between the host's byte order, in which a bundle and its program are used, and the little
 * endian of init_binary.bin. The inverse of each call is the same call; on a little-endian host
 * nothing changes. Internal.
 */
#ifndef SPYRE_SDSC_CODE_ORDER_H
#define SPYRE_SDSC_CODE_ORDER_H

#include <stdbool.h>

#include "libspyre/sdsc/cache/code_image.h"

struct code_key code_order_key(struct code_key key);
void code_order_header(struct code_image_header *header);
void code_order_arg(struct code_image_arg *arg);
void code_order_operand(struct code_image_operand *operand);
/*
 * Converts a program image of any contents: to the host's order with @to_host, else from it.
 * Bytes that belong to no structure keep their order.
 */
void code_order_program(uint8_t *image, size_t bytes, bool to_host);

#endif /* SPYRE_SDSC_CODE_ORDER_H */

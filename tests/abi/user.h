/* SPDX-License-Identifier: MIT */
/* Tests, run by root, of the permissions of other users. */
#ifndef TESTS_ABI_USER_H
#define TESTS_ABI_USER_H

#include <stdbool.h>
#include <stdint.h>

/* Users without privileges except the node's group. */
#define USER_A 1001u
#define USER_B 1002u

/* Returns true if the process may change users; if not, it is itself unprivileged. */
bool user_is_root(void);
/* Becomes @uid with the node's group, until user_back(); bails out on failure. */
void user_be(uint32_t uid);
void user_back(void);
/* Opens a file of the card as @uid. */
int user_open(uint32_t uid);

#endif /* TESTS_ABI_USER_H */

/* SPDX-License-Identifier: MIT */
/* Settings of communicators from the environment, and their keys. Internal. */
#ifndef SPYRE_COMM_ROOT_H
#define SPYRE_COMM_ROOT_H

#include <stdbool.h>

#include "libspyre/comm/address.h"

/* SPYRE_COMM_TRANSPORT. */
enum comm_transport {
	COMM_TRANSPORT_AUTO,
	COMM_TRANSPORT_SHM,
	COMM_TRANSPORT_TCP,
};

spyre_status comm_env_transport(enum comm_transport *transport);
/* SPYRE_COMM_TIMEOUT_MS, 10 minutes by default. */
spyre_status comm_env_timeout_ms(uint64_t *milliseconds);
/* Compares in constant time, so that answers do not reveal a part of the key. */
bool comm_key_equal(const struct comm_key *a, const struct comm_key *b);
/* SPYRE_COMM_ADDRESS; never NULL. */
const char *comm_env_address(void);
bool comm_env_has_address(void);

#endif /* SPYRE_COMM_ROOT_H */

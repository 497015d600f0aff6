/* SPDX-License-Identifier: MIT */
/* Identity of a communicator and addresses of its ranks, as they are exchanged. Internal. */
#ifndef SPYRE_COMM_ADDRESS_H
#define SPYRE_COMM_ADDRESS_H

#include <stdint.h>

#include <spyre/collective.h>

#define COMM_MAGIC 0x53434f4d	/* "SCOM" */
#define COMM_VERSION 1

/* Admits ranks to a communicator; equal for all of them and secret to others. */
struct comm_key {
	uint8_t bytes[32];
};

/* Contents of a spyre_comm_id. */
struct comm_identity {
	uint32_t magic;
	uint32_t version;
	struct comm_key key;
	/* Where the root listens, as text. */
	char host[64];
	uint32_t port;
	/* Of the process that created the id, for messages. */
	int32_t pid;
	uint8_t reserved[16];
};

_Static_assert(sizeof(struct comm_identity) == sizeof(spyre_comm_id), "an id has 128 bytes");

/* How the other ranks find a rank. */
struct comm_address {
	/* Identifies the machine and its network namespace. */
	char machine[96];
	/* Abstract name of its Unix socket. */
	char socket[64];
	/* Name of the host and id of the process, for messages. */
	char host[64];
	int32_t pid;
	/* Distinguishes processes of one machine in different pid namespaces. */
	uint64_t process;
	/* TCP address for ranks on other machines; port 0: none. */
	char tcp_host[64];
	uint32_t tcp_port;
	/* Name of the fabric's endpoint. */
	uint32_t fabric_bytes;
	uint8_t fabric[128];
};

/* A rank's first message to the root. */
struct comm_hello {
	uint32_t magic;
	uint32_t version;
	struct comm_key key;
	uint32_t size;
	uint32_t rank;
	uint32_t chunk;
	uint32_t transport;
	uint64_t timeout_ms;
	struct comm_address address;
};

/* The root's answer; the addresses of all ranks follow if @status is SUCCESS. */
struct comm_answer {
	uint32_t magic;
	uint32_t status;
	char text[512];
};

/* First message of a rank that connects to another one. */
struct comm_greeting {
	uint32_t magic;
	uint32_t rank;
	struct comm_key key;
};

#endif /* SPYRE_COMM_ADDRESS_H */

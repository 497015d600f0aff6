/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_URING_H
#define SPYRE_URING_H

struct io_uring_cmd;

/* Flags of the submission that is being decoded. */
unsigned int spyre_uring_issue_flags(struct io_uring_cmd *cmd);
int spyre_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);

#endif

/* SPDX-License-Identifier: MIT */
/* The largest size of files that the process may write (RLIMIT_FSIZE). Internal. */
#ifndef SPYRE_FILE_LIMIT_H
#define SPYRE_FILE_LIMIT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * True if a file of @end bytes is larger than the limit. A write beyond it sends SIGXFSZ, which
 * ends a program that does not expect it: files that the program did not ask for must not do so.
 */
bool spyre_beyond_file_limit(off_t end);

#endif /* SPYRE_FILE_LIMIT_H */

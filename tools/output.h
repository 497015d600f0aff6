/* SPDX-License-Identifier: MIT */
/* Files that tools write. Used by spyre-smi and spyre. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

/*
 * Returns NULL if a new file may take the name @path: there is none, or a regular file. Otherwise
 * returns the reason: root could replace or remove /dev/null and /dev/stdout.
 */
const char *output_refused(const char *path);

#endif /* TOOLS_OUTPUT_H */

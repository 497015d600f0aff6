/* SPDX-License-Identifier: MIT */
/* Joins the traces of several ranks. */
#ifndef SPYRE_TOOL_TRACE_MERGE_H
#define SPYRE_TOOL_TRACE_MERGE_H

/* spyre trace merge: argv[0] is "merge". Returns an exit_code. */
int trace_merge(int argc, char **argv);

#endif /* SPYRE_TOOL_TRACE_MERGE_H */

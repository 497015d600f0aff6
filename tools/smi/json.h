/* SPDX-License-Identifier: MIT */
/* JSON documents: one object on one line, with a list of cards or processes. */
#ifndef SMI_JSON_H
#define SMI_JSON_H

#include <yyjson.h>

#include "tools/smi/smi.h"

/* Adds the entries of a list; returns false if out of memory. */
typedef bool smi_fill(yyjson_mut_doc *doc, yyjson_mut_val *list,
		      const struct smi_snapshot *snapshot, const struct smi_options *options);

/* Prints a document whose list is called @key; returns false if out of memory. */
bool smi_print_document(const char *key, smi_fill *fill, const struct smi_snapshot *snapshot,
			const struct smi_options *options);

#endif /* SMI_JSON_H */

/* SPDX-License-Identifier: MIT */
#ifndef SMI_EVENTS_H
#define SMI_EVENTS_H

#include "tools/smi/smi.h"

/* Prints the events that are kept, or with options->follow those from now on. */
int smi_events(const struct smi_options *options);

#endif /* SMI_EVENTS_H */

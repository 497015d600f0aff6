/* SPDX-License-Identifier: MIT */
/* The values of the counters that cards and processes share. */
#include "config.h"

#include "tools/smi/counter_fields.h"

#define DEFINE(name)                                                                               \
	void smi_get_##name(const struct smi_subject *subject, struct smi_value *value)            \
	{                                                                                          \
		smi_set_number(value, subject->process ? subject->process->name :                  \
							 subject->card->name);                     \
	}
SMI_COUNTERS(DEFINE)

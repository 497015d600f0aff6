/* SPDX-License-Identifier: MIT */
/* The fields of a process for --query-compute-apps. */
#include "config.h"

#include <pwd.h>
#include <string.h>

#include "tools/smi/counter_fields.h"

#define GETTER(name) \
	static void get_##name(const struct smi_subject *subject, struct smi_value *value)

GETTER(pid) { smi_set_number(value, subject->process->pid); }
GETTER(name) { smi_set_string(value, subject->process->name); }
GETTER(memory) { smi_set_number(value, subject->process->memory_used); }

GETTER(resets) { smi_set_number(value, subject->process->resets); }

GETTER(uid)
{
	uint32_t uid = subject->process->uid;

	smi_set_number(value, uid == UINT32_MAX ? UINT64_MAX : uid);
}

GETTER(user)
{
	struct passwd entry, *found;
	char buffer[1024];

	if (!getpwuid_r(subject->process->uid, &entry, buffer, sizeof(buffer), &found) && found)
		smi_set_string(value, entry.pw_name);
}

GETTER(device_index) { smi_set_number(value, subject->index); }
GETTER(device_name) { smi_set_string(value, subject->card->properties.name); }
GETTER(device_uuid) { smi_set_string(value, subject->card->properties.uuid); }
GETTER(device_bus_id) { smi_set_string(value, subject->card->properties.bus_id); }

const struct smi_field smi_app_fields[] = {
	{ "pid", NULL, "pid", "Process ID", SMI_SECTION_PROCESSES, NULL, 1, 0, 1, get_pid,
	  "Process id." },
	{ "process_name", "name", "process_name", "Name", SMI_SECTION_PROCESSES, NULL, 1, 0, 1,
	  get_name, "Name of the process." },
	{ "used_memory", "used_gpu_memory", "used_memory_bytes", "Used Memory", SMI_SECTION_PROCESSES, "MiB",
	  1024.0 * 1024.0, 0, 1, get_memory, "Device memory that the process holds." },
	SMI_BYTES("memory.peak", "memory_peak_bytes", "Peak Memory", SMI_SECTION_PROCESSES,
		  smi_get_memory_peak, "The most device memory that the process held at a time."),
	SMI_COUNTER_ROWS(SMI_SECTION_PROCESSES, "the process"),
	{ "energy.total", NULL, "energy_joules_total", "Energy", SMI_SECTION_PROCESSES, "mJ", 1, 0,
	  1000, smi_get_energy_mj,
	  "Modelled energy of the process's work, without the power of an idle card." },
	{ "resets", NULL, "context_resets_total", "Resets", SMI_SECTION_PROCESSES, NULL, 1, 0, 1,
	  get_resets, "Resets of contexts of the process." },
	{ "uid", NULL, "uid", "User ID", SMI_SECTION_PROCESSES, NULL, 1, 0, 1, get_uid, "User id." },
	{ "user", NULL, "user", "User Name", SMI_SECTION_PROCESSES, NULL, 1, 0, 1, get_user, "User name." },
	{ "device_index", "gpu_index", "device_index", NULL, SMI_SECTION_PROCESSES, NULL, 1, 0, 1,
	  get_device_index, "Index of the card." },
	{ "device_name", "gpu_name", "device_name", NULL, SMI_SECTION_PROCESSES, NULL, 1, 0, 1,
	  get_device_name, "Product name of the card." },
	{ "device_uuid", "gpu_uuid", "device_uuid", NULL, SMI_SECTION_PROCESSES, NULL, 1, 0, 1,
	  get_device_uuid, "Identifier of the card." },
	{ "device_bus_id", "gpu_bus_id", "device_bus_id", NULL, SMI_SECTION_PROCESSES, NULL, 1, 0, 1,
	  get_device_bus_id, "Device name of the card." },
	{ NULL },
};

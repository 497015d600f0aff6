/* SPDX-License-Identifier: MIT */
/* The fields of a card for --query-device. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "tools/smi/counter_fields.h"

void smi_set_string(struct smi_value *value, const char *text)
{
	value->kind = *text ? SMI_STRING : SMI_NONE;
	snprintf(value->text, sizeof(value->text), "%s", text);
}

void smi_set_number(struct smi_value *value, uint64_t number)
{
	value->kind = number == UINT64_MAX ? SMI_NONE : SMI_NUMBER;
	value->number = number;
}

static void set_u32(struct smi_value *value, uint32_t number)
{
	smi_set_number(value, number == UINT32_MAX ? UINT64_MAX : number);
}

/* The library reports 0 cores, bytes or hertz if the number is unknown. */
static void set_positive(struct smi_value *value, uint64_t number)
{
	smi_set_number(value, number ? number : UINT64_MAX);
}

#define GETTER(name) \
	static void get_##name(const struct smi_subject *subject, struct smi_value *value)

GETTER(timestamp)
{
	const struct timespec *time = &subject->snapshot->time;
	size_t used;
	struct tm tm;

	localtime_r(&time->tv_sec, &tm);
	used = strftime(value->text, sizeof(value->text), "%Y/%m/%d %H:%M:%S", &tm);
	snprintf(value->text + used, sizeof(value->text) - used, ".%03ld",
		 time->tv_nsec / 1000000);
	value->kind = SMI_STRING;
}

GETTER(name) { smi_set_string(value, subject->card->properties.name); }
GETTER(count) { smi_set_number(value, subject->snapshot->num_cards); }
GETTER(index) { smi_set_number(value, subject->index); }
GETTER(physical) { smi_set_number(value, subject->card->properties.physical_index); }

GETTER(visible)
{
	int visible = subject->snapshot->visible[subject->index];

	smi_set_number(value, visible < 0 ? UINT64_MAX : (uint64_t)visible);
}

GETTER(uuid) { smi_set_string(value, subject->card->properties.uuid); }
GETTER(bus_id) { smi_set_string(value, subject->card->properties.bus_id); }
GETTER(node) { smi_set_string(value, subject->card->properties.node); }

GETTER(backend)
{
	smi_set_string(value, subject->card->properties.backend == SPYRE_BACKEND_DRM ?
				      "drm" : "embedded");
}

GETTER(host_pid) { set_positive(value, subject->card->host_pid); }
GETTER(driver) { smi_set_string(value, subject->card->driver_version); }
GETTER(arithmetic) { smi_set_string(value, subject->card->properties.unit); }
GETTER(cores) { set_positive(value, subject->card->properties.num_cores); }
GETTER(lx) { set_positive(value, subject->card->properties.lx_bytes); }
GETTER(stick) { set_positive(value, subject->card->properties.stick_bytes); }
GETTER(generation) { smi_set_number(value, subject->card->generation); }
GETTER(memory_total) { smi_set_number(value, subject->card->memory_total); }
GETTER(memory_used) { smi_set_number(value, subject->card->memory_used); }

GETTER(memory_free)
{
	const spyre_telemetry_card *card = subject->card;

	if (card->memory_total == UINT64_MAX || card->memory_used > card->memory_total)
		smi_set_number(value, UINT64_MAX);
	else
		smi_set_number(value, card->memory_total - card->memory_used);
}

GETTER(utilization) { set_u32(value, subject->card->utilization); }
GETTER(power) { set_u32(value, subject->card->power_mw); }
GETTER(power_limit) { set_u32(value, subject->card->power_limit_mw); }
GETTER(temperature) { set_u32(value, subject->card->temperature_mc); }
GETTER(clock) { set_positive(value, subject->card->properties.clock_khz); }

GETTER(processes)
{
	uint64_t count = 0;
	int i;

	for (i = 0; i < subject->snapshot->num_processes; i++)
		count += subject->snapshot->processes[i].card == subject->index;
	smi_set_number(value, count);
}

#define KIB 1024.0

const struct smi_field smi_device_fields[] = {
	{ "timestamp", NULL, "timestamp", NULL, SMI_SECTION_NONE, NULL, 1, 0, 1, get_timestamp,
	  "Local time of the query, YYYY/MM/DD HH:MM:SS.mmm." },
	{ "name", "gpu_name", "name", "Product Name", SMI_SECTION_DEVICE, NULL, 1, 0, 1, get_name,
	  "Product name of the card." },
	{ "count", NULL, "count", NULL, SMI_SECTION_NONE, NULL, 1, 0, 1, get_count,
	  "Number of cards found." },
	{ "index", NULL, "index", "Index", SMI_SECTION_DEVICE, NULL, 1, 0, 1, get_index,
	  "Index of the card in this tool's lists, as -i takes it." },
	{ "visible_index", NULL, "visible_index", "Visible Index", SMI_SECTION_DEVICE, NULL, 1, 0,
	  1, get_visible,
	  "Index that programs use under the SPYRE_DEVICES of this environment." },
	{ "physical_index", NULL, "physical_index", "Physical Index", SMI_SECTION_DEVICE, NULL, 1,
	  0, 1, get_physical, "Index of the card among all of its kind, as SPYRE_DEVICES takes it." },
	{ "uuid", "gpu_uuid", "uuid", "UUID", SMI_SECTION_DEVICE, NULL, 1, 0, 1, get_uuid,
	  "Identifier of the card; stable while the module is loaded." },
	{ "bus_id", "pci.bus_id,gpu_bus_id", "bus_id", "Bus Id", SMI_SECTION_DEVICE, NULL, 1, 0, 1,
	  get_bus_id, "Device name in sysfs, or \"embedded.N\"." },
	{ "node", NULL, "node", "Node", SMI_SECTION_DEVICE, NULL, 1, 0, 1, get_node,
	  "Device node of a kernel card." },
	{ "backend", NULL, "backend", "Backend", SMI_SECTION_DEVICE, NULL, 1, 0, 1, get_backend,
	  "drm (kernel module) or embedded (in a process)." },
	{ "host_pid", NULL, "host_pid", "Host Process", SMI_SECTION_DEVICE, NULL, 1, 0, 1,
	  get_host_pid, "Process that an embedded card lives in." },
	{ "driver_version", NULL, "driver_version", "Driver Version", SMI_SECTION_DEVICE, NULL, 1, 0,
	  1, get_driver, "Version of the loaded kernel module." },
	{ "arithmetic", NULL, "arithmetic", "Host Arithmetic", SMI_SECTION_DEVICE, NULL, 1, 0, 1,
	  get_arithmetic, "Vector unit of the host that computes, such as scalar or avx2." },
	{ "cores", NULL, "cores", "Cores", SMI_SECTION_DEVICE, NULL, 1, 0, 1, get_cores,
	  "Number of cores." },
	{ "lx.size", NULL, "lx_bytes", "LX per Core", SMI_SECTION_DEVICE, "KiB", KIB, 0, 1, get_lx,
	  "LX scratchpad of each core." },
	{ "stick.size", NULL, "stick_bytes", "Stick", SMI_SECTION_DEVICE, "B", 1, 0, 1, get_stick,
	  "Unit of transfer and of alignment." },
	{ "reset.count", NULL, "reset_count", "Resets", SMI_SECTION_DEVICE, NULL, 1, 0, 1,
	  get_generation, "Resets of the card since the module was loaded, or its process started." },
	{ "memory.total", NULL, "memory_total_bytes", "Total", SMI_SECTION_MEMORY, "MiB", SMI_MIB, 0, 1,
	  get_memory_total, "Capacity of device memory." },
	{ "memory.used", NULL, "memory_used_bytes", "Used", SMI_SECTION_MEMORY, "MiB", SMI_MIB, 0, 1,
	  get_memory_used, "Device memory in use by all processes." },
	{ "memory.free", NULL, "memory_free_bytes", "Free", SMI_SECTION_MEMORY, "MiB", SMI_MIB, 0, 1,
	  get_memory_free, "Device memory that is not in use." },
	SMI_BYTES("memory.peak", "memory_peak_bytes", "Peak", SMI_SECTION_MEMORY,
		  smi_get_memory_peak, "The most device memory that was in use at a time."),
	{ "utilization.device", "utilization.gpu,utilization.aip", "utilization_percent", "Device",
	  SMI_SECTION_UTILIZATION, "%", 1, 0, 1, get_utilization,
	  "Share of the last second during which at least one job ran." },
	{ "temperature.device", "temperature.gpu,temperature.aip", "temperature_celsius", "Device",
	  SMI_SECTION_TEMPERATURE, "C", 1000, 0, 1000, get_temperature,
	  "Modelled temperature in degrees Celsius." },
	{ "power.draw", NULL, "power_draw_watts", "Draw", SMI_SECTION_POWER, "W", 1000, 2, 1000,
	  get_power, "Modelled power draw." },
	{ "power.limit", NULL, "power_limit_watts", "Limit", SMI_SECTION_POWER, "W", 1000, 2, 1000,
	  get_power_limit, "Power limit of the card." },
	{ "energy.total", "total_energy_consumption", "energy_joules_total", "Energy",
	  SMI_SECTION_POWER, "mJ", 1, 0, 1000, smi_get_energy_mj,
	  "Modelled energy since the module was loaded, or the card's process started." },
	{ "clocks.core", "clocks.current.graphics,clocks.sm", "clock_core_hertz", "Core",
	  SMI_SECTION_CLOCK, "MHz", 1000, 0, 0.001, get_clock, "Modelled clock of the cores." },
	SMI_COUNTER_ROWS(SMI_SECTION_COUNTERS, "the card"),
	{ "processes.count", NULL, "processes", NULL, SMI_SECTION_NONE, NULL, 1, 0, 1, get_processes,
	  "Processes that use the card, as far as this user may see them." },
	{ NULL },
};

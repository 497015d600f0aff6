// SPDX-License-Identifier: MIT
/* Embedded cards: their settings from the environment, and the devices in use. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "libspyre/backend/cpu.h"
#include "libspyre/backend/embedded.h"
#include "libspyre/base/environment.h"
#include "libspyre/base/error.h"
#include "libspyre/telemetry/sources.h"

#define MIB (1ull << 20)
#define DEFAULT_LPDDR_MIB 16384
#define MAX_UNITS 7
#define MAX_LPDDR_MIB (112ull * 1024)	/* seven data segments of 16 GiB */

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct embedded_device *devices[EMBEDDED_MAX_CARDS];
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&devices_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&devices_lock);
}

/* The devices' threads do not survive fork(), so a child starts its own devices. */
static void in_child(void)
{
	memset(devices, 0, sizeof(devices));
	pthread_mutex_unlock(&devices_lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* Writes "scalar, avx2 or avx512": the units of this build. */
static void list_units(char *text, size_t size)
{
	const struct spyre_unit *unit;
	size_t used = 0;

	*text = '\0';
	for (u32 i = 0; (unit = spyre_unit_at(i)) && used < size; i++)
		used += snprintf(text + used, size - used, "%s%s",
				 !i ? "" : spyre_unit_at(i + 1) ? ", " : " or ",
				 spyre_unit_name(unit));
}

static spyre_status forced_unit(const char *name, const struct spyre_unit **unit)
{
	char names[128];

	*unit = spyre_unit_find(name);
	if (!*unit) {
		list_units(names, sizeof(names));
		return spyre_error(SPYRE_ERROR_CONFIGURATION, "SPYRE_UNIT=\"%s\": expected %s", name,
				   names);
	}
	if (!cpu_runs(name))
		return spyre_error(SPYRE_ERROR_CONFIGURATION,
				   "SPYRE_UNIT=%s: this processor does not have it; unset it to take "
				   "the best one", name);
	return SPYRE_SUCCESS;
}

static spyre_status config_unit(const struct spyre_unit **unit)
{
	const char *forced = getenv("SPYRE_UNIT");
	const struct spyre_unit *next;
	u32 at = 0;

	if (forced && *forced)
		return forced_unit(forced, unit);
	while ((next = cpu_next_unit(&at)))
		*unit = next;
	return SPYRE_SUCCESS;
}

static const char *unit_names[MAX_UNITS + 1];

static void name_units(void)
{
	const struct spyre_unit *unit;
	u32 at = 0;

	for (int i = 0; i < MAX_UNITS && (unit = cpu_next_unit(&at)); i++)
		unit_names[i] = spyre_unit_name(unit);
}

const char *const *spyre_host_units(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, name_units);
	return unit_names;
}

static uint32_t online_cpus(void)
{
	cpu_set_t set;
	int n = 0;

	/* A container may restrict the processors of this process. */
	if (!sched_getaffinity(0, sizeof(set), &set))
		n = CPU_COUNT(&set);
	if (n < 1)
		n = sysconf(_SC_NPROCESSORS_ONLN);
	if (n < 1)
		n = 1;
	return n < EMBEDDED_MAX_THREADS ? n : EMBEDDED_MAX_THREADS;
}

static spyre_status config_read(struct embedded_config *config)
{
	uint64_t cards, cores, threads, mib;

	TRY(spyre_env_u64("SPYRE_EMBEDDED_CARDS", 1, 0, EMBEDDED_MAX_CARDS, &cards));
	TRY(spyre_env_u64("SPYRE_EMBEDDED_CORES", SPYRE_MAX_CORES, 1, SPYRE_MAX_CORES,
			  &cores));
	TRY(spyre_env_u64("SPYRE_EMBEDDED_THREADS", online_cpus(), 1,
			  EMBEDDED_MAX_THREADS, &threads));
	TRY(spyre_env_u64("SPYRE_EMBEDDED_LPDDR_MIB", DEFAULT_LPDDR_MIB, 1, MAX_LPDDR_MIB,
			  &mib));
	config->cards = cards;
	config->cores = cores;
	config->threads = threads;
	config->lpddr_bytes = mib * MIB;
	return config_unit(&config->unit);
}

spyre_status embedded_count(int *count)
{
	uint64_t cards;
	spyre_status status;

	status = spyre_env_u64("SPYRE_EMBEDDED_CARDS", 1, 0, EMBEDDED_MAX_CARDS, &cards);
	if (!status)
		*count = cards;
	return status;
}

static void read_name(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (read(fd, text, size) < 0)
		text[0] = '\0';
	close(fd);
}

/*
 * Makes a UUID of version 8 (own scheme) from the values that identify this
 * process: the boot, the namespace of its pid, the pid and its start time.
 */
static void make_uuid(int index, char *uuid, size_t size)
{
	struct {
		char boot[40], pids[40];
		uint64_t start_time;
		int64_t pid, index;
	} of = { .pid = getpid(), .index = index };
	XXH128_hash_t h;

	read_name("/proc/sys/kernel/random/boot_id", of.boot, sizeof(of.boot));
	if (readlink("/proc/self/ns/pid", of.pids, sizeof(of.pids)) < 0)
		of.pids[0] = '\0';
	if (!spyre_telemetry_start_time((int32_t)of.pid, &of.start_time))
		of.start_time = 0;
	h = XXH3_128bits(&of, sizeof(of));
	snprintf(uuid, size, "%08x-%04x-8%03x-%04x-%012" PRIx64, (uint32_t)(h.high64 >> 32),
		 (uint32_t)(h.high64 >> 16) & 0xffff, (uint32_t)h.high64 & 0xfff,
		 (uint32_t)(h.low64 >> 48 & 0x3fff) | 0x8000, h.low64 & 0xffffffffffff);
}

static void config_properties(const struct embedded_config *config, int index,
			      spyre_device_properties *p)
{
	snprintf(p->name, sizeof(p->name), "Virtual Spyre");
	make_uuid(index, p->uuid, sizeof(p->uuid));
	snprintf(p->bus_id, sizeof(p->bus_id), "embedded.%d", index);
	p->node[0] = '\0';
	p->backend = SPYRE_BACKEND_EMBEDDED;
	p->physical_index = index;
	p->num_cores = config->cores;
	p->lx_bytes = SPYRE_LX_BYTES;
	p->stick_bytes = SPYRE_STICK_BYTES;
	p->clock_khz = SPYRE_CLOCK_HZ / 1000;
	p->memory_bytes = config->lpddr_bytes;
	snprintf(p->unit, sizeof(p->unit), "%s", spyre_unit_name(config->unit));
}

static spyre_status config_for(int index, struct embedded_config *config)
{
	spyre_status status = config_read(config);

	if (status)
		return status;
	if (index < 0 || index >= config->cards)
		return spyre_error(SPYRE_ERROR_NO_DEVICE,
				   "embedded card %d: there are %d (SPYRE_EMBEDDED_CARDS)", index,
				   config->cards);
	return SPYRE_SUCCESS;
}

spyre_status embedded_properties(int index, spyre_device_properties *properties)
{
	struct embedded_config config;
	spyre_status status = config_for(index, &config);

	if (!status)
		config_properties(&config, index, properties);
	return status;
}

/* Pages take memory only once a function fills them; without tables results are computed. */
static void *tables_new(void)
{
	void *tables = mmap(NULL, SPYRE_TABLES_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return tables == MAP_FAILED ? NULL : tables;
}

static struct embedded_device *device_new(int index, const struct embedded_config *config)
{
	struct embedded_device *device = calloc(1, sizeof(*device));
	spyre_device_properties properties = { .struct_size = sizeof(properties) };

	if (!device)
		return NULL;
	device->index = index;
	device->config = *config;
	pthread_mutex_init(&device->lock, NULL);
	pthread_cond_init(&device->queue_idle, NULL);
	TAILQ_INIT(&device->runnable[0]);
	TAILQ_INIT(&device->runnable[1]);
	TAILQ_INIT(&device->blocked);
	TAILQ_INIT(&device->sections);
	device->host.device = device;
	device->host.base.unit = config->unit;
	device->host.base.tables = tables_new();
	device->host.base.parallel = embedded_parallel;
	device->host.base.should_stop = embedded_should_stop;

	config_properties(config, index, &properties);
	properties.index = index;
	device->page = spyre_telemetry_publish(&properties);
	if (device->page) {
		device->page->memory_total = config->lpddr_bytes;
		device->page->generation = embedded_generation(index);
	}
	return device;
}

spyre_status embedded_device_get(int index, struct embedded_device **device)
{
	struct embedded_config config;
	spyre_status status = config_for(index, &config);

	if (status)
		return status;
	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&devices_lock);
	if (!devices[index])
		devices[index] = device_new(index, &config);
	*device = devices[index];
	if (*device)
		(*device)->refs++;
	pthread_mutex_unlock(&devices_lock);
	if (!*device)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "embedded card %d: no memory for its state", index);
	return SPYRE_SUCCESS;
}

void embedded_device_put(struct embedded_device *device)
{
	bool last;

	pthread_mutex_lock(&devices_lock);
	last = --device->refs == 0;
	if (last)
		devices[device->index] = NULL;
	pthread_mutex_unlock(&devices_lock);
	if (!last)
		return;
	embedded_workers_stop(device);
	if (device->host.base.tables)
		munmap(device->host.base.tables, SPYRE_TABLES_BYTES);
	spyre_telemetry_unpublish(device->page);
	pthread_cond_destroy(&device->queue_idle);
	pthread_mutex_destroy(&device->lock);
	free(device);
}

void embedded_devices_look(uint32_t mask)
{
	/* The lock keeps a device: only embedded_device_put() frees it, after it left the table. */
	pthread_mutex_lock(&devices_lock);
	for (int i = 0; i < EMBEDDED_MAX_CARDS; i++)
		if (mask >> i & 1 && devices[i])
			embedded_device_look(devices[i]);
	pthread_mutex_unlock(&devices_lock);
}

static void publish_memory(struct embedded_device *device, uint64_t used)
{
	if (device->page)
		atomic_store_explicit(&device->page->memory_used, used, memory_order_relaxed);
}

static void publish_peak(struct embedded_device *device, uint64_t used)
{
	struct spyre_telemetry_page *page = device->page;
	uint64_t peak = page ? atomic_load_explicit(&page->memory_peak, memory_order_relaxed) :
			       UINT64_MAX;

	while (used > peak && !atomic_compare_exchange_weak(&page->memory_peak, &peak, used))
		;
}

void embedded_count_job(struct embedded_device *device, bool failed)
{
	if (!device->page)
		return;
	spyre_telemetry_count(&device->page->jobs, 1);
	spyre_telemetry_count(&device->page->errors, failed);
}

bool embedded_charge(struct embedded_device *device, uint64_t bytes)
{
	uint64_t used = atomic_load_explicit(&device->memory_used, memory_order_relaxed);

	do {
		if (bytes > device->config.lpddr_bytes - used)
			return false;
	} while (!atomic_compare_exchange_weak(&device->memory_used, &used, used + bytes));
	publish_memory(device, used + bytes);
	publish_peak(device, used + bytes);
	return true;
}

void embedded_uncharge(struct embedded_device *device, uint64_t bytes)
{
	publish_memory(device, atomic_fetch_sub(&device->memory_used, bytes) - bytes);
}

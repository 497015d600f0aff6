// SPDX-License-Identifier: GPL-2.0-only
/*
 * DEV_QUERY, and the numbers that it shares with dumps, fdinfo and sysfs.
 */
#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "spyre_card.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_lpddr.h"
#include "spyre_query.h"

/*
 * The amounts by which a card's totals grow with each job, of any user, reveal
 * the shapes that the job computed.
 */
static bool counters_paranoid = true;
module_param(counters_paranoid, bool, 0444);
MODULE_PARM_DESC(counters_paranoid,
		 "exact totals of a card's work are for CAP_PERFMON and root alone (1)");

bool spyre_counters_are_private(void)
{
	return counters_paranoid;
}

bool spyre_may_see_counters(void)
{
	return !counters_paranoid || perfmon_capable();
}

void spyre_query_card(struct spyre_device *spyre, struct drm_spyre_card_info *info)
{
	info->index = spyre->index;
	info->num_cores = spyre->num_cores;
	info->lx_bytes = SPYRE_LX_BYTES;
	info->stick_bytes = SPYRE_STICK_BYTES;
	info->clock_khz = SPYRE_CLOCK_HZ / 1000;
	info->program_version = SPYRE_PROG_VERSION;
	info->lpddr_bytes = spyre->lpddr_bytes;
	info->generation = spyre->generation;
	strscpy((char *)info->unit, spyre_unit_name(spyre->engine.host.unit), sizeof(info->unit));
	export_uuid(info->uuid, &spyre->uuid);
	info->vf = spyre->vf;
	info->num_vfs = READ_ONCE(spyre->card.num_vfs);
}

void spyre_query_memory(struct spyre_file *sfile, struct drm_spyre_memory_info *info)
{
	info->total = sfile->spyre->lpddr_bytes;
	info->free = spyre_lpddr_free(sfile);
	info->used = info->total - info->free;
	info->context_used = atomic64_read(&sfile->used);
	info->peak = spyre_lpddr_peak(sfile->spyre);
	info->context_peak = READ_ONCE(sfile->peak);
}

/* Copies everything but the energy, which is not a total of @stats. */
static void spyre_query_stats(const struct spyre_stats *stats, struct drm_spyre_counters *info)
{
	info->busy_ns = stats->busy_ns;
	info->jobs = stats->jobs;
	info->errors = stats->errors;
	info->cycles = stats->cost.cycles;
	info->macs = stats->cost.macs;
	info->bytes_read = stats->cost.bytes_read;
	info->bytes_written = stats->cost.bytes_written;
	info->rdma_read = stats->cost.rdma_read;
	info->rdma_written = stats->cost.rdma_written;
	info->pcie_rx_bytes = stats->cost.pcie_rx_bytes;
	info->pcie_tx_bytes = stats->cost.pcie_tx_bytes;
	info->pt_cycles = stats->cost.pt_cycles;
	info->sfu_cycles = stats->cost.sfu_cycles;
	info->dma_cycles = stats->cost.dma_cycles;
	info->launches = stats->cost.launches;
	info->copies = stats->cost.copies;
	info->faults_timeout = stats->faults[SPYRE_FAULT_KIND_TIMEOUT];
	info->faults_access = stats->faults[SPYRE_FAULT_KIND_ACCESS];
	info->faults_escape = stats->faults[SPYRE_FAULT_KIND_ESCAPE];
	info->faults_compute = stats->faults[SPYRE_FAULT_KIND_COMPUTE];
}

void spyre_query_counters(struct spyre_device *spyre, struct drm_spyre_counters *info)
{
	struct spyre_stats stats;

	spyre_card_read_stats(spyre, &stats);
	info->timestamp_ns = ktime_get_ns();
	spyre_query_stats(&stats, info);
	info->energy_mj = div_u64(spyre_card_read_energy(spyre), 1000);
	spyre_card_read_power(spyre, &info->power_mw, &info->temperature_mc);
}

void spyre_query_own_counters(struct spyre_file *sfile, struct drm_spyre_counters *info)
{
	struct spyre_stats stats;

	spyre_file_read_stats(sfile, &stats);
	info->timestamp_ns = ktime_get_ns();
	spyre_query_stats(&stats, info);
	/* Without the power of an idle card, which belongs to none of its contexts. */
	info->energy_mj = div_u64(spyre_energy_model(stats.busy_ns, 0, stats.cost.macs,
						     stats.cost.bytes_read +
						     stats.cost.bytes_written), 1000);
	spyre_card_read_power(sfile->spyre, &info->power_mw, &info->temperature_mc);
}

int spyre_ioctl_dev_query(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_device *spyre = to_spyre_device(drm);
	struct drm_spyre_dev_query *args = data;
	const u32 size = args->size;
	union {
		struct drm_spyre_card_info card;
		struct drm_spyre_memory_info memory;
		struct drm_spyre_counters counters;
		struct drm_spyre_context_info context;
	} info = {};

	switch (args->type) {
	case DRM_SPYRE_DEV_QUERY_CARD:
		args->size = sizeof(info.card);
		break;
	case DRM_SPYRE_DEV_QUERY_MEMORY:
		args->size = sizeof(info.memory);
		break;
	case DRM_SPYRE_DEV_QUERY_COUNTERS:
		args->size = sizeof(info.counters);
		break;
	case DRM_SPYRE_DEV_QUERY_CONTEXT:
		args->size = sizeof(info.context);
		break;
	default:
		return -EINVAL;
	}
	if (!args->pointer)
		return 0;

	if (args->type == DRM_SPYRE_DEV_QUERY_CARD)
		spyre_query_card(spyre, &info.card);
	else if (args->type == DRM_SPYRE_DEV_QUERY_MEMORY)
		spyre_query_memory(to_spyre_file(file), &info.memory);
	else if (args->type == DRM_SPYRE_DEV_QUERY_CONTEXT)
		spyre_query_context(to_spyre_file(file), &info.context);
	else if (spyre_may_see_counters())
		spyre_query_counters(spyre, &info.counters);
	else
		spyre_query_own_counters(to_spyre_file(file), &info.counters);

	if (copy_to_user(u64_to_user_ptr(args->pointer), &info, min(size, args->size)))
		return -EFAULT;
	return 0;
}

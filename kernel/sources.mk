# SPDX-License-Identifier: GPL-2.0-only
# The module's files: Kbuild compiles them, and the tarball has them.
spyre_vdev_sources = \
	kernel/spyre_arbiter.c kernel/spyre_bind.c kernel/spyre_bo.c kernel/spyre_card.c \
	kernel/spyre_coredump.c kernel/spyre_debugfs.c kernel/spyre_dma.c kernel/spyre_drv.c \
	kernel/spyre_engine.c kernel/spyre_events.c kernel/spyre_fault.c kernel/spyre_file.c kernel/spyre_helper.c \
	kernel/spyre_hwmon.c kernel/spyre_inject.c kernel/spyre_job.c kernel/spyre_lpddr.c \
	kernel/spyre_lx.c kernel/spyre_mmap.c kernel/spyre_peer.c kernel/spyre_prime.c kernel/spyre_program.c \
	kernel/spyre_query.c kernel/spyre_queue.c kernel/spyre_reset.c kernel/spyre_runner.c \
	kernel/spyre_shmem.c kernel/spyre_submit.c kernel/spyre_sync.c \
	kernel/spyre_telemetry.c kernel/spyre_trace.c kernel/spyre_uring.c kernel/spyre_vm.c

spyre_vdev_headers = \
	kernel/spyre_arbiter.h kernel/spyre_array.h kernel/spyre_bind.h kernel/spyre_bo.h \
	kernel/spyre_card.h kernel/spyre_charge.h kernel/spyre_compat.h \
	kernel/spyre_coredump.h kernel/spyre_debugfs.h kernel/spyre_device.h \
	kernel/spyre_dma.h kernel/spyre_engine.h kernel/spyre_events.h kernel/spyre_fault.h \
	kernel/spyre_file.h \
	kernel/spyre_helper.h kernel/spyre_hwmon.h kernel/spyre_inject.h kernel/spyre_job.h \
	kernel/spyre_lpddr.h kernel/spyre_lx.h kernel/spyre_peer.h kernel/spyre_prime.h kernel/spyre_program.h \
	kernel/spyre_query.h kernel/spyre_queue.h kernel/spyre_reset.h kernel/spyre_runner.h \
	kernel/spyre_shmem.h kernel/spyre_shmem_page.h kernel/spyre_stats.h \
	kernel/spyre_submit.h kernel/spyre_sync.h kernel/spyre_telemetry.h kernel/spyre_trace.h \
	kernel/spyre_uring.h kernel/spyre_vm.h

spyre_vdev_kunit = \
	kernel/tests/arbiter_kunit.c kernel/tests/verify_kunit.c kernel/tests/vm_kunit.c

# SPDX-License-Identifier: GPL-2.0-only
# The kernel's build system builds the module in a separate folder:
#	make module [KDIR=/lib/modules/…/build] [W=1] [C=2]
EXTRA_DIST += \
	kernel/Kbuild \
	kernel/Makefile \
	kernel/dkms.conf \
	kernel/spyre_arbiter.c \
	kernel/spyre_arbiter.h \
	kernel/spyre_array.h kernel/spyre_charge.h \
	kernel/spyre_bind.c \
	kernel/spyre_bind.h \
	kernel/spyre_bo.c \
	kernel/spyre_bo.h \
	kernel/spyre_card.c \
	kernel/spyre_card.h \
	kernel/spyre_compat.h \
	kernel/spyre_coredump.c \
	kernel/spyre_coredump.h \
	kernel/spyre_debugfs.c \
	kernel/spyre_debugfs.h \
	kernel/spyre_device.h \
	kernel/spyre_dma.c \
	kernel/spyre_dma.h \
	kernel/spyre_drv.c \
	kernel/spyre_engine.c \
	kernel/spyre_engine.h \
	kernel/spyre_fault.c \
	kernel/spyre_fault.h \
	kernel/spyre_file.c \
	kernel/spyre_file.h \
	kernel/spyre_helper.c \
	kernel/spyre_helper.h \
	kernel/spyre_hwmon.c \
	kernel/spyre_hwmon.h \
	kernel/spyre_inject.c \
	kernel/spyre_inject.h \
	kernel/spyre_job.c \
	kernel/spyre_job.h \
	kernel/spyre_lpddr.c \
	kernel/spyre_lpddr.h \
	kernel/spyre_lx.c \
	kernel/spyre_lx.h \
	kernel/spyre_mmap.c \
	kernel/spyre_prime.c \
	kernel/spyre_prime.h \
	kernel/spyre_program.c \
	kernel/spyre_program.h \
	kernel/spyre_query.c \
	kernel/spyre_query.h \
	kernel/spyre_queue.c \
	kernel/spyre_queue.h \
	kernel/spyre_reset.c \
	kernel/spyre_reset.h \
	kernel/spyre_runner.c \
	kernel/spyre_runner.h \
	kernel/spyre_shmem.c \
	kernel/spyre_shmem.h \
	kernel/spyre_shmem_page.h \
	kernel/spyre_submit.c \
	kernel/spyre_submit.h \
	kernel/spyre_sync.c \
	kernel/spyre_sync.h \
	kernel/spyre_telemetry.c \
	kernel/spyre_telemetry.h \
	kernel/spyre_trace.c \
	kernel/spyre_trace.h \
	kernel/spyre_uring.c \
	kernel/spyre_uring.h \
	kernel/spyre_vm.c \
	kernel/spyre_vm.h \
	kernel/stage \
	kernel/tests/arbiter_kunit.c \
	kernel/tests/kcov.c \
	kernel/tests/kcov.h \
	kernel/tests/verify_kunit.c \
	kernel/tests/vm_kunit.c

EXTRA_DIST += docs/uapi.md docs/control-blocks.md docs/error-and-reset.md

# Like libraries below the prefix; with --prefix=/usr these are the folders that
# udev and dkms search.
udevrulesdir = $(prefix)/lib/udev/rules.d
dist_udevrules_DATA = udev/60-spyre.rules
dist_doc_DATA = kernel/spyre-vdev.conf

# dkms add spyre-vdev/VERSION; dkms install spyre-vdev/VERSION
dkmsdir = $(prefix)/src/spyre-vdev-$(PACKAGE_VERSION)
install-data-hook: install-dkms
.PHONY: install-dkms uninstall-dkms
install-dkms:
	$(MKDIR_P) "$(DESTDIR)$(dkmsdir)"
	$(SHELL) $(srcdir)/kernel/stage $(srcdir) "$(DESTDIR)$(dkmsdir)" $(PACKAGE_VERSION)
	find "$(DESTDIR)$(dkmsdir)" -type f -exec chmod 644 {} +
uninstall-dkms:
	rm -rf "$(DESTDIR)$(dkmsdir)"

module_dir = $(abs_top_builddir)/build/kernel

.PHONY: module module-stage module-clean
module-stage:
	$(AM_V_at)$(SHELL) $(srcdir)/kernel/stage $(srcdir) $(module_dir) $(PACKAGE_VERSION)
module: module-stage
	$(AM_V_GEN)kdir='$(KDIR)'; \
	if test -z "$$kdir"; then \
	  kdir=`ls -d /lib/modules/6.12*-amd64/build 2>/dev/null | grep -v cloud | sort -V | tail -n1`; \
	fi; \
	test -n "$$kdir" || { echo "no 6.12 kernel headers: install linux-headers-amd64 (bookworm-backports) or set KDIR" >&2; exit 1; }; \
	$(MAKE) -C "$$kdir" M=$(module_dir) $(if $(W),W=$(W)) $(if $(C),C=$(C)) $(if $(SPYRE_KUNIT),SPYRE_KUNIT=1) $(if $(SPYRE_KCOV),SPYRE_KCOV=1) modules
module-clean:
	rm -rf $(module_dir)
clean-local: module-clean

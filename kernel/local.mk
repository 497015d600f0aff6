# SPDX-License-Identifier: GPL-2.0-only
# The kernel's build system builds the module in a separate folder:
#	make module [KDIR=/lib/modules/…/build] [W=1] [C=2]
include kernel/sources.mk
EXTRA_DIST += $(spyre_vdev_sources) $(spyre_vdev_headers) $(spyre_vdev_kunit)
EXTRA_DIST += kernel/Kbuild kernel/Makefile kernel/dkms.conf kernel/stage kernel/tests/kcov.c kernel/tests/kcov.h

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

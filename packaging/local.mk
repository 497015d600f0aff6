# SPDX-License-Identifier: MIT
# Packages: scripts/package builds them from the tarball, so all of this is in it.
EXTRA_DIST += debian/changelog debian/control debian/copyright debian/not-installed debian/rules
EXTRA_DIST += debian/source/format
EXTRA_DIST += debian/libspyre0.install debian/libspyre0.symbols
EXTRA_DIST += debian/libspyre-dev.examples debian/libspyre-dev.install
EXTRA_DIST += debian/spyre-tools.install
EXTRA_DIST += debian/spyre-vdev-dkms.dkms debian/spyre-vdev-dkms.examples
EXTRA_DIST += debian/spyre-vdev-dkms.install
EXTRA_DIST += .containerignore packaging/Containerfile packaging/modules-load.d/spyre.conf packaging/spyre.spec
EXTRA_DIST += tests/packages/commands.awk tests/packages/container.sh tests/packages/cross.sh tests/packages/debian.sh \
	tests/packages/dkms.sh tests/packages/documents.sh tests/packages/rpm.sh \
	tests/packages/tools.sh tests/packages/wheel.sh
EXTRA_DIST += scripts/lib-package.sh scripts/package

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make install as root without DESTDIR: the installed programs start at once. Runs
# in a mount namespace whose prefix is empty and whose /etc is a copy. Argument:
# the build folder.
set -u
build=$1
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	echo "ok - make install, then spyre version # SKIP needs root and a mount namespace"
	exit 0
fi
if [ "${2-}" != inside ]; then
	exec unshare -m --propagation private sh "$0" "$build" inside
fi
prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
log=$build/install-root.log
{
	mkdir -p "$prefix" && mount -t tmpfs none /mnt && cp -a /etc/. /mnt &&
	rm -f /mnt/ld.so.cache && mount --move /mnt /etc && ldconfig -X &&
	mount -t tmpfs none "$prefix" && mount -t tmpfs none /var/cache/ldconfig &&
	make -C "$build" install
} >"$log" 2>&1
code=$?
[ $code = 0 ] && echo "ok - make install as root" || echo "not ok - make install as root"
failed=$code
for command in "spyre version" "spyre-smi --version" "spyre-perf --version" "spyre-exporter --version" \
		"dxp_standalone --help"; do
	if env -i PATH=/usr/bin:/bin HOME=/tmp SPYRE_BACKEND=embedded "$prefix"/bin/$command \
			>>"$log" 2>&1; then
		echo "ok - $command starts from $prefix"
	else
		echo "not ok - $command starts from $prefix"
		failed=1
	fi
done
[ "$failed" = 0 ] || tail -n 20 "$log" | sed 's/^/# /'
exit "$failed"

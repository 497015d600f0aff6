# SPDX-License-Identifier: MIT
# Building of packages, for scripts/package and the packages part of scripts/test.
# Sourced by bash after lib.sh.

version=$(cat "$top/VERSION")

# release_tarball: makes it in build/plain; sets $tarball.
release_tarball() {
	build_tree plain --enable-werror || return
	rm -f "$build"/spyre-*.tar.xz
	quietly dist make -C "$build" -s dist || return
	tarball=$build/spyre-$version.tar.xz
	[ -e "$tarball" ] || complain "make dist left no $tarball"
}

# package_folder KIND: an empty one; sets $folder.
package_folder() {
	folder=$top/build/package/$1
	rm -rf "$folder" && mkdir -p "$folder"
}

package_deb() {
	release_tarball && package_folder deb || return
	cp "$tarball" "$folder/spyre_$version.orig.tar.xz" && tar -xf "$tarball" -C "$folder" || return
	say "dpkg-buildpackage in build/package/deb/spyre-$version"
	quietly package-deb env -C "$folder/spyre-$version" \
		DEB_BUILD_OPTIONS="parallel=$jobs ${DEB_BUILD_OPTIONS-}" dpkg-buildpackage -us -uc
}

# SPDX-License-Identifier: MIT
# shellcheck shell=bash
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

# package_source KIND: the release as a source package has it; sets $folder.
package_source() {
	release_tarball && package_folder "$1" &&
		cp "$tarball" "$folder/spyre_$version.orig.tar.xz" && tar -xf "$tarball" -C "$folder"
}

# package_dsc: the source package alone, in build/package/dsc.
package_dsc() {
	package_source dsc && env -C "$folder" dpkg-source -b "spyre-$version"
}

package_deb() {
	package_source deb || return
	say "dpkg-buildpackage in build/package/deb/spyre-$version"
	quietly package-deb env -C "$folder/spyre-$version" \
		DEB_BUILD_OPTIONS="parallel=$jobs ${DEB_BUILD_OPTIONS-}" dpkg-buildpackage -us -uc
}

# archives of a Debian release, one "deb" line each, at the addresses that apt here uses.
archives_of() {
	local release archive
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	archive=$(archive_of "$release")
	[ -n "$archive" ] || return
	echo "deb $archive $1 main"
	archive=$(archive_of "$release-security")
	[ -z "$archive" ] || echo "deb $archive $1-security main"
}

# bare_root SUITE [PACKAGE...]: makes a Debian without a compiler, once, and sets $root. False,
# with the reason in $root_missing, if that is impossible. bare_release=1: without security updates.
bare_root() {
	local suite=$1 archives=${bare_release:-2}
	shift
	root=${XDG_CACHE_HOME:-$HOME/.cache}/spyre/root-$suite${1+-$(echo "$*" | tr ' ' -)}
	root+=${bare_release:+-release}
	can_mount || return
	[ ! -e "$root/complete" ] || return 0
	if ! command -v mmdebstrap >/dev/null; then
		root_missing="mmdebstrap is not installed (scripts/deps package)"
	elif [ -z "$(archives_of "$suite")" ]; then
		root_missing="apt here has no Debian archive"
	else
		say "making a bare Debian, $suite, in ${root%/*}, once"
		rm -rf "$root"
		mkdir -p "${root%/*}"
		archives_of "$suite" | sed -n "1,${archives}p" | quietly bare-root mmdebstrap --mode=root --variant=apt \
			${1+"--include=$*"} "$suite" "$root" - && touch "$root/complete" && return
		root_missing="mmdebstrap failed (build/log/bare-root.log)"
	fi
	return 1
}

can_mount() {
	root_missing=
	[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null && return
	root_missing="it takes root and a mount namespace"
	return 1
}

# pip_files: what pip on this machine takes packages from or trusts, as far as it is local: a
# root on it would not have the same archives otherwise. The index of a local archive, simple/,
# refers to files beside it.
pip_files() {
	local file
	for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" \
		$(python3 -m pip config list 2>/dev/null | grep -oE "/[^' ]+" | sed 's|^//*|/|' | sort -u); do
		[ ! -e "$file" ] || echo "${file%/simple}"
	done
}

# in_root ROOT SHARED COMMAND...: chroot to ROOT in a mount namespace, with a writable layer
# that is gone afterwards. The folder $state is mounted as /state, SHARED (unless it is
# empty) as /shared, $SPYRE_ROOT_CCACHE (unless it is empty) as /ccache. Packages that apt
# fetches are kept.
in_root() {
	local root=$1 shared=$2 cache=${XDG_CACHE_HOME:-$HOME/.cache}/spyre/archives
	shift 2
	mkdir -p "$state/layer" "$cache/partial"
	# An overlay may not lie on a layer of its own: with ROOT / it takes another file system.
	# shellcheck disable=SC2016
	unshare -m --propagation private sh -ec '
		root=$1 state=$2 cache=$3 shared=$4 ccache=$5 pip=$6 layer=$2/layer
		shift 6
		mount -t tmpfs tmpfs "$layer"
		mkdir "$layer/upper" "$layer/work" "$layer/root"
		mount -t overlay overlay \
			-o "lowerdir=$root,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
		cd "$layer/root"
		mkdir -p state shared var/cache/apt/archives
		mount --bind "$state" state
		[ -z "$shared" ] || mount --bind -o ro "$shared" shared
		mount --bind "$cache" var/cache/apt/archives
		[ -z "$ccache" ] || { mkdir ccache && mount --bind "$ccache" ccache; }
		for path in $pip; do
			[ -d "$path" ] && mkdir -p ".$path" || { mkdir -p ".${path%/*}" && : >>".$path"; }
			mount --bind -o ro "$path" ".$path"
		done
		mount -t proc proc proc
		mount --rbind /dev dev
		cp /etc/resolv.conf etc/resolv.conf 2>/dev/null || :
		exec chroot . env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' \
		sh "$root" "$state" "$cache" "$shared" "${SPYRE_ROOT_CCACHE-}" "$(pip_files)" "$@"
}

package_rpm() {
	local options=(--without debug)
	release_tarball && package_folder rpm || return
	# rpm knows only packages of its own: elsewhere configure finds what is missing.
	[ -d /var/lib/rpm ] && rpm -q gcc >/dev/null 2>&1 && options=() || options+=(--nodeps)
	[ -z "${RPM_BUILD_NCHECK-}" ] || options+=(--without check)
	say "rpmbuild in build/package/rpm"
	quietly package-rpm rpmbuild -ta "${options[@]}" --define "_topdir $folder/tree" \
		--define "_smp_build_ncpus $jobs" "$tarball" || return
	find "$folder/tree" -name '*.rpm' -exec mv {} "$folder" \;
}

# The wheel takes torch from the virtual environment of the tests, not from the network.
package_wheel() {
	. "$top/scripts/lib-torch.sh"
	build_tree plain --enable-werror && quietly plain-build make -C "$build" -j"$jobs" || return
	torch_venv || complain "$torch_missing" || return
	package_folder wheel && torch_source || return
	say "pip wheel in build/package/wheel"
	SPYRE_BUNDLE=1 quietly package-wheel torch_pip wheel --no-build-isolation --no-deps --no-index \
		-w "$folder" "$top/build/torch-src"
}

# package_state: a folder for what a test in a root needs; sets $state.
package_state() {
	mkdir -p "$top/build/package"
	state=$(mktemp -d "$top/build/package/state.XXXXXX") && mkdir "$state/debs" || return
	echo "$version" >"$state/version"
	cp "$top"/tests/packages/* "$top/tests/tap.sh" "$state"
	! ls "$top"/build/package/deb/*.deb >/dev/null 2>&1 || cp "$top"/build/package/deb/*.deb "$state/debs"
}

# test_in_root ROOT SHARED SCRIPT [FILE...] [-- ARGUMENT...]: runs a script of tests/packages,
# beside these files.
test_in_root() {
	local root=$1 shared=$2 script=$3 state status
	shift 3
	package_state || return
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		cp -r "$1" "$state" && shift || return
	done
	in_root "$root" "$shared" "/state/$script" "${@:2}"
	status=$?
	rm -rf "$state"
	return $status
}

# step_in_root WHAT STEP ROOT SHARED SCRIPT [FILE...]: its results are counted.
step_in_root() {
	local what=$1 name=$2
	shift 2
	say "$what"
	test_in_root "$@" >"$(log_file "$name")" 2>&1
	tally_tap $? "$name"
}

part_packages() {
	local kernel
	package_debs || return
	if bare_root trixie; then
		step_in_root "installing the packages in a bare Debian 13" packages-debian "$root" "" debian.sh
	else
		skip "packages in a bare Debian" "$root_missing"
	fi
	if kernel=$(kernel_version) && can_mount; then
		echo "$kernel" >"$top/build/package/kernel"
		step_in_root "dkms on $kernel" packages-dkms / "" dkms.sh "$top/build/package/kernel"
	else
		skip "dkms" "no Debian 6.12 kernel with headers (scripts/deps vm), or no mount namespace"
	fi
	part_packages_rpm
	part_packages_container
	part_packages_wheel
}

package_debs() {
	# make check is the unit part's; it would find the same here.
	DEB_BUILD_OPTIONS=nocheck step "dpkg-buildpackage makes binaries and a source package" \
		packages-deb package_deb || return
	step "lintian has no complaint" packages-lintian \
		lintian --allow-root --fail-on error,warning "$top"/build/package/deb/*.changes
	return 0
}

part_packages_rpm() {
	RPM_BUILD_NCHECK=1 step "rpmbuild takes packaging/spyre.spec" packages-rpm package_rpm || return
	step "the RPM packages have the expected files" packages-rpm-files rpm_files
	if bare_root trixie; then
		# shellcheck disable=SC2046
		step_in_root "installing the RPM packages in a bare Debian 13" packages-rpm-root "$root" "" rpm.sh \
			$(find "$top/build/package/rpm" -maxdepth 1 -name '*.rpm' ! -name '*.src.rpm')
	else
		skip "RPM packages in a bare Debian" "$root_missing"
	fi
}

# Runs the commands of packaging/Containerfile on this commit, as podman does.
part_packages_container() {
	local context=$top/build/package/context
	if ! git -C "$top" rev-parse HEAD >/dev/null 2>&1; then
		skip "packaging/Containerfile" "$top is no checkout"
	elif bare_root trixie; then
		rm -rf "$context" && mkdir -p "$context" && git -C "$top" archive HEAD | tar -x -C "$context"
		step_in_root "the commands of packaging/Containerfile in a bare Debian 13" packages-container \
			"$root" "" container.sh "$context"
	else
		skip "packaging/Containerfile" "$root_missing"
	fi
}

# rpm_has PACKAGE FILE: a file that its users start with.
rpm_has() {
	rpm -qpl "$top/build/package/rpm/$1-$version"-*.rpm | grep "$2\$" ||
		{ echo "$1 has no $2"; return 1; }
}

rpm_files() {
	rpm_has libspyre /libspyre.so.0 && rpm_has libspyre-devel /spyre/spyre.h &&
		rpm_has libspyre-devel '/man3/spyre_launch.3\(.gz\)\?' && rpm_has spyre-tools /bin/spyre-smi &&
		rpm_has spyre-tools /docs/unsupported.md &&
		rpm_has spyre-vdev-dkms "/src/spyre-vdev-$version/dkms.conf"
}

# A reader's day: what README and docs/install.md say, command by command. The root has what
# Debian's installer gives every machine, and git.
part_documents() {
	local checkout=$top/build/package/checkout
	if ! bare_root bookworm ca-certificates git sudo udev; then
		skip "commands of the documents" "$root_missing"
		return
	fi
	rm -rf "$checkout" && mkdir -p "$checkout"
	git clone -q --bare "$top" "$checkout/spyre.git" || return
	step_in_root "README and the tutorials in a bare Debian 12" documents-readme "$root" "$checkout" \
		documents.sh -- README.md docs/tutorial/first-{kernel,bundle,model}.md docs/python.md
	step_in_root "docs/install.md: packages" documents-packages "$root" "$checkout" \
		documents.sh -- "docs/install.md:## Packages:## Library"
	step_in_root "docs/install.md: from source" documents-source "$root" "$checkout" \
		documents.sh -- "docs/install.md:## Library"
}

part_packages_wheel() {
	local release
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	if ! torch_venv; then
		skip "wheel" "$torch_missing"
		return
	fi
	step "pip wheel makes a wheel with libspyre in it" packages-wheel package_wheel || return
	# The wheel is for this release's Python, and so is the bare system.
	if bare_root "$release" python3 python3-venv; then
		step_in_root "installing the wheel in a bare Debian with torch" packages-wheel-root "$root" \
			"$(echo "$top"/build/torch-venv/lib/python3*/site-packages)" wheel.sh \
			"$top"/build/package/wheel/*.whl
	else
		skip "the wheel in a bare Debian" "$root_missing"
	fi
}

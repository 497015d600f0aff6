#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes configure from a checkout.
set -e
cd "$(dirname "$0")"
mkdir -p m4 build-aux
# The TAP driver comes with Automake; AC_REQUIRE_AUX_FILE does not copy it.
cp "$(automake --print-libdir)/tap-driver.sh" build-aux/
exec autoreconf -fi

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs inside a bare Debian that has python3 and no compiler, with the wheel in /state
# and torch in /shared: installs the wheel and computes. Results are TAP on stdout.
set -u
work=/tmp
. /state/tap.sh

bare() {
	! command -v cc && ! command -v gcc && ! command -v c++ && ! ldconfig -p | grep -E 'spyre|yyjson'
}

# torch's folder may have a plugin of its own, which pip would take for the one of the wheel.
see_torch() { echo /shared >"$(echo /tmp/v/lib/python3*/site-packages)/torch.pth"; }
forget_torch() { rm /tmp/v/lib/python3*/site-packages/torch.pth; }

cat >/tmp/check.py <<'PYTHON'
import torch

a = torch.arange(64 * 64).reshape(64, 64) % 7
a = a.to(torch.float16)
product = (a.to("spyre") @ a.to("spyre")).cpu()
assert torch.equal(product, (a.float() @ a.float()).half()), product
total = (a.to("spyre") + a.to("spyre")).cpu()
assert torch.equal(total, a + a), total

import torch_spyre

assert torch_spyre.__file__.startswith("/tmp/v/"), torch_spyre.__file__
maps = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
for name in ("libspyre", "libyyjson", "libxxhash", "libdrm", "liburing"):
    found = [path for path in maps if name in path]
    assert found and all("/tmp/v/" in path for path in found), (name, found)
PYTHON

try "the root has no compiler and no libspyre" bare
try "python3 -m venv" python3 -m venv /tmp/v
try "pip installs the wheel" /tmp/v/bin/pip install --no-deps --no-index /state/*.whl
see_torch
try "import torch computes on the card, with the libraries of the wheel" \
	env SPYRE_BACKEND=embedded /tmp/v/bin/python /tmp/check.py
forget_torch
try "pip uninstalls it" /tmp/v/bin/pip uninstall -y torch_spyre
try "pip uninstall leaves no file" sh -c '! find /tmp/v -ipath "*spyre*" | grep .'
exit "$failed"

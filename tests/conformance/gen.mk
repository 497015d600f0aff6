# SPDX-License-Identifier: MIT
# The generator of bundles; each line is one module.
EXTRA_DIST += tests/conformance/gen/__init__.py tests/conformance/gen/__main__.py
EXTRA_DIST += tests/conformance/gen/apart.py tests/conformance/gen/bundle.py
EXTRA_DIST += tests/conformance/gen/divide.py
EXTRA_DIST += tests/conformance/gen/formats.py
EXTRA_DIST += tests/conformance/gen/frame.py
EXTRA_DIST += tests/conformance/gen/indirect.py
EXTRA_DIST += tests/conformance/gen/integer.py
EXTRA_DIST += tests/conformance/gen/kept.py
EXTRA_DIST += tests/conformance/gen/padded.py
EXTRA_DIST += tests/conformance/gen/pointwise.py
EXTRA_DIST += tests/conformance/gen/sdsc.py
EXTRA_DIST += tests/conformance/gen/shuffle.py
EXTRA_DIST += tests/conformance/gen/symbolic.py
EXTRA_DIST += tests/conformance/gen/tensors.py
EXTRA_DIST += tests/conformance/gen/matmul.py
EXTRA_DIST += tests/conformance/gen/move.py
EXTRA_DIST += tests/conformance/gen/reduce.py
EXTRA_DIST += tests/conformance/gen/window.py tests/conformance/gen/places.py
EXTRA_DIST += tests/conformance/card.py
EXTRA_DIST += tests/conformance/gen/chain.py
EXTRA_DIST += tests/conformance/gen/edge.py
EXTRA_DIST += tests/conformance/gen/loops.py
EXTRA_DIST += tests/conformance/gen/quant.py tests/conformance/gen/packed.py
EXTRA_DIST += tests/conformance/form.py

# The other end of run.py --serve, of which scripts/test cross has one for each architecture.
check_PROGRAMS += tests/conformance/serve
TESTS += tests/conformance/serve.sh
EXTRA_DIST += tests/conformance/serve.sh
tests_conformance_serve_SOURCES = tests/conformance/serve.c
tests_conformance_serve_LDADD = libspyre/libspyre.la

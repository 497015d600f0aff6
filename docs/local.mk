# SPDX-License-Identifier: MIT
# Error texts refer to these files as docs/NAME.md, and they link to each other.
docsdir = $(docdir)/docs
dist_docs_DATA =
dist_docs_DATA += docs/architecture.md
dist_docs_DATA += docs/bundles.md
dist_docs_DATA += docs/control-blocks.md
dist_docs_DATA += docs/distributed.md
dist_docs_DATA += docs/error-and-reset.md
dist_docs_DATA += docs/isa.md
dist_docs_DATA += docs/numerics.md
dist_docs_DATA += docs/performance.md
dist_docs_DATA += docs/planning.md
dist_docs_DATA += docs/portability.md
dist_docs_DATA += docs/python.md
dist_docs_DATA += docs/pytorch.md
dist_docs_DATA += docs/sdsc.md
dist_docs_DATA += docs/testing.md
dist_docs_DATA += docs/threat-model.md
dist_docs_DATA += docs/timing.md
dist_docs_DATA += docs/torch-compile.md
dist_docs_DATA += docs/observability.md
dist_docs_DATA += docs/tracing.md
dist_docs_DATA += docs/uapi.md
dist_docs_DATA += docs/vllm.md
dist_docs_DATA += docs/unsupported.md
dist_docs_DATA += docs/adding-an-operation.md
dist_docs_DATA += docs/glossary.md
dist_docs_DATA += docs/index.md
dist_docs_DATA += docs/install.md
dist_docs_DATA += docs/migration.md
dist_docs_DATA += docs/troubleshooting.md
dist_docs_DATA += docs/upstream.md
dist_docs_DATA += docs/versioning.md

tutorialdir = $(docsdir)/tutorial
dist_tutorial_DATA = docs/tutorial/first-bundle.md
dist_tutorial_DATA += docs/tutorial/first-kernel.md
dist_tutorial_DATA += docs/tutorial/first-model.md

EXTRA_DIST += docs/images/analyze.png docs/images/parts.svg
EXTRA_DIST += docs/images/scaling.svg docs/images/speed.svg
EXTRA_DIST += .ci/run
EXTRA_DIST += scripts/bench
EXTRA_DIST += scripts/chart
EXTRA_DIST += scripts/demo
EXTRA_DIST += scripts/demo-run
EXTRA_DIST += scripts/deps
EXTRA_DIST += scripts/docs
EXTRA_DIST += scripts/lib-lint.sh
EXTRA_DIST += scripts/lib-tap.sh
EXTRA_DIST += scripts/lib-torch.sh
EXTRA_DIST += scripts/lib-vllm.sh
EXTRA_DIST += scripts/lib-cross.sh scripts/lib-cross-kernel.sh scripts/lib-cross-torch.sh
EXTRA_DIST += scripts/lib.sh
EXTRA_DIST += scripts/mkman
EXTRA_DIST += scripts/numerics
EXTRA_DIST += scripts/test
EXTRA_DIST += scripts/debug-kernel scripts/emulate scripts/newkernel scripts/vm
EXTRA_DIST += tests/vm/run-all.sh tests/vm/smoke.sh tests/vm/arm64.sh
EXTRA_DIST += LICENSES/GPL-2.0-only.txt
EXTRA_DIST += LICENSES/MIT.txt

# Manual pages of the public functions, generated from the headers' comments.
man3dir = $(mandir)/man3
man3_stamp = docs/man3/stamp
CLEANFILES += $(man3_stamp)

man3_pages = docs/man/libspyre.pages
EXTRA_DIST += $(man3_pages)
dist_man_MANS += docs/man/spyre-environment.7

$(man3_stamp): scripts/mkman $(man3_pages) $(spyreinclude_HEADERS)
	$(AM_V_GEN)rm -rf docs/man3 && \
	$(PYTHON) $(top_srcdir)/scripts/mkman docs/man3 $(top_srcdir)/$(man3_pages) \
		`for h in $(spyreinclude_HEADERS); do \
			test -f $$h || h=$(top_srcdir)/$$h; echo $$h; done` && \
	: > $@

if HAVE_PYTHON
all-local: $(man3_stamp)

install-data-local: $(man3_stamp)
	$(MKDIR_P) '$(DESTDIR)$(man3dir)'
	$(INSTALL_DATA) docs/man3/*.3 '$(DESTDIR)$(man3dir)'

uninstall-local:
	-cd '$(DESTDIR)$(man3dir)' && rm -f libspyre.3 spyre_*.3
endif

clean-local:
	rm -rf docs/man3

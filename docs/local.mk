# SPDX-License-Identifier: MIT
# Manual pages of the public functions, made from the headers' comments.
EXTRA_DIST += docs/architecture.md docs/testing.md docs/isa.md docs/numerics.md \
	docs/unsupported.md docs/planning.md .ci/run scripts/bench scripts/demo scripts/demo-run scripts/deps \
	scripts/lib-lint.sh scripts/lib-tap.sh scripts/lib.sh scripts/mkman scripts/test scripts/vm \
	tests/vm/run-all.sh LICENSES/GPL-2.0-only.txt LICENSES/MIT.txt

man3dir = $(mandir)/man3
man3_stamp = docs/man3/stamp
CLEANFILES += $(man3_stamp)

$(man3_stamp): scripts/mkman $(spyreinclude_HEADERS)
	$(AM_V_GEN)rm -rf docs/man3 && \
	$(PYTHON) $(top_srcdir)/scripts/mkman docs/man3 \
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

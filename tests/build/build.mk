# SPDX-License-Identifier: MIT
# Tests of the build's products: exports, headers, manual pages, installed tree.
build_tests = tests/build/completions.sh tests/build/deps.sh tests/build/emulate.sh tests/build/flags.sh tests/build/headers.sh tests/build/manpages.sh tests/build/symbols.sh
TESTS += $(build_tests)
EXTRA_DIST += $(build_tests) tests/tap.sh tests/build/consumer.c tests/build/installed.sh \
	tests/build/install-root.sh tests/python/test_spyre.py
EXTRA_DIST += python/pyproject.toml python/setup.py python/spyre/__init__.py \
	python/spyre/build_library.py

installcheck-local:
	@CC='$(CC)' SPYRE_SRCDIR='$(abs_top_srcdir)' SPYRE_BUILDDIR='$(abs_top_builddir)' \
	PKG_CONFIG='$(PKG_CONFIG)' SPYRE_ROOT='$(DESTDIR)' SPYRE_SAN_CFLAGS='$(SAN_CFLAGS)' \
	$(SHELL) $(srcdir)/tests/build/installed.sh \
		'$(DESTDIR)$(pkgconfigdir)' '$(DESTDIR)$(mandir)' '$(DESTDIR)$(bindir)' \
		'$(DESTDIR)$(docdir)'

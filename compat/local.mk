# SPDX-License-Identifier: MIT
# Libraries that the public PyTorch front-end is built against (docs/upstream.md). They use
# the public headers and the public library only.
#
# One fragment per library, flex.mk, aiupti.mk and comms.mk. A library FOO has its headers
# in compat/include, its sources in compat/src and its tests in compat/tests, and a fragment
# that adds, within 'if COMPAT',
#
#	compatlib_LTLIBRARIES += compat/libFOO.la
#	compat_libFOO_la_SOURCES = compat/src/FOO.cpp ...
#	compat_libFOO_la_CPPFLAGS = $(compat_cppflags)
#	compat_libFOO_la_CXXFLAGS = $(compat_cxxflags)
#	compat_libFOO_la_LDFLAGS = $(compat_ldflags)
#	compat_libFOO_la_LIBADD = libspyre/libspyre.la
#	FOOheaderdir = $(compatincludedir)/FOO
#	FOOheader_HEADERS = compat/include/FOO/foo.h
#
# and its tests to $(compat_tests), built with $(compat_test_cppflags),
# $(compat_test_cxxflags) and $(compat_test_ldadd). Symbols are hidden unless they are
# declared with COMPAT_EXPORT, of compat/include/flex/export.h. Files that are not built go in
# EXTRA_DIST, outside the condition.
compatdir = $(libdir)/spyre-compat
compatincludedir = $(compatdir)/include
compatlibdir = $(compatdir)/lib

compatlib_LTLIBRARIES =
compat_tests =
compat_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/compat/include
compat_cxxflags = -std=c++20 -fvisibility=hidden -fvisibility-inlines-hidden -pthread \
	$(WARN_CXXFLAGS) $(SAN_CFLAGS) $(HARDEN_CFLAGS)
# The front-end links with -lflex and sets no run path; $ORIGIN/../.. is $(libdir), where
# libspyre is.
compat_ldflags = $(AM_LDFLAGS) -avoid-version -Wl,--enable-new-dtags \
	-Wl,-rpath,'$$ORIGIN/../..' -pthread
if !SANITIZED
compat_ldflags += -Wl,-z,defs
endif

compat_test_cppflags = $(compat_cppflags) $(CHECK_CFLAGS)
compat_test_cxxflags = $(compat_cxxflags)
compat_test_ldadd = compat/libflex.la libspyre/libspyre.la $(CHECK_LIBS)

if COMPAT
bin_SCRIPTS = compat/spyre-compat-env
endif
CLEANFILES += compat/spyre-compat-env
EXTRA_DIST += compat/README.md compat/spyre-compat-env.in compat/tests/installed.cpp

# The folders are known to make only, since configure leaves ${exec_prefix} in them.
compat/spyre-compat-env: compat/spyre-compat-env.in Makefile
	$(AM_V_GEN)$(MKDIR_P) compat && \
	sed -e 's|@compatdir''@|$(compatdir)|' -e 's|@bindir''@|$(bindir)|' \
		$(srcdir)/compat/spyre-compat-env.in >$@.tmp && \
	chmod +x $@.tmp && mv $@.tmp $@

include compat/flex.mk
include compat/aiupti.mk
include compat/comms.mk

if HAVE_CHECK
check_PROGRAMS += $(compat_tests)
TESTS += $(compat_tests)
endif

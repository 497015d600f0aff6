# SPDX-License-Identifier: MIT
# Layouts, transfers, the SDSC compiler and the builder.
if HAVE_CHECK
sdsc_test_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) $(YYJSON_CFLAGS)
sdsc_test_libs = libspyre/libcore.la $(CHECK_LIBS) $(YYJSON_LIBS)

check_PROGRAMS += tests/unit/layout_vectors
tests_unit_layout_vectors_CFLAGS = $(sdsc_test_cflags)
tests_unit_layout_vectors_LDADD = $(sdsc_test_libs)
TESTS += tests/unit/layout_vectors

check_PROGRAMS += tests/unit/layout_transfer
tests_unit_layout_transfer_CFLAGS = $(sdsc_test_cflags)
tests_unit_layout_transfer_LDADD = $(sdsc_test_libs)
TESTS += tests/unit/layout_transfer

check_PROGRAMS += tests/unit/sdsc_build
tests_unit_sdsc_build_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_build_LDADD = $(sdsc_test_libs)
TESTS += tests/unit/sdsc_build

check_PROGRAMS += tests/unit/sdsc_compile
tests_unit_sdsc_compile_SOURCES = tests/unit/sdsc_compile.c tests/unit/sdsc_card.c \
	tests/unit/sdsc_card.h
tests_unit_sdsc_compile_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_compile_LDADD = $(sdsc_test_libs) $(LIBM)
TESTS += tests/unit/sdsc_compile

check_PROGRAMS += tests/unit/sdsc_fuzz
tests_unit_sdsc_fuzz_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_fuzz_LDADD = $(sdsc_test_libs)
TESTS += tests/unit/sdsc_fuzz

check_PROGRAMS += tests/unit/sdsc_limits
tests_unit_sdsc_limits_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_limits_LDADD = $(sdsc_test_libs)
TESTS += tests/unit/sdsc_limits
endif
EXTRA_DIST += tests/conformance/run.py tests/conformance/ORIGIN.md
EXTRA_DIST += tests/conformance/bundles
include tests/conformance/gen.mk

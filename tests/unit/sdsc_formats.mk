# SPDX-License-Identifier: MIT
# Products, packs and conversions of the SDSC compiler.
EXTRA_DIST += tests/unit/sdsc_bundle.h
if HAVE_CHECK
sdsc_format_tests = tests/unit/sdsc_matmul tests/unit/sdsc_quant
check_PROGRAMS += $(sdsc_format_tests)
TESTS += $(sdsc_format_tests)
tests_unit_sdsc_matmul_SOURCES = tests/unit/sdsc_matmul.c tests/unit/sdsc_bundle.c \
	tests/unit/sdsc_bundle.h
tests_unit_sdsc_matmul_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_matmul_LDADD = $(sdsc_test_libs) $(LIBM)
tests_unit_sdsc_quant_SOURCES = tests/unit/sdsc_quant.c tests/unit/sdsc_bundle.c \
	tests/unit/sdsc_bundle.h
tests_unit_sdsc_quant_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_quant_LDADD = $(sdsc_test_libs) $(LIBM)
endif

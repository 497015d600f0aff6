# SPDX-License-Identifier: MIT
model_test_ldadd = tests/unit/libmodeltest.la model/libmodel.la $(CHECK_LIBS) $(LIBM) -lpthread
EXTRA_DIST += tests/unit/model_util.h tests/unit/model_reference.h

if HAVE_CHECK
check_LTLIBRARIES += tests/unit/libmodeltest.la
tests_unit_libmodeltest_la_SOURCES = \
	tests/unit/model_util.c tests/unit/model_util.h \
	tests/unit/model_reference.c tests/unit/model_reference.h
tests_unit_libmodeltest_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)

model_tests = tests/unit/model_format tests/unit/model_verify tests/unit/model_exec \
	tests/unit/model_dma tests/unit/model_fuzz tests/unit/model_functions \
	tests/unit/model_timing
check_PROGRAMS += $(model_tests)
TESTS += $(model_tests)
tests_unit_model_format_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_format_LDADD = $(model_test_ldadd)
tests_unit_model_verify_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_verify_LDADD = $(model_test_ldadd)
tests_unit_model_exec_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_exec_LDADD = $(model_test_ldadd)
tests_unit_model_dma_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_dma_LDADD = $(model_test_ldadd)
tests_unit_model_fuzz_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_fuzz_LDADD = $(model_test_ldadd)
tests_unit_model_functions_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_functions_LDADD = $(model_test_ldadd)
tests_unit_model_timing_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_timing_LDADD = $(model_test_ldadd)
endif

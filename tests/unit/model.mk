# SPDX-License-Identifier: MIT
model_test_ldadd = tests/unit/libmodeltest.la model/libmodel.la $(CHECK_LIBS) $(LIBM) -lpthread
EXTRA_DIST += tests/order.h tests/unit/suite.h tests/unit/model_util.h tests/unit/model_build.h \
	tests/unit/model_generate.h tests/unit/model_reference.h tests/unit/model_checked.h

if HAVE_CHECK
check_LTLIBRARIES += tests/unit/libmodeltest.la
tests_unit_libmodeltest_la_SOURCES = \
	tests/unit/model_util.c tests/unit/model_util.h \
	tests/unit/model_build.c tests/unit/model_build.h \
	tests/unit/model_generate.c tests/unit/model_generate.h \
	tests/unit/model_reference.c tests/unit/model_reference.h \
	tests/unit/model_checked.c tests/unit/model_checked.h
tests_unit_libmodeltest_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)

model_tests = tests/unit/model_boxes tests/unit/model_format tests/unit/model_verify \
	tests/unit/model_exec tests/unit/model_dma tests/unit/model_fuzz tests/unit/model_functions \
	tests/unit/model_units tests/unit/model_programs tests/unit/model_verify_instr \
	tests/unit/model_timing tests/unit/model_codecs tests/unit/model_group \
	tests/unit/model_indirect tests/unit/model_integers tests/unit/model_kept \
	tests/unit/model_peer tests/unit/model_power tests/unit/model_products tests/unit/model_tables
check_PROGRAMS += $(model_tests)
TESTS += $(model_tests)
tests_unit_model_boxes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_boxes_LDADD = $(model_test_ldadd)
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
tests_unit_model_peer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_peer_LDADD = $(model_test_ldadd)
tests_unit_model_power_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_power_LDADD = $(model_test_ldadd)
tests_unit_model_products_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_products_LDADD = $(model_test_ldadd)
tests_unit_model_programs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_programs_LDADD = $(model_test_ldadd)
tests_unit_model_verify_instr_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_verify_instr_LDADD = $(model_test_ldadd)
tests_unit_model_group_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_group_LDADD = $(model_test_ldadd)
tests_unit_model_indirect_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_indirect_LDADD = $(model_test_ldadd)
tests_unit_model_integers_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_integers_LDADD = $(model_test_ldadd)
tests_unit_model_kept_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_kept_LDADD = $(model_test_ldadd)
tests_unit_model_tables_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_tables_LDADD = $(model_test_ldadd)
tests_unit_model_units_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_units_LDADD = $(model_test_ldadd)
tests_unit_model_timing_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_timing_LDADD = $(model_test_ldadd)
tests_unit_model_codecs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_model_codecs_LDADD = $(model_test_ldadd)
endif

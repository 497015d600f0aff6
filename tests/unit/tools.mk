# SPDX-License-Identifier: MIT
# Tests of the spyre command.
tools_checks = tests/unit/tools_finding tests/unit/tools_npy tests/unit/tools_shape \
	tests/unit/tools_tensor
if HAVE_CHECK
check_PROGRAMS += $(tools_checks)
TESTS += $(tools_checks)
endif
tools_check_cppflags = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(YYJSON_CFLAGS)
tools_check_ldadd = tools/spyre/libcommand.la libspyre/libspyre.la $(CHECK_LIBS)
tests_unit_tools_finding_SOURCES = tests/unit/tools_finding.c tests/unit/tools_check.h
tests_unit_tools_finding_CPPFLAGS = $(tools_check_cppflags)
tests_unit_tools_finding_LDADD = $(tools_check_ldadd)
tests_unit_tools_npy_SOURCES = tests/unit/tools_npy.c tests/unit/tools_check.h
tests_unit_tools_npy_CPPFLAGS = $(tools_check_cppflags)
tests_unit_tools_npy_LDADD = $(tools_check_ldadd)
tests_unit_tools_shape_SOURCES = tests/unit/tools_shape.c tests/unit/tools_check.h
tests_unit_tools_shape_CPPFLAGS = $(tools_check_cppflags)
tests_unit_tools_shape_LDADD = $(tools_check_ldadd)
tests_unit_tools_tensor_SOURCES = tests/unit/tools_tensor.c tests/unit/tools_check.h
tests_unit_tools_tensor_CPPFLAGS = $(tools_check_cppflags)
tests_unit_tools_tensor_LDADD = $(tools_check_ldadd) $(LIBM)

tools_scripts = tests/unit/tools_usage.sh tests/unit/tools_launch.sh tests/unit/tools_digits.sh \
	tests/unit/tools_estimate.sh tests/unit/tools_explain.sh tests/unit/tools_perf.sh \
	tests/unit/tools_trace.sh \
	tests/unit/tools_analyze.sh tests/unit/tools_analyze_page.sh
TESTS += $(tools_scripts)
EXTRA_DIST += $(tools_scripts)

# SPDX-License-Identifier: MIT
# libaiupti: activity records for the profiler of the front-end. libflex reports its calls
# to whatever recorder is registered (records.h).
if COMPAT
compat_libflex_la_SOURCES += compat/src/records.cpp
compat_libflex_la_SOURCES += compat/src/records.h

compatlib_LTLIBRARIES += compat/libaiupti.la
compat_libaiupti_la_SOURCES = compat/src/aiupti.cpp compat/src/records.h
compat_libaiupti_la_CPPFLAGS = $(compat_cppflags)
compat_libaiupti_la_CXXFLAGS = $(compat_cxxflags)
# Its recorder may be called as long as the process lives.
compat_libaiupti_la_LDFLAGS = $(compat_ldflags) -Wl,-z,nodelete
compat_libaiupti_la_LIBADD = compat/libflex.la libspyre/libspyre.la

compataiuptidir = $(compatincludedir)/libaiupti
compataiupti_HEADERS = compat/include/libaiupti/aiupti_activity.h
compataiupti_HEADERS += compat/include/libaiupti/aiupti_runtime_cbid.h
endif

if COMPAT
if HAVE_CHECK
compat_tests += compat/tests/aiupti
compat_tests_aiupti_SOURCES = compat/tests/aiupti.cpp compat/tests/bundle.hpp
compat_tests_aiupti_SOURCES += compat/tests/check.hpp
compat_tests_aiupti_CPPFLAGS = $(compat_test_cppflags) $(YYJSON_CFLAGS)
compat_tests_aiupti_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_aiupti_LDADD = compat/libaiupti.la $(compat_test_ldadd) $(YYJSON_LIBS)
endif
endif

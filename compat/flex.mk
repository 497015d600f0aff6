# SPDX-License-Identifier: MIT
# libflex: memory, streams, copies, launches and formats; libsendnn and
# libsendnn_interface, of which the front-end uses no symbol, but which it links with.
if COMPAT
compatlib_LTLIBRARIES += compat/libflex.la
compat_libflex_la_SOURCES =
compat_libflex_la_SOURCES += compat/src/boxes.cpp
compat_libflex_la_SOURCES += compat/src/boxes.hpp
compat_libflex_la_SOURCES += compat/src/correction.cpp
compat_libflex_la_SOURCES += compat/src/error.hpp
compat_libflex_la_SOURCES += compat/src/formats.cpp
compat_libflex_la_SOURCES += compat/src/formats.hpp
compat_libflex_la_SOURCES += compat/src/memory.cpp
compat_libflex_la_SOURCES += compat/src/program.cpp
compat_libflex_la_SOURCES += compat/src/program.hpp
compat_libflex_la_SOURCES += compat/src/region.hpp
compat_libflex_la_SOURCES += compat/src/runtime.cpp
compat_libflex_la_SOURCES += compat/src/streams.cpp
compat_libflex_la_CPPFLAGS = $(compat_cppflags) $(YYJSON_CFLAGS)
compat_libflex_la_CXXFLAGS = $(compat_cxxflags)
compat_libflex_la_LDFLAGS = $(compat_ldflags)
compat_libflex_la_LIBADD = libspyre/libspyre.la $(YYJSON_LIBS)

compatlib_LTLIBRARIES += compat/libsendnn.la compat/libsendnn_interface.la
compat_libsendnn_la_SOURCES = compat/src/empty.c
compat_libsendnn_la_LDFLAGS = $(compat_ldflags)
compat_libsendnn_interface_la_SOURCES = compat/src/empty.c
compat_libsendnn_interface_la_LDFLAGS = $(compat_ldflags)

compatflexdir = $(compatincludedir)/flex
compatflex_HEADERS = compat/include/flex/export.h compat/include/flex/flex.hpp
compatsendefsdir = $(compatincludedir)/util/sendefs
compatsendefs_HEADERS = compat/include/util/sendefs/sendefs.h
compathostdir = $(compatincludedir)/spyrecode-host-functions
compathost_HEADERS = compat/include/spyrecode-host-functions/fast_process_hcm.h
compathost_HEADERS += compat/include/spyrecode-host-functions/processSpyreCodeArtifacts.h
compathost_HEADERS += compat/include/spyrecode-host-functions/spyrecode.h
compatconvertdir = $(compathostdir)/sendataconvert
compatconvert_HEADERS = compat/include/spyrecode-host-functions/sendataconvert/sen_data_convert.h
compatconvert_HEADERS += compat/include/spyrecode-host-functions/sendataconvert/sen_host_ops.h
endif

if COMPAT
if HAVE_CHECK
compat_tests += compat/tests/boxes
compat_tests_boxes_SOURCES = compat/tests/boxes.cpp compat/tests/check.hpp
compat_tests_boxes_CPPFLAGS = $(compat_test_cppflags)
compat_tests_boxes_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_boxes_LDADD = $(compat_test_ldadd)

compat_tests += compat/tests/correction
compat_tests_correction_SOURCES = compat/tests/correction.cpp compat/tests/check.hpp
compat_tests_correction_CPPFLAGS = $(compat_test_cppflags)
compat_tests_correction_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_correction_LDADD = $(compat_test_ldadd)

compat_tests += compat/tests/formats
compat_tests_formats_SOURCES = compat/tests/formats.cpp compat/tests/check.hpp
compat_tests_formats_CPPFLAGS = $(compat_test_cppflags)
compat_tests_formats_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_formats_LDADD = $(compat_test_ldadd)

compat_tests += compat/tests/launch
compat_tests_launch_SOURCES = compat/tests/launch.cpp compat/tests/bundle.hpp
compat_tests_launch_SOURCES += compat/tests/check.hpp
compat_tests_launch_CPPFLAGS = $(compat_test_cppflags) $(YYJSON_CFLAGS)
compat_tests_launch_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_launch_LDADD = $(compat_test_ldadd) $(YYJSON_LIBS)

compat_tests += compat/tests/runtime
compat_tests_runtime_SOURCES = compat/tests/runtime.cpp compat/tests/check.hpp
compat_tests_runtime_CPPFLAGS = $(compat_test_cppflags)
compat_tests_runtime_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_runtime_LDADD = $(compat_test_ldadd)
endif
endif

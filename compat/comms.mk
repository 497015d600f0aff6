# SPDX-License-Identifier: MIT
# libspyre_comms: collective operations for the distributed backend of the front-end.
if COMPAT
compatlib_LTLIBRARIES += compat/libspyre_comms.la
compat_libspyre_comms_la_SOURCES =
compat_libspyre_comms_la_SOURCES += compat/src/comms.cpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_collectives.cpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_collectives.hpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_device.cpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_device.hpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_fd.hpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_group.cpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_group.hpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_place.cpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_thread.hpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_transport.cpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_transport.hpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_types.cpp
compat_libspyre_comms_la_SOURCES += compat/src/comms_types.hpp
compat_libspyre_comms_la_CPPFLAGS = $(compat_cppflags)
compat_libspyre_comms_la_CXXFLAGS = $(compat_cxxflags)
compat_libspyre_comms_la_LDFLAGS = $(compat_ldflags)
compat_libspyre_comms_la_LIBADD = compat/libflex.la libspyre/libspyre.la

compatcommsdir = $(compatincludedir)
compatcomms_HEADERS = compat/include/spyre_comms.hpp compat/include/spyre_comms_tensor.hpp
endif

if COMPAT
if HAVE_CHECK
compat_tests += compat/tests/comms
compat_tests_comms_SOURCES = compat/tests/comms.cpp compat/tests/check.hpp
compat_tests_comms_SOURCES += compat/tests/comms_ranks.cpp compat/tests/comms_ranks.hpp
compat_tests_comms_CPPFLAGS = $(compat_test_cppflags)
compat_tests_comms_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_comms_LDADD = compat/libspyre_comms.la $(compat_test_ldadd) libspyre/libspyre.la

# It takes part in a group without the library's checks of what it sends.
compat_tests += compat/tests/comms_peer
compat_tests_comms_peer_SOURCES = compat/tests/comms_peer.cpp compat/tests/check.hpp
compat_tests_comms_peer_SOURCES += compat/tests/comms_ranks.cpp compat/tests/comms_ranks.hpp
compat_tests_comms_peer_SOURCES += compat/src/comms_group.cpp compat/src/comms_group.hpp
compat_tests_comms_peer_SOURCES += compat/src/comms_place.cpp
compat_tests_comms_peer_SOURCES += compat/src/comms_transport.cpp compat/src/comms_transport.hpp
compat_tests_comms_peer_SOURCES += compat/src/comms_types.cpp compat/src/comms_types.hpp
compat_tests_comms_peer_CPPFLAGS = $(compat_test_cppflags) -I$(top_srcdir)/compat/src
compat_tests_comms_peer_CXXFLAGS = $(compat_test_cxxflags)
compat_tests_comms_peer_LDADD = compat/libspyre_comms.la $(compat_test_ldadd)
compat_tests_comms_peer_LDADD += libspyre/libspyre.la
endif
endif

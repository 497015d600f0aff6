# SPDX-License-Identifier: MIT
# Tests of what the PyTorch plugin has without torch.
if COMPAT
if HAVE_CHECK
check_PROGRAMS += tests/unit/plugin_elements
TESTS += tests/unit/plugin_elements
tests_unit_plugin_elements_SOURCES = tests/unit/plugin_elements.cpp tests/unit/suite.h
tests_unit_plugin_elements_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_plugin_elements_CXXFLAGS = -std=c++20 $(WARN_CXXFLAGS) $(SAN_CFLAGS) $(HARDEN_CFLAGS)
tests_unit_plugin_elements_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(LIBM)
endif
endif

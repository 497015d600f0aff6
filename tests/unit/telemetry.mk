# SPDX-License-Identifier: MIT
# Telemetry, spyre-smi, and the parts of the drm backend that need no card.
if HAVE_CHECK
telemetry_tests = tests/unit/drm tests/unit/drm_device tests/unit/exporter tests/unit/smi \
	tests/unit/smi_diag tests/unit/telemetry_events \
	tests/unit/telemetry_kernel tests/unit/telemetry_metrics tests/unit/telemetry_page
check_PROGRAMS += $(telemetry_tests)
TESTS += $(telemetry_tests)
if HAVE_NCURSES
check_PROGRAMS += tests/unit/smi_top
TESTS += tests/unit/smi_top
tests_unit_smi_top_SOURCES = tests/unit/smi_top.c tests/unit/fake_cards.c tests/unit/fake_cards.h \
	tests/unit/runtime_check.h tests/unit/terminal.c tests/unit/terminal.h
tests_unit_smi_top_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_smi_top_LDADD = libspyre/libspyre.la $(CHECK_LIBS) -lutil
endif

tests_unit_drm_SOURCES = tests/unit/drm.c
tests_unit_drm_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(LIBDRM_CFLAGS)
tests_unit_drm_LDADD = libspyre/libcore.la $(CHECK_LIBS)
tests_unit_drm_device_SOURCES = tests/unit/drm_device.c
tests_unit_drm_device_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(LIBDRM_CFLAGS)
tests_unit_drm_device_LDADD = libspyre/libcore.la $(CHECK_LIBS)
tests_unit_exporter_SOURCES = tests/unit/exporter.c tests/unit/fake_cards.c tests/unit/fake_cards.h
tests_unit_exporter_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_exporter_LDADD = $(CHECK_LIBS)
tests_unit_smi_SOURCES = tests/unit/smi.c tests/unit/fake_cards.c tests/unit/fake_cards.h
tests_unit_smi_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(YYJSON_CFLAGS)
tests_unit_smi_LDADD = $(CHECK_LIBS) $(YYJSON_LIBS)
tests_unit_smi_diag_SOURCES = tests/unit/smi_diag.c tools/smi/diag.c tools/smi/diag.h \
	tools/smi/diag_tests.c
tests_unit_smi_diag_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(YYJSON_CFLAGS)
tests_unit_smi_diag_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(YYJSON_LIBS)
tests_unit_smi_diag_LDFLAGS = -Wl,--wrap=spyre_memcpy_d2h,--wrap=spyre_copy_d2h \
	-Wl,--wrap=spyre_memcpy_peer_async,--wrap=spyre_launch
tests_unit_telemetry_events_SOURCES = tests/unit/telemetry_events.c \
	tests/unit/fake_cards.c tests/unit/fake_cards.h
tests_unit_telemetry_events_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_telemetry_events_LDADD = libspyre/libcore.la $(CHECK_LIBS)
tests_unit_telemetry_kernel_SOURCES = tests/unit/telemetry_kernel.c \
	tests/unit/fake_cards.c tests/unit/fake_cards.h
tests_unit_telemetry_kernel_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_telemetry_kernel_LDADD = libspyre/libcore.la $(CHECK_LIBS)
tests_unit_telemetry_metrics_SOURCES = tests/unit/telemetry_metrics.c tests/unit/runtime_check.h
tests_unit_telemetry_metrics_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(YYJSON_CFLAGS)
tests_unit_telemetry_metrics_LDADD = libspyre/libspyre.la $(CHECK_LIBS) $(YYJSON_LIBS)
tests_unit_telemetry_page_SOURCES = tests/unit/telemetry_page.c \
	tests/unit/fake_cards.c tests/unit/fake_cards.h
tests_unit_telemetry_page_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
tests_unit_telemetry_page_LDADD = libspyre/libcore.la $(CHECK_LIBS)
endif
TESTS += tests/unit/smi-help.sh
EXTRA_DIST += tests/unit/smi-help.sh tests/unit/metrics_clients.py tests/unit/node_exporter.py

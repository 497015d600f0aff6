# SPDX-License-Identifier: MIT
bin_PROGRAMS += tools/spyre-smi
tools_spyre_smi_SOURCES = \
	tools/links.c \
	tools/links.h \
	tools/markup.c \
	tools/markup.h \
	tools/output.c \
	tools/output.h \
	tools/spelling.c \
	tools/spelling.h \
	tools/smi/app_fields.c \
	tools/smi/counter_fields.c \
	tools/smi/counter_fields.h \
	tools/smi/diag.c \
	tools/smi/diag.h \
	tools/smi/diag_tests.c \
	tools/smi/events.c \
	tools/smi/events.h \
	tools/smi/field_text.c \
	tools/smi/fields.c \
	tools/smi/host.c \
	tools/smi/json.h \
	tools/smi/main.c \
	tools/smi/monitor.c \
	tools/smi/monitor.h \
	tools/smi/options.c \
	tools/smi/prometheus.c \
	tools/smi/prometheus.h \
	tools/smi/query.c \
	tools/smi/rates.c \
	tools/smi/rates.h \
	tools/smi/report.c \
	tools/smi/reset.c \
	tools/smi/screen.c \
	tools/smi/smi.h \
	tools/smi/snapshot.c \
	tools/smi/top.h \
	tools/smi/topology.c \
	tools/smi/xml.c
tools_spyre_smi_CPPFLAGS = $(AM_CPPFLAGS) $(YYJSON_CFLAGS)
tools_spyre_smi_LDADD = libspyre/libspyre.la $(YYJSON_LIBS) $(LIBM)
if HAVE_NCURSES
tools_spyre_smi_SOURCES += \
	tools/smi/top.c \
	tools/smi/top_cards.c \
	tools/smi/top_draw.c \
	tools/smi/top_processes.c \
	tools/smi/top_screen.c \
	tools/smi/top_signal.c
tools_spyre_smi_CPPFLAGS += $(NCURSES_CFLAGS)
tools_spyre_smi_LDADD += $(NCURSES_LIBS)
endif

dist_man_MANS += docs/man/spyre-smi.1
smicompdir = $(bashcompdir)
dist_smicomp_DATA = tools/completions/spyre-smi

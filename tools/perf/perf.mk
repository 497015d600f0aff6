# SPDX-License-Identifier: MIT
bin_PROGRAMS += tools/spyre-perf
tools_spyre_perf_SOURCES = \
	tools/perf/data.c \
	tools/perf/main.c \
	tools/perf/measure.c \
	tools/perf/operation.c \
	tools/perf/options.c \
	tools/perf/perf.h \
	tools/perf/print.c \
	tools/perf/ranks.c \
	tools/spelling.c \
	tools/spelling.h
tools_spyre_perf_CPPFLAGS = $(AM_CPPFLAGS) $(YYJSON_CFLAGS)
tools_spyre_perf_LDADD = libspyre/libspyre.la $(YYJSON_LIBS) -lpthread

dist_man_MANS += docs/man/spyre-perf.1
perfcompdir = $(bashcompdir)
dist_perfcomp_DATA = tools/completions/spyre-perf

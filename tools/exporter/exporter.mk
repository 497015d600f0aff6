# SPDX-License-Identifier: MIT
bin_PROGRAMS += tools/spyre-exporter
tools_spyre_exporter_SOURCES = \
	tools/exporter/exporter.h \
	tools/exporter/main.c \
	tools/exporter/page.c \
	tools/exporter/request.c \
	tools/exporter/server.c \
	tools/exporter/socket.c \
	tools/output.c \
	tools/output.h \
	tools/spelling.c \
	tools/spelling.h \
	tools/smi/app_fields.c \
	tools/smi/counter_fields.c \
	tools/smi/counter_fields.h \
	tools/smi/field_text.c \
	tools/smi/fields.c \
	tools/smi/prometheus.c \
	tools/smi/prometheus.h \
	tools/smi/smi.h \
	tools/smi/snapshot.c
tools_spyre_exporter_LDADD = libspyre/libspyre.la $(LIBM)

dist_man_MANS += docs/man/spyre-exporter.1
exportercompdir = $(bashcompdir)
dist_exportercomp_DATA = tools/completions/spyre-exporter

# SPDX-License-Identifier: MIT
# Tools: the public headers and the public library only.
include tools/perf/perf.mk
include tools/smi/smi.mk
include tools/exporter/exporter.mk

# All of `spyre` except main() and the use of the card; unit tests link it as well.
COREDUMP_CPPFLAGS = -I$(top_srcdir)/include/uapi $(LIBDRM_CFLAGS)
noinst_LTLIBRARIES += tools/spyre/libcommand.la
tools_spyre_libcommand_la_CPPFLAGS = $(AM_CPPFLAGS) $(YYJSON_CFLAGS) $(COREDUMP_CPPFLAGS)
tools_spyre_libcommand_la_SOURCES =
tools_spyre_libcommand_la_SOURCES += tools/spelling.c
tools_spyre_libcommand_la_SOURCES += tools/spelling.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/bundle.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/bundle.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/case.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/case.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/coredump.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/coredump_json.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/coredump_parse.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/coredump_print.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/coredump_program.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/decode.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/decode.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/decode_experts.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/decode_layer.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/decode_mamba.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/decode_share.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/finding.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/finding.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/host.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/host.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/message.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/model.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/model.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/npy.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/npy.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/random.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/random.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/shape.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/shape.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/spyre.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/tensor.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/tensor.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/trace_read.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/trace_read.h
tools_spyre_libcommand_la_SOURCES += tools/spyre/value.c
tools_spyre_libcommand_la_SOURCES += tools/spyre/value.h
tools_spyre_libcommand_la_LIBADD = libspyre/libspyre.la $(YYJSON_LIBS) $(LIBM)

bin_PROGRAMS += tools/spyre/spyre
tools_spyre_spyre_CPPFLAGS = $(AM_CPPFLAGS) $(YYJSON_CFLAGS) $(COREDUMP_CPPFLAGS) \
	-DMODELS_SOURCE_DIR='"$(abs_top_srcdir)/tools/models"' -DMODELS_DATA_DIR='"$(modelsdir)"'
tools_spyre_spyre_SOURCES =
tools_spyre_spyre_SOURCES += tools/spyre/analysis.c
tools_spyre_spyre_SOURCES += tools/spyre/analysis.h
tools_spyre_spyre_SOURCES += tools/spyre/analysis_html.c
tools_spyre_spyre_SOURCES += tools/spyre/analysis_print.c
tools_spyre_spyre_SOURCES += tools/spyre/analyze.c
tools_spyre_spyre_SOURCES += tools/links.c
tools_spyre_spyre_SOURCES += tools/links.h
tools_spyre_spyre_SOURCES += tools/markup.c
tools_spyre_spyre_SOURCES += tools/markup.h
tools_spyre_spyre_SOURCES += tools/output.c
tools_spyre_spyre_SOURCES += tools/output.h
tools_spyre_spyre_SOURCES += tools/spyre/build.c
tools_spyre_spyre_SOURCES += tools/spyre/compile.c
tools_spyre_spyre_SOURCES += tools/spyre/coredump.c
tools_spyre_spyre_SOURCES += tools/spyre/doctor.c
tools_spyre_spyre_SOURCES += tools/spyre/estimate.c
tools_spyre_spyre_SOURCES += tools/spyre/estimate.h
tools_spyre_spyre_SOURCES += tools/spyre/estimate_print.c
tools_spyre_spyre_SOURCES += tools/spyre/lineage.c
tools_spyre_spyre_SOURCES += tools/spyre/provenance.c
tools_spyre_spyre_SOURCES += tools/spyre/provenance.h
tools_spyre_spyre_SOURCES += tools/spyre/explain.c
tools_spyre_spyre_SOURCES += tools/spyre/explain.h
tools_spyre_spyre_SOURCES += tools/spyre/info.c
tools_spyre_spyre_SOURCES += tools/spyre/launch.c
tools_spyre_spyre_SOURCES += tools/spyre/report.c
tools_spyre_spyre_SOURCES += tools/spyre/report.h
tools_spyre_spyre_SOURCES += tools/spyre/run.c
tools_spyre_spyre_SOURCES += tools/spyre/run.h
tools_spyre_spyre_SOURCES += tools/spyre/spyre.c
tools_spyre_spyre_SOURCES += tools/spyre/trace.c
tools_spyre_spyre_SOURCES += tools/spyre/trace_merge.c
tools_spyre_spyre_SOURCES += tools/spyre/trace_merge.h
tools_spyre_spyre_LDADD = tools/spyre/libcommand.la libspyre/libspyre.la $(YYJSON_LIBS) $(LIBM)

# Sizes of language models.
modelsdir = $(pkgdatadir)/models
dist_models_DATA = tools/models/ORIGIN
dist_models_DATA += tools/models/gpt-oss-20b.json
dist_models_DATA += tools/models/granite-4.0-h-small.json
dist_models_DATA += tools/models/granite-4.0-h-tiny.json
dist_models_DATA += tools/models/llama-3.1-8b.json
dist_models_DATA += tools/models/ministral-3-14b.json
dist_models_DATA += tools/models/ministral-8b.json
dist_models_DATA += tools/models/mistral-small-24b.json
dist_models_DATA += tools/models/qwen2.5-vl-7b.json

bashcompletiondir = $(bashcompdir)
dist_bashcompletion_DATA = tools/completions/spyre
zshcompletiondir = $(zshcompdir)
dist_zshcompletion_DATA = tools/completions/_spyre tools/completions/_spyre-perf \
	tools/completions/_spyre-smi tools/completions/_spyre-exporter
fishcompletiondir = $(fishcompdir)
dist_fishcompletion_DATA = tools/completions/spyre.fish tools/completions/spyre-perf.fish \
	tools/completions/spyre-smi.fish tools/completions/spyre-exporter.fish
EXTRA_DIST += scripts/mkcompletions
dist_man_MANS += docs/man/spyre.1 docs/man/spyre-launch.1
dist_man_MANS += docs/man/dxp_standalone.1

# The public name of the bundle compiler.
install-exec-hook:
	cd '$(DESTDIR)$(bindir)' && rm -f dxp_standalone && $(LN_S) spyre$(EXEEXT) dxp_standalone
# libtool sets no run path to a folder of ld.so.conf, so ldconfig must update its cache.
	@if test -z '$(DESTDIR)' && test "`id -u`" = 0; then \
	  PATH="$$PATH:/usr/sbin:/sbin" ldconfig || \
	  echo "cannot run ldconfig: programs may not find libspyre.so.0; run it as root" >&2; \
	fi

uninstall-hook: uninstall-dkms
	-rm -f '$(DESTDIR)$(bindir)/dxp_standalone'

# SPDX-License-Identifier: MIT
# Bundles beyond their SDSCs: launch specs, symbols, compiled bundles.
if HAVE_CHECK
bundle_tests = tests/unit/bundle_cache tests/unit/bundle_image tests/unit/bundle_short
bundle_tests += tests/unit/bundle_indirect tests/unit/bundle_kept tests/unit/bundle_spec
bundle_tests += tests/unit/bundle_symbols
check_PROGRAMS += $(bundle_tests)
TESTS += $(bundle_tests)
bundle_test_common = tests/unit/bundle_files.c tests/unit/bundle_files.h tests/unit/runtime_check.h
bundle_test_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) $(YYJSON_CFLAGS)
bundle_test_libs = libspyre/libcore.la $(CHECK_LIBS) $(YYJSON_LIBS) $(LIBM)

tests_unit_bundle_cache_SOURCES = tests/unit/bundle_cache.c $(bundle_test_common)
tests_unit_bundle_cache_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_cache_LDADD = $(bundle_test_libs)
tests_unit_bundle_image_SOURCES = tests/unit/bundle_image.c $(bundle_test_common)
tests_unit_bundle_image_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_image_LDADD = $(bundle_test_libs)
tests_unit_bundle_indirect_SOURCES = tests/unit/bundle_indirect.c $(bundle_test_common)
tests_unit_bundle_indirect_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_indirect_LDADD = $(bundle_test_libs)
tests_unit_bundle_kept_SOURCES = tests/unit/bundle_kept.c $(bundle_test_common)
tests_unit_bundle_kept_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_kept_LDADD = $(bundle_test_libs)
tests_unit_bundle_short_SOURCES = tests/unit/bundle_short.c $(bundle_test_common)
tests_unit_bundle_short_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_short_LDADD = $(bundle_test_libs)
tests_unit_bundle_spec_SOURCES = tests/unit/bundle_spec.c $(bundle_test_common)
tests_unit_bundle_spec_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_spec_LDADD = $(bundle_test_libs)
tests_unit_bundle_symbols_SOURCES = tests/unit/bundle_symbols.c $(bundle_test_common)
tests_unit_bundle_symbols_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_symbols_LDADD = $(bundle_test_libs)

check_PROGRAMS += tests/unit/sdsc_graph_index
TESTS += tests/unit/sdsc_graph_index
tests_unit_sdsc_graph_index_SOURCES = tests/unit/sdsc_graph_index.c $(bundle_test_common)
tests_unit_sdsc_graph_index_CFLAGS = $(bundle_test_cflags)
tests_unit_sdsc_graph_index_LDADD = $(bundle_test_libs)
check_PROGRAMS += tests/unit/sdsc_graph_experts
TESTS += tests/unit/sdsc_graph_experts
tests_unit_sdsc_graph_experts_SOURCES = tests/unit/sdsc_graph_experts.c $(bundle_test_common)
tests_unit_sdsc_graph_experts_CFLAGS = $(bundle_test_cflags)
tests_unit_sdsc_graph_experts_LDADD = $(bundle_test_libs)

check_PROGRAMS += tests/unit/embedded_warm
TESTS += tests/unit/embedded_warm
tests_unit_embedded_warm_SOURCES = tests/unit/embedded_warm.c $(bundle_test_common)
tests_unit_embedded_warm_CFLAGS = $(bundle_test_cflags)
tests_unit_embedded_warm_LDADD = $(bundle_test_libs)
tests_unit_embedded_warm_LDFLAGS = -Wl,--wrap=spyre_card_exec,--wrap=spyre_card_dma \
	-Wl,--wrap=spyre_card_copy,--wrap=spyre_card_fill
check_PROGRAMS += tests/unit/embedded_pages
TESTS += tests/unit/embedded_pages
tests_unit_embedded_pages_SOURCES = tests/unit/embedded_pages.c tests/unit/runtime_check.h
tests_unit_embedded_pages_CFLAGS = $(bundle_test_cflags)
tests_unit_embedded_pages_LDADD = $(bundle_test_libs)
tests_unit_embedded_pages_LDFLAGS = -Wl,--wrap=sysconf,--wrap=mmap,--wrap=mprotect,--wrap=madvise
check_PROGRAMS += tests/unit/embedded_waiter
TESTS += tests/unit/embedded_waiter
tests_unit_embedded_waiter_SOURCES = tests/unit/embedded_waiter.c tests/unit/runtime_check.h
tests_unit_embedded_waiter_CFLAGS = $(bundle_test_cflags)
tests_unit_embedded_waiter_LDADD = $(bundle_test_libs)
tests_unit_embedded_waiter_LDFLAGS = -Wl,--wrap=spyre_card_copy
check_PROGRAMS += tests/unit/embedded_affinity
TESTS += tests/unit/embedded_affinity
tests_unit_embedded_affinity_SOURCES = tests/unit/embedded_affinity.c
tests_unit_embedded_affinity_CFLAGS = $(bundle_test_cflags)
tests_unit_embedded_affinity_LDADD = $(bundle_test_libs)
check_PROGRAMS += tests/unit/embedded_index
TESTS += tests/unit/embedded_index
tests_unit_embedded_index_SOURCES = tests/unit/embedded_index.c tests/unit/model_build.c \
	tests/unit/model_build.h
tests_unit_embedded_index_CFLAGS = $(bundle_test_cflags)
tests_unit_embedded_index_LDADD = $(bundle_test_libs)
check_PROGRAMS += tests/unit/bundle_apart
TESTS += tests/unit/bundle_apart
tests_unit_bundle_apart_SOURCES = tests/unit/bundle_apart.c $(bundle_test_common)
tests_unit_bundle_apart_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_apart_LDADD = $(bundle_test_libs)
check_PROGRAMS += tests/unit/bundle_tables
TESTS += tests/unit/bundle_tables
tests_unit_bundle_tables_SOURCES = tests/unit/bundle_tables.c $(bundle_test_common)
tests_unit_bundle_tables_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_tables_LDADD = $(bundle_test_libs)
check_PROGRAMS += tests/unit/bundle_reach
TESTS += tests/unit/bundle_reach
tests_unit_bundle_reach_SOURCES = tests/unit/bundle_reach.c $(bundle_test_common)
tests_unit_bundle_reach_CFLAGS = $(bundle_test_cflags)
tests_unit_bundle_reach_LDADD = $(bundle_test_libs)
endif

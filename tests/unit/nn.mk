# SPDX-License-Identifier: MIT
# Convolutions, pooling, top-k, masks and the other operations on windows and positions.
if HAVE_CHECK
sdsc_make_sources = tests/unit/sdsc_make.c tests/unit/sdsc_make.h

check_PROGRAMS += tests/unit/sdsc_conv
tests_unit_sdsc_conv_SOURCES = tests/unit/sdsc_conv.c $(sdsc_make_sources)
tests_unit_sdsc_conv_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_conv_LDADD = tests/unit/libmodeltest.la $(sdsc_test_libs) $(LIBM)
TESTS += tests/unit/sdsc_conv

check_PROGRAMS += tests/unit/sdsc_pool
tests_unit_sdsc_pool_SOURCES = tests/unit/sdsc_pool.c $(sdsc_make_sources)
tests_unit_sdsc_pool_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_pool_LDADD = tests/unit/libmodeltest.la $(sdsc_test_libs) $(LIBM)
TESTS += tests/unit/sdsc_pool

check_PROGRAMS += tests/unit/sdsc_shuffle
tests_unit_sdsc_shuffle_SOURCES = tests/unit/sdsc_shuffle.c $(sdsc_make_sources)
tests_unit_sdsc_shuffle_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_shuffle_LDADD = tests/unit/libmodeltest.la $(sdsc_test_libs) $(LIBM)
TESTS += tests/unit/sdsc_shuffle

check_PROGRAMS += tests/unit/sdsc_topk
tests_unit_sdsc_topk_SOURCES = tests/unit/sdsc_topk.c $(sdsc_make_sources)
tests_unit_sdsc_topk_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_topk_LDADD = tests/unit/libmodeltest.la $(sdsc_test_libs) $(LIBM)
TESTS += tests/unit/sdsc_topk

check_PROGRAMS += tests/unit/sdsc_places
tests_unit_sdsc_places_SOURCES = tests/unit/sdsc_places.c $(sdsc_make_sources)
tests_unit_sdsc_places_CFLAGS = $(sdsc_test_cflags)
tests_unit_sdsc_places_LDADD = tests/unit/libmodeltest.la $(sdsc_test_libs) $(LIBM)
TESTS += tests/unit/sdsc_places
endif

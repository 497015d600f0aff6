# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Each arithmetic unit is built with its own flags in a separate library,
# so that other code does not use vector instructions.
model_unit_cflags = $(AM_CFLAGS) -O3 -fno-math-errno
model_unit_sources = \
	model/simd/codec.h model/simd/convert.h model/simd/dl16_pair.h model/simd/four.h model/simd/functions.h \
	model/simd/integer.h model/simd/math.h \
	model/simd/pair.h model/simd/pt.h model/simd/pt_few.h model/simd/avx2_dl16.h model/simd/avx512_dl16.h \
	model/simd/reduce.h model/simd/sfu.h \
	model/simd/tile.h \
	model/simd/transpose.h model/simd/unit.h model/simd/vec.h model/simd/wide.h

noinst_LTLIBRARIES += model/libmodel.la model/libmodel_scalar.la
include model/sources.mk
model_libmodel_la_SOURCES = $(model_sources) $(model_headers)
model_libmodel_la_CPPFLAGS = $(AM_CPPFLAGS)
model_libmodel_la_LIBADD = model/libmodel_scalar.la

model_libmodel_scalar_la_SOURCES = model/simd/scalar.c $(model_unit_sources)
model_libmodel_scalar_la_CFLAGS = $(model_unit_cflags)

if X86_UNITS
model_libmodel_la_CPPFLAGS += -DSPYRE_HAVE_AVX2 -DSPYRE_HAVE_AVX512
noinst_LTLIBRARIES += model/libmodel_avx2.la model/libmodel_avx512.la
model_libmodel_la_LIBADD += model/libmodel_avx2.la model/libmodel_avx512.la
model_libmodel_avx2_la_SOURCES = model/simd/avx2.c $(model_unit_sources)
model_libmodel_avx2_la_CFLAGS = $(model_unit_cflags) -mavx2 -mfma -mf16c
model_libmodel_avx512_la_SOURCES = model/simd/avx512.c $(model_unit_sources)
model_libmodel_avx512_la_CFLAGS = $(model_unit_cflags) -mavx512f -mavx512bw -mavx512vl \
	-mavx512dq -mprefer-vector-width=512
endif
if ARM_UNITS
model_libmodel_la_CPPFLAGS += -DSPYRE_HAVE_NEON
noinst_LTLIBRARIES += model/libmodel_neon.la
model_libmodel_la_LIBADD += model/libmodel_neon.la
model_libmodel_neon_la_SOURCES = model/simd/neon.c $(model_unit_sources)
model_libmodel_neon_la_CFLAGS = $(model_unit_cflags)
endif
if POWER_UNITS
model_libmodel_la_CPPFLAGS += -DSPYRE_HAVE_VSX
noinst_LTLIBRARIES += model/libmodel_vsx.la
model_libmodel_la_LIBADD += model/libmodel_vsx.la
model_libmodel_vsx_la_SOURCES = model/simd/vsx.c $(model_unit_sources)
model_libmodel_vsx_la_CFLAGS = $(model_unit_cflags) -mcpu=power9
endif
if Z_UNITS
model_libmodel_la_CPPFLAGS += -DSPYRE_HAVE_ZVECTOR
noinst_LTLIBRARIES += model/libmodel_zvector.la
model_libmodel_la_LIBADD += model/libmodel_zvector.la
model_libmodel_zvector_la_SOURCES = model/simd/zvector.c $(model_unit_sources)
model_libmodel_zvector_la_CFLAGS = $(model_unit_cflags) -march=z14
endif

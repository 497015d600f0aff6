# SPDX-License-Identifier: MIT
# Not built by default; 'make bench/spyre-bench' or scripts/bench.
EXTRA_PROGRAMS += bench/spyre-bench
bench_spyre_bench_SOURCES = bench/bench.h bench/comm.c bench/convert.c bench/convert.h \
	bench/copy.c bench/device.c bench/device.h bench/half.h bench/launch.c bench/load.c \
	bench/main.c bench/matmul.c bench/measure.c bench/pingpong.c bench/pingpong.h \
	bench/pointwise.c bench/report.c bench/scaling.c bench/submit.c bench/transfer.c \
	bench/uring.c
bench_spyre_bench_CFLAGS = $(AM_CFLAGS) $(LIBDRM_CFLAGS) $(LIBURING_CFLAGS) \
	$(YYJSON_CFLAGS) -pthread
bench_spyre_bench_LDADD = libspyre/libspyre.la $(LIBDRM_LIBS) $(LIBURING_LIBS) \
	$(YYJSON_LIBS) $(LIBM) -ldl
EXTRA_DIST += bench/chains.py
EXTRA_DIST += bench/comm.py bench/serving.py
EXTRA_DIST += bench/torch/main.py bench/torch/attention.py bench/torch/llm.py bench/torch/minilm.py \
	bench/torch/observe.py bench/torch/overhead.py \
	bench/torch/peer.c bench/torch/report.py
CLEANFILES += bench/spyre-bench$(EXEEXT)

# SPDX-License-Identifier: MIT
# Fuzzers: 'make fuzzers', or scripts/test fuzz, which runs them.
fuzzer_programs = tests/fuzz/fuzz-bundle tests/fuzz/fuzz-code tests/fuzz/fuzz-coredump \
	tests/fuzz/fuzz-dma \
	tests/fuzz/fuzz-generated tests/fuzz/fuzz-isa tests/fuzz/fuzz-program
EXTRA_PROGRAMS += $(fuzzer_programs)
fuzz_common = tests/fuzz/fuzz.h tests/fuzz/main.c
tests_fuzz_fuzz_bundle_SOURCES = $(fuzz_common) tests/fuzz/bundle.c tests/fuzz/bundles.c \
	tests/fuzz/bundles.h
tests_fuzz_fuzz_bundle_LDADD = libspyre/libcore.la
tests_fuzz_fuzz_code_SOURCES = $(fuzz_common) tests/fuzz/code.c tests/fuzz/bundles.c \
	tests/fuzz/bundles.h
tests_fuzz_fuzz_code_LDADD = libspyre/libcore.la
tests_fuzz_fuzz_coredump_SOURCES = $(fuzz_common) tests/fuzz/coredump.c \
	tests/unit/coredump_sample.c tests/unit/coredump_sample.h
tests_fuzz_fuzz_coredump_CPPFLAGS = $(AM_CPPFLAGS) $(YYJSON_CFLAGS) $(COREDUMP_CPPFLAGS)
tests_fuzz_fuzz_coredump_LDADD = tools/spyre/libcommand.la libspyre/libspyre.la $(YYJSON_LIBS)
tests_fuzz_fuzz_dma_SOURCES = $(fuzz_common) tests/fuzz/card.c tests/fuzz/card.h \
	tests/fuzz/cover.c tests/fuzz/cover.h tests/fuzz/dma.c tests/fuzz/dma.h \
	tests/fuzz/dma-box.c tests/fuzz/dma-make.c tests/unit/model_build.c tests/unit/model_build.h \
	tests/unit/model_reference.c tests/unit/model_reference.h
tests_fuzz_fuzz_dma_LDADD = model/libmodel.la $(LIBM)
tests_fuzz_fuzz_generated_SOURCES = $(fuzz_common) tests/fuzz/card.c tests/fuzz/card.h \
	tests/fuzz/generated.c tests/unit/model_build.c tests/unit/model_build.h \
	tests/unit/model_checked.c tests/unit/model_checked.h tests/unit/model_generate.c \
	tests/unit/model_generate.h tests/unit/model_reference.c tests/unit/model_reference.h
tests_fuzz_fuzz_generated_LDADD = model/libmodel.la $(LIBM)
tests_fuzz_fuzz_isa_SOURCES = $(fuzz_common) tests/fuzz/card.c tests/fuzz/card.h \
	tests/fuzz/cover.c tests/fuzz/cover.h tests/fuzz/isa.c \
	tests/unit/model_build.c tests/unit/model_build.h \
	tests/unit/model_checked.c tests/unit/model_checked.h tests/unit/model_generate.c \
	tests/unit/model_generate.h tests/unit/model_reference.c tests/unit/model_reference.h
tests_fuzz_fuzz_isa_LDADD = model/libmodel.la $(LIBM)
tests_fuzz_fuzz_program_SOURCES = $(fuzz_common) tests/fuzz/bundles.c tests/fuzz/bundles.h \
	tests/fuzz/card.c tests/fuzz/card.h tests/fuzz/program.c
tests_fuzz_fuzz_program_LDADD = libspyre/libcore.la
CLEANFILES += $(fuzzer_programs)

# Fuzzes the kernel module through its node; runs in the virtual machine.
check_PROGRAMS += tests/fuzz/fuzz-ioctl
tests_fuzz_fuzz_ioctl_SOURCES = tests/fuzz/ioctl.h tests/fuzz/ioctl-call.c \
	tests/fuzz/ioctl-kcov.c tests/fuzz/ioctl-main.c tests/fuzz/ioctl-map.c \
	tests/fuzz/ioctl-mutate.c tests/fuzz/ioctl-process.c tests/fuzz/ioctl-submit.c \
	tests/fuzz/ioctl-sync.c tests/fuzz/ioctl-text.c tests/fuzz/ioctl-world.c tests/unit/model_build.c tests/unit/model_build.h \
	tests/unit/model_generate.c tests/unit/model_generate.h
tests_fuzz_fuzz_ioctl_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/include/uapi $(LIBDRM_CFLAGS) \
	$(LIBURING_CFLAGS)
tests_fuzz_fuzz_ioctl_LDADD = model/libmodel.la $(LIBURING_LIBS) -lpthread
EXTRA_DIST += \
	tests/fuzz/corpus-ioctl/bind \
	tests/fuzz/corpus-ioctl/dma \
	tests/fuzz/corpus-ioctl/fill-copy \
	tests/fuzz/corpus-ioctl/inject \
	tests/fuzz/corpus-ioctl/map-race \
	tests/fuzz/corpus-ioctl/partitions \
	tests/fuzz/corpus-ioctl/prime \
	tests/fuzz/corpus-ioctl/processes \
	tests/fuzz/corpus-ioctl/program \
	tests/fuzz/corpus-ioctl/refused-wait \
	tests/fuzz/corpus-ioctl/resets \
	tests/fuzz/corpus-ioctl/sync-file \
	tests/fuzz/corpus-ioctl/uring \
	tests/fuzz/corpus-ioctl/uring-scribble

fuzzers: $(fuzzer_programs)
.PHONY: fuzzers

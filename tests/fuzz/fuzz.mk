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
tests_fuzz_fuzz_dma_SOURCES = $(fuzz_common) tests/fuzz/card.c tests/fuzz/card.h tests/fuzz/dma.c
tests_fuzz_fuzz_dma_LDADD = libspyre/libcore.la
tests_fuzz_fuzz_generated_SOURCES = $(fuzz_common) tests/fuzz/card.c tests/fuzz/card.h \
	tests/fuzz/generated.c tests/unit/model_build.c tests/unit/model_build.h \
	tests/unit/model_checked.c tests/unit/model_checked.h tests/unit/model_generate.c \
	tests/unit/model_generate.h tests/unit/model_reference.c tests/unit/model_reference.h
tests_fuzz_fuzz_generated_LDADD = model/libmodel.la $(LIBM)
tests_fuzz_fuzz_isa_SOURCES = $(fuzz_common) tests/fuzz/card.c tests/fuzz/card.h \
	tests/fuzz/isa.c tests/unit/model_build.c tests/unit/model_build.h \
	tests/unit/model_generate.c tests/unit/model_generate.h
tests_fuzz_fuzz_isa_LDADD = model/libmodel.la
tests_fuzz_fuzz_program_SOURCES = $(fuzz_common) tests/fuzz/bundles.c tests/fuzz/bundles.h \
	tests/fuzz/card.c tests/fuzz/card.h tests/fuzz/program.c
tests_fuzz_fuzz_program_LDADD = libspyre/libcore.la
CLEANFILES += $(fuzzer_programs)

fuzzers: $(fuzzer_programs)
.PHONY: fuzzers

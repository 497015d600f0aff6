/* SPDX-License-Identifier: MIT */
/* The bundles of tests/conformance as seeds. */
#ifndef SPYRE_FUZZ_BUNDLES_H
#define SPYRE_FUZZ_BUNDLES_H

/* Calls @each for every bundle directory below @source_dir/tests/conformance. */
void fuzz_each_bundle(const char *source_dir, void (*each)(const char *directory));

#endif /* SPYRE_FUZZ_BUNDLES_H */

/* SPDX-License-Identifier: MIT */
/*
 * The host's part of a launch: how argument addresses become the correction flits in front of
 * a program. Named and shaped by the calls in csrc/prepare_kernel.cpp and csrc/job_plan.cpp of
 * torch-spyre a312898; the contents are those of this project's spyrecode.json
 * (docs/bundles.md).
 */
#ifndef SPYRE_COMPAT_SPYRECODE_H
#define SPYRE_COMPAT_SPYRECODE_H

#include <cstdint>
#include <string>
#include <vector>

#include "flex/export.h"

/* One 64-bit word of the correction flits: the value of an input symbol plus @addend. */
struct HcmPatch {
	/* Position in the output, in bytes. */
	std::uint32_t offset;
	/* Index in Vdci::inputSym_; -1 if @addend is the value. */
	std::int32_t input;
	std::int64_t addend;
};

struct Vdci {
	/* Symbols that the caller gives values for, in this order. */
	std::vector<std::int64_t> inputSym_;
	std::vector<HcmPatch> patches;
	/* False for {}, which describes no output. */
	bool present = false;
};

struct COMPAT_EXPORT Hcm {
	Vdci vdci;
	/* The output before its words are set. */
	std::vector<std::uint8_t> constants;

	/* Reads the member "hcm" of a ComputeOnHost command; throws if it is malformed. */
	void importJsonStr(const std::string &text);
};

#endif /* SPYRE_COMPAT_SPYRECODE_H */

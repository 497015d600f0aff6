// SPDX-License-Identifier: MIT
/* spyrecode-host-functions: correction flits from the member "hcm" of spyrecode.json. */
#include "check.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <spyrecode-host-functions/fast_process_hcm.h>
#include <spyrecode-host-functions/processSpyreCodeArtifacts.h>
#include <spyrecode-host-functions/spyrecode.h>

#include "tests/order.h"

namespace
{
constexpr std::size_t words = 32;

std::string replaced(std::string text, const std::string &from, const std::string &to)
{
	const std::size_t at = text.find(from);

	ck_assert_msg(at != std::string::npos, "\"%s\" is not in the text", from.c_str());
	return text.replace(at, from.size(), to);
}

/* Two inputs and the pool; operand 17 is word 1 of flit 1. */
std::string two_inputs()
{
	const std::string flit(256, '0');

	return "{\"vdci\": {\"dsName_\": \"ProgCorrectionFlit\", \"inputSym_\": [\"-1\", \"-2\"], "
	       "\"variableDefs_\": [[\"V-66\", \"-23\", \"V-2\", \"256\", \"1\"], "
	       "[\"V-67\", \"-23\", \"V-65\", \"384\", \"1\"], "
	       "[\"V-83\", \"-23\", \"V-1\", \"0\", \"1\"]], "
	       "\"ssi_\": {\"value_and_locs_\": [[\"-66\", \"-1\", \"0\", \"0\", \"0\", \"63\"], "
	       "[\"-67\", \"-1\", \"0\", \"1\", \"0\", \"63\"], "
	       "[\"-83\", \"-1\", \"1\", \"1\", \"0\", \"63\"]]}}, "
	       "\"senConstants\": [{\"senconst_\": \"" + flit + "\"}, {\"senconst_\": \"" +
	       flit.substr(2) + "7f\"}]}";
}

std::vector<std::uint64_t> expected(std::uint64_t first, std::uint64_t second)
{
	std::vector<std::uint64_t> flits(words, 0);

	flits[0] = second + 256;
	flits[1] = 384;
	flits[17] = first;
	flits[31] = std::uint64_t{ 0x7f } << 56;
	order_le(flits.data(), flits.size(), 8);
	return flits;
}
}

START_TEST(every_form_of_input)
{
	const std::vector<std::int64_t> values = { std::int64_t{ 3 } << 34, 1280 };
	const std::vector<std::uint64_t> want = expected(values[0], values[1]);
	deeptools::FastHcmPatchPlan plan;
	std::vector<std::uint64_t> out(words, ~std::uint64_t{ 0 });
	const void *buffer = values.data();
	Hcm hcm;

	hcm.importJsonStr(two_inputs());
	ck_assert_uint_eq(hcm.vdci.inputSym_.size(), 2);
	deeptools::processComputeOnHostCommand(hcm, out.data(), buffer);
	ck_assert(out == want);
	out.assign(words, 1);
	deeptools::processComputeOnHostCommand(hcm, out.data(), &values);
	ck_assert(out == want);

	plan.valid = deeptools::buildFastHcmPatchPlan(plan, hcm);
	ck_assert(plan.valid);
	ck_assert_uint_eq(plan.output_size, 256);
	ck_assert_uint_eq(plan.patches.size(), 3);
	ck_assert_uint_eq(plan.num_input_symbols, 2);
	out.assign(words, 1);
	ck_assert(deeptools::processComputeOnHostCommandFast(plan, hcm, out.data(), values.data(),
							     values.size()));
	ck_assert(out == want);
	plan.valid = false;
	out.assign(words, 1);
	ck_assert(!deeptools::processComputeOnHostCommandFast(plan, hcm, out.data(), values.data(),
							      values.size()));
	ck_assert(out == want);
}
END_TEST

START_TEST(too_few_values)
{
	const std::vector<std::int64_t> values = { 128 };
	std::vector<std::uint64_t> out(words);
	Hcm hcm;

	hcm.importJsonStr(two_inputs());
	ck_throws(deeptools::processComputeOnHostCommand(hcm, out.data(), &values),
		  "they need 2 values, the launch gives 1");
	ck_throws(deeptools::processComputeOnHostCommand(hcm, out.data(), nullptr),
		  "they need 2 values, the launch gives 0");
}
END_TEST

/* The bundle skips argument 1: a launch leaves it out, or has a value for each number. */
START_TEST(skipped_argument)
{
	const std::int64_t first = 5120, second = 1280;
	const std::vector<std::int64_t> used = { first, second }, all = { first, 9, second };
	const std::vector<std::int64_t> more = { first, 9, second, 8 }, fewer = { first };
	std::vector<std::uint64_t> out(words);
	Hcm hcm;

	hcm.importJsonStr(replaced(replaced(two_inputs(), "\"-2\"]", "\"-3\"]"), "V-2\"",
				   "V-3\""));
	for (const auto *values : { &used, &all, &more }) {
		out.assign(words, 1);
		deeptools::processComputeOnHostCommand(hcm, out.data(), values);
		ck_assert(out == expected(first, second));
	}
	ck_throws(deeptools::processComputeOnHostCommand(hcm, out.data(), &fewer),
		  "the launch gives 1");
}
END_TEST

/* A description of nothing is read, and is an error when it is computed. */
START_TEST(empty_vdci)
{
	deeptools::FastHcmPatchPlan plan;
	std::vector<std::uint64_t> out(words);
	Hcm hcm;

	hcm.importJsonStr("{\"vdci\": {}, \"senConstants\": []}");
	ck_assert(hcm.vdci.inputSym_.empty());
	ck_assert(!deeptools::buildFastHcmPatchPlan(plan, hcm));
	ck_throws(deeptools::processComputeOnHostCommand(hcm, out.data(), nullptr),
		  "Expect one DCI");
}
END_TEST

START_TEST(malformed)
{
	const std::string good = two_inputs();
	Hcm hcm;

	ck_throws(hcm.importJsonStr("\"text\""), "hcm");
	ck_throws(hcm.importJsonStr("{"), "hcm");
	ck_throws(hcm.importJsonStr("{\"vdci\": \"invalid\", \"senConstants\": []}"), "vdci field");
	ck_throws(hcm.importJsonStr("{}"), "vdci field");
	ck_throws(hcm.importJsonStr(replaced(good, "inputSym_", "input")), "inputSym_ field");
	ck_throws(hcm.importJsonStr(replaced(good, "\"-23\"", "\"-24\"")), "operation -24");
	ck_throws(hcm.importJsonStr(replaced(good, "\"256\"", "\"2x\"")), "\"2x\"");
	ck_throws(hcm.importJsonStr(replaced(good, "V-65", "V-64")), "symbol -64");
	ck_throws(hcm.importJsonStr(replaced(good, "[\"-67\"", "[\"-68\"")), "symbol -68");
	ck_throws(hcm.importJsonStr(replaced(good, "\"1\", \"1\", \"0\"", "\"2\", \"1\", \"0\"")),
		  "word 1 of flit 2");
	ck_throws(hcm.importJsonStr(replaced(good, "\"1\", \"1\", \"0\"", "\"1\", \"16\", \"0\"")),
		  "word 16 of flit 1");
	ck_throws(hcm.importJsonStr(replaced(good, "\"63\"", "\"31\"")), "bits 0 to 63");
	ck_throws(hcm.importJsonStr(replaced(good, "7f\"", "7g\"")), "senConstants");
	ck_throws(hcm.importJsonStr(replaced(good, "7f\"", "7f0\"")), "256 hexadecimal digits");
	/* A failed import leaves what was there. */
	hcm.importJsonStr(good);
	ck_throws(hcm.importJsonStr("{}"), "vdci");
	ck_assert_uint_eq(hcm.vdci.patches.size(), 3);
}
END_TEST

int main()
{
	const TTest *const cases[] = { every_form_of_input, too_few_values, skipped_argument,
				       empty_vdci, malformed, nullptr };

	return run_tests("compat_correction", cases);
}

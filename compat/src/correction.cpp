// SPDX-License-Identifier: MIT
/* Correction flits: reads the member "hcm" of spyrecode.json and computes the flits. */
#include <yyjson.h>

#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "spyrecode-host-functions/fast_process_hcm.h"
#include "spyrecode-host-functions/processSpyreCodeArtifacts.h"
#include "spyrecode-host-functions/spyrecode.h"

namespace
{
constexpr std::size_t flit_bytes = 128;
constexpr std::int64_t flit_words = 16;
/* The symbol of the memory for intermediates, whose address the runtime itself knows. */
constexpr std::int64_t pool_symbol = -65;
/* Symbols from here on down are sizes of dimensions, which follow the addresses of a launch. */
constexpr std::int64_t first_size_symbol = -130;
/* The operation "base plus offset" of variableDefs_, and its number of bases. */
constexpr std::int64_t add_operation = -23;

using Document = std::unique_ptr<yyjson_doc, decltype(&yyjson_doc_free)>;

[[noreturn]] void malformed(const std::string &field, const std::string &reason)
{
	throw std::runtime_error("cannot read the " + field + " field of hcm: " + reason);
}

yyjson_val *member(yyjson_val *object, const char *name, bool is_array)
{
	yyjson_val *value = yyjson_obj_get(object, name);

	if (is_array ? !yyjson_is_arr(value) : !yyjson_is_obj(value))
		malformed(name, std::string("it must be ") + (is_array ? "an array" : "an object"));
	return value;
}

/* Reads a number, which spyrecode.json writes as a string: "-1", or "V-1" for a symbol. */
std::int64_t read_number(yyjson_val *value, const char *field)
{
	if (yyjson_is_int(value))
		return yyjson_get_sint(value);
	if (!yyjson_is_str(value))
		malformed(field, "it must be a number");

	std::string_view text(yyjson_get_str(value), yyjson_get_len(value));
	std::int64_t number = 0;

	if (text.starts_with('V'))
		text.remove_prefix(1);
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
	if (error != std::errc() || end != text.data() + text.size())
		malformed(field, "\"" + std::string(text) + "\" is not a number");
	return number;
}

std::vector<std::int64_t> read_row(yyjson_val *row, std::size_t count, const char *field)
{
	std::vector<std::int64_t> numbers;

	if (!yyjson_is_arr(row) || yyjson_arr_size(row) != count)
		malformed(field, "each entry must be an array of " + std::to_string(count));
	for (std::size_t i = 0; i < count; i++)
		numbers.push_back(read_number(yyjson_arr_get(row, i), field));
	return numbers;
}

/* A symbol's value is that of symbol @base plus @offset. */
struct Definition {
	std::int64_t base;
	std::int64_t offset;
};

std::map<std::int64_t, Definition> read_definitions(yyjson_val *vdci)
{
	yyjson_val *rows = member(vdci, "variableDefs_", true);
	std::map<std::int64_t, Definition> definitions;

	for (std::size_t i = 0; i < yyjson_arr_size(rows); i++) {
		const auto row = read_row(yyjson_arr_get(rows, i), 5, "variableDefs_");

		if (row[1] != add_operation || row[4] != 1)
			malformed("variableDefs_", "entry " + std::to_string(i) +
				  " has operation " + std::to_string(row[1]) +
				  "; only -23, base plus offset, is supported");
		definitions[row[0]] = { row[2], row[3] };
	}
	return definitions;
}

std::int32_t find_input(const Vdci &vdci, std::int64_t symbol)
{
	for (std::size_t i = 0; i < vdci.inputSym_.size(); i++)
		if (vdci.inputSym_[i] == symbol)
			return i;
	if (symbol != pool_symbol)
		malformed("variableDefs_", "symbol " + std::to_string(symbol) +
			  " is neither an input nor that of the pool, -65");
	return -1;
}

void read_vdci(Vdci &vdci, yyjson_val *object, std::size_t flits)
{
	yyjson_val *inputs = member(object, "inputSym_", true);
	yyjson_val *rows = member(member(object, "ssi_", false), "value_and_locs_", true);
	const auto definitions = read_definitions(object);

	for (std::size_t i = 0; i < yyjson_arr_size(inputs); i++)
		vdci.inputSym_.push_back(read_number(yyjson_arr_get(inputs, i), "inputSym_"));
	for (std::size_t i = 0; i < yyjson_arr_size(rows); i++) {
		const auto row = read_row(yyjson_arr_get(rows, i), 6, "value_and_locs_");
		const auto definition = definitions.find(row[0]);
		const std::int64_t flit = row[2], word = row[3];

		if (definition == definitions.end())
			malformed("value_and_locs_", "symbol " + std::to_string(row[0]) +
				  " is not in variableDefs_");
		if (flit < 0 || flit >= static_cast<std::int64_t>(flits) || word < 0 ||
		    word >= flit_words)
			malformed("value_and_locs_", "word " + std::to_string(word) + " of flit " +
				  std::to_string(flit) + " is not within " +
				  std::to_string(flits) + " flits of 16 words");
		if (row[4] != 0 || row[5] != 63)
			malformed("value_and_locs_", "only whole words, bits 0 to 63, are supported");
		vdci.patches.push_back({
			static_cast<std::uint32_t>((flit * flit_words + word) * 8),
			find_input(vdci, definition->second.base), definition->second.offset });
	}
	vdci.present = true;
}

std::uint8_t hex_byte(std::string_view digits)
{
	std::uint8_t byte = 0;
	const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, byte, 16);

	if (error != std::errc() || end != digits.data() + 2)
		malformed("senConstants", "\"" + std::string(digits.substr(0, 2)) +
			  "\" is not a hexadecimal byte");
	return byte;
}

std::vector<std::uint8_t> read_constants(yyjson_val *array)
{
	std::vector<std::uint8_t> bytes;

	for (std::size_t i = 0; i < yyjson_arr_size(array); i++) {
		yyjson_val *value = yyjson_obj_get(yyjson_arr_get(array, i), "senconst_");
		const std::string_view text(yyjson_is_str(value) ? yyjson_get_str(value) : "");

		if (text.size() != 2 * flit_bytes)
			malformed("senConstants", "entry " + std::to_string(i) +
				  " must have a senconst_ of 256 hexadecimal digits");
		for (std::size_t at = 0; at < text.size(); at += 2)
			bytes.push_back(hex_byte(text.substr(at)));
	}
	return bytes;
}

/*
 * The values of a launch are those of the input symbols, in their order; a launch that has
 * more of them has one for each number, those that the bundle skips included. Sizes are last.
 */
std::uint64_t value_of(const Vdci &vdci, std::int32_t input, const std::int64_t *values,
		       std::size_t count)
{
	const std::size_t number = -1 - vdci.inputSym_[input];

	if (count == vdci.inputSym_.size())
		return values[input];
	if (vdci.inputSym_[input] <= first_size_symbol)
		return values[count - (vdci.inputSym_.size() - input)];
	if (number >= count)
		throw std::runtime_error("cannot compute the correction flits: argument " +
					 std::to_string(number) + " is used, the launch gives " +
					 std::to_string(count) + " values");
	return values[number];
}

std::string missing_sizes(const Vdci &vdci)
{
	std::size_t sizes = 0;

	for (const std::int64_t symbol : vdci.inputSym_)
		sizes += symbol <= first_size_symbol;
	return sizes ? "; sizes of dimensions among them: " + std::to_string(sizes) : "";
}

void apply(const Hcm &hcm, const std::vector<HcmPatch> &patches, void *output,
	   const std::int64_t *input, std::size_t count)
{
	auto *bytes = static_cast<std::uint8_t *>(output);

	if (!hcm.vdci.present)
		throw std::runtime_error("Expect one DCI: the vdci of a ComputeOnHost command is {}");
	if (count < hcm.vdci.inputSym_.size())
		throw std::runtime_error("cannot compute the correction flits: Number of inputs "
					 "mismatches: they need " +
					 std::to_string(hcm.vdci.inputSym_.size()) +
					 " values, the launch gives " + std::to_string(count) +
					 missing_sizes(hcm.vdci));
	if (!hcm.constants.empty())
		std::memcpy(bytes, hcm.constants.data(), hcm.constants.size());
	for (const HcmPatch &patch : patches) {
		std::uint64_t value = patch.addend;

		if (patch.input >= 0)
			value += value_of(hcm.vdci, patch.input, input, count);
		/* Words are little endian, on any host. */
		for (int i = 0; i < 8; i++)
			bytes[patch.offset + i] = value >> 8 * i;
	}
}
}

void Hcm::importJsonStr(const std::string &text)
{
	const Document document(yyjson_read(text.data(), text.size(), 0), yyjson_doc_free);
	yyjson_val *root = yyjson_doc_get_root(document.get());
	Hcm read;

	if (!yyjson_is_obj(root))
		throw std::runtime_error("cannot read hcm: it must be an object");
	yyjson_val *object = member(root, "vdci", false);
	read.constants = read_constants(yyjson_obj_get(root, "senConstants"));
	if (yyjson_obj_size(object))
		read_vdci(read.vdci, object, read.constants.size() / flit_bytes);
	*this = std::move(read);
}

namespace deeptools
{
bool buildFastHcmPatchPlan(FastHcmPatchPlan &plan, const Hcm &hcm)
{
	plan = {};
	if (!hcm.vdci.present)
		return false;
	plan.valid = true;
	plan.output_size = hcm.constants.size();
	plan.patches = hcm.vdci.patches;
	plan.num_input_symbols = hcm.vdci.inputSym_.size();
	return true;
}

bool processComputeOnHostCommandFast(FastHcmPatchPlan &plan, const Hcm &hcm, void *output,
				     const std::int64_t *input, std::size_t count)
{
	apply(hcm, plan.valid ? plan.patches : hcm.vdci.patches, output, input, count);
	return plan.valid;
}

void processComputeOnHostCommand(const Hcm &hcm, void *output, const void *input)
{
	const auto *values = static_cast<const std::int64_t *>(input);

	apply(hcm, hcm.vdci.patches, output, values, values ? hcm.vdci.inputSym_.size() : 0);
}

void processComputeOnHostCommand(const Hcm &hcm, void *output,
				 const std::vector<std::int64_t> *input)
{
	apply(hcm, hcm.vdci.patches, output, input ? input->data() : nullptr,
	      input ? input->size() : 0);
}

void processComputeOnHostCommand(const Hcm &hcm, void *output, std::nullptr_t)
{
	apply(hcm, hcm.vdci.patches, output, nullptr, 0);
}
}

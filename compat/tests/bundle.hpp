/* SPDX-License-Identifier: MIT */
/* A compiled bundle, prepared and launched from its spyreCodeDir step by step. */
#ifndef SPYRE_COMPAT_TESTS_BUNDLE_HPP
#define SPYRE_COMPAT_TESTS_BUNDLE_HPP

#include "check.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <flex/flex.hpp>
#include <spyre/sdsc.h>
#include <spyre/spyre.h>
#include <spyrecode-host-functions/processSpyreCodeArtifacts.h>
#include <spyrecode-host-functions/spyrecode.h>
#include <yyjson.h>

/* Included by one source of a program. */
namespace
{
constexpr int rows = 64, columns = 128;
constexpr std::size_t bytes = rows * columns * sizeof(float);
/* Bytes of LX that the front-end plans, and dxp_standalone keeps. */
constexpr std::uint32_t planned = 1625344;

/* A bundle's folder, which is removed at the end. It adds two tensors. */
struct Bundle {
	/*
	 * @in_lx: the tensor that another kernel leaves in LX or finds there, or none of the three.
	 * @has_size: the number of rows is a parameter, s0, a multiple of 8 up to @rows.
	 */
	explicit Bundle(int in_lx = -1, bool has_size = false)
		: inputs(in_lx < 0 ? 3 : 2), sized(has_size)
	{
		const char *tmp = getenv("TMPDIR");
		std::string name = std::string(tmp ? tmp : "/tmp") + "/spyre-compat-XXXXXX";
		spyre_sdsc_operand operand = {};
		spyre_kernel_options options = {};

		options.struct_size = sizeof(options);
		options.lx_kept = in_lx < 0 ? 0 : planned;

		ck_assert_ptr_nonnull(mkdtemp(name.data()));
		path = name;
		operand.rank = 2;
		operand.size[0] = rows;
		operand.size[1] = columns;
		ck_assert_int_eq(spyre_layout_init(&operand.layout, 2, operand.size,
						   SPYRE_FORMAT_IEEE_FP32), 0);
		const spyre_sdsc_operand operands[] = { operand, operand, operand };
		spyre_status status = spyre_sdsc_build("add", operands, 3,
						       in_lx < 0 && !sized ? 0 : 1, path.c_str());
		ck_assert_msg(!status, "%s", spyre_last_error());
		if (in_lx >= 0)
			place_in_lx(in_lx);
		if (sized)
			add_size();
		status = spyre_kernel_compile_ex(path.c_str(), nullptr, &options, nullptr);
		ck_assert_msg(!status, "%s", spyre_last_error());
	}
	Bundle(const Bundle &) = delete;
	Bundle &operator=(const Bundle &) = delete;
	~Bundle()
	{
		std::filesystem::remove_all(path);
	}

	/* Replaces the first occurrence of @from in a file. */
	void edit(const char *name, const std::string &from, const std::string &to) const
	{
		std::ifstream file(path / name);
		std::string text{ std::istreambuf_iterator<char>(file), {} };
		const std::size_t at = text.find(from);

		ck_assert_msg(at != text.npos, "%s has no %s", name, from.c_str());
		std::ofstream(path / name) << text.replace(at, from.size(), to);
	}

	/* Makes the rows a parameter, as the public front-end does. */
	void add_size() const
	{
		const std::string type = "!sdscbundle.input_arg<index, granularity=8, max_value=" +
					 std::to_string(rows) + ">";

		edit("bundle.mlir", ") {\n", ", %sym_0_1_base: " + type + ") {\n" +
		     "%sym_0_1 = sdscbundle.input_arg_extract value from %sym_0_1_base : " + type +
		     " -> index\n");
		edit("bundle.mlir", "sdsc_execute (", "sdsc_execute (%sym_0_1, ");
		edit("bundle.mlir", "\"symbol_ids\"=[", "\"symbol_ids\"=[-1000, ");
		edit("sdsc_0.json", "\"N_\": {",
		     "\"dimToSymbolMapping_\": {\"mb\": [-1000]}, \"N_\": {");
		edit("sdsc_0.json", "\"el_\": {", "\"el_\": {\"symbolicDimInfo_\": {\"mb\": "
		     "{\"maxSize_\": " + std::to_string(rows) + ", \"granularity_\": 8}},");
		edit("sdsc_0.json", "\"dscs_\": [",
		     "\"inputSymbolsAndTags_\": {\"-1000\": \"s0\"}, \"dscs_\": [");
	}

	std::string read(const std::string &name) const
	{
		std::ifstream file(path / "spyreCodeDir" / name, std::ios::binary);

		ck_assert_msg(file.is_open(), "cannot open %s", name.c_str());
		return { std::istreambuf_iterator<char>(file), {} };
	}

	/* Puts tensor @index at the start of LX of the only core. */
	void place_in_lx(int index) const
	{
		std::ifstream in(path / "sdsc_0.json");
		std::string text{ std::istreambuf_iterator<char>(in), {} };
		const std::size_t node =
			text.find("allocate-Tensor" + std::to_string(index) + "_hbm");
		const std::string address = "\"-" + std::to_string(index + 1) + "\"";

		ck_assert(node != std::string::npos);
		text.replace(text.find(address, node), address.size(), "\"0\"");
		text.replace(text.find("\"hbm\"", node), 5, "\"lx\"");
		std::ofstream(path / "sdsc_0.json") << text;
	}

	/* Addresses that the program has. */
	std::size_t inputs;
	std::filesystem::path path;
	bool sized;
};

std::string text_of(yyjson_val *object, const char *name)
{
	yyjson_val *value = yyjson_obj_get(object, name);

	ck_assert_msg(yyjson_is_str(value), "%s is not a string", name);
	return yyjson_get_str(value);
}

std::uint64_t number_of(yyjson_val *object, const char *name)
{
	return std::stoull(text_of(object, name));
}

/* A prepared bundle: the steps of its plans, with the addresses that they use. */
class Plan
{
public:
	Plan(const std::shared_ptr<flex::RuntimeContext> &runtime, const Bundle &bundle);
	~Plan()
	{
		yyjson_doc_free(document_);
	}
	void launch(flex::RuntimeStream *stream, const std::vector<std::int64_t> &addresses,
		    const std::vector<const flex::CompositeAddress *> &tensors,
		    const std::string &name = "");

private:
	yyjson_val *step(const char *plan, std::size_t index, const char *command);
	flex::CompositeAddress part(std::uint64_t dmva, std::uint64_t size) const;

	const std::size_t inputs_;
	yyjson_doc *document_;
	std::optional<flex::CompositeAddress> program_;
};

/* Returns the properties of a step, which must be @command. */
yyjson_val *Plan::step(const char *plan, std::size_t index, const char *command)
{
	yyjson_val *entry = yyjson_arr_get(
		yyjson_obj_get(yyjson_doc_get_root(document_), plan), index);

	ck_assert_str_eq(yyjson_get_str(yyjson_obj_get(entry, "command")), command);
	return yyjson_obj_get(entry, "properties");
}

flex::CompositeAddress Plan::part(std::uint64_t dmva, std::uint64_t size) const
{
	const flex::Chunk &base = program_->chunks()[0];
	const flex::LogicalAddress place(base.addr.region_id,
					 base.addr.offset + dmva - flex::PROG_OFFSET_BASE);

	return flex::CompositeAddress(flex::Chunk(place, size, base.domain_id));
}

Plan::Plan(const std::shared_ptr<flex::RuntimeContext> &runtime, const Bundle &bundle)
    : inputs_(bundle.inputs + (bundle.sized ? 1 : 0))
{
	const std::string json = bundle.read("spyrecode.json");
	const flex::AllocationDirective directive(flex::PlacementPolicy::Bind, { 0 }, std::nullopt,
						  flex::MemoryType::Program);

	document_ = yyjson_read(json.data(), json.size(), 0);
	ck_assert_ptr_nonnull(document_);
	yyjson_val *properties = step("JobPreparationPlan", 0, "Allocate");
	program_.emplace(runtime->getAllocator()->allocate(number_of(properties, "size"),
							   directive));
	properties = step("JobPreparationPlan", 1, "InitTransfer");
	std::string binary = bundle.read(text_of(properties, "init_bin_file"));
	const flex::CompositeAddress place =
		part(number_of(properties, "dev_ptr"), number_of(properties, "size"));
	flex::DmaParams *params =
		flex::createDmaParams(binary.data(), place.total_size(), true, &place);
	runtime->getDefaultStream()->launchOperationH2D(params);
	flex::destroyDmaParams(params);
}

void Plan::launch(flex::RuntimeStream *stream, const std::vector<std::int64_t> &addresses,
		  const std::vector<const flex::CompositeAddress *> &tensors,
		  const std::string &name)
{
	yyjson_val *properties = step("JobExecPlan", 0, "ComputeOnHost");
	std::vector<std::uint8_t> flits(number_of(properties, "size"));
	Hcm hcm;

	ck_assert_str_eq(yyjson_get_str(yyjson_obj_get(properties, "ihandle")), "");
	char *text = yyjson_val_write(yyjson_obj_get(properties, "hcm"), 0, nullptr);
	hcm.importJsonStr(text);
	free(text);
	ck_assert_uint_eq(hcm.vdci.inputSym_.size(), inputs_);
	deeptools::processComputeOnHostCommand(hcm, flits.data(), &addresses);

	properties = step("JobExecPlan", 1, "DataTransfer");
	ck_assert_str_eq(yyjson_get_str(yyjson_obj_get(properties, "dirn")), "false");
	const flex::CompositeAddress place =
		part(number_of(properties, "dev_ptr"), number_of(properties, "size"));
	flex::DmaParams *copy = flex::createDmaParams(flits.data(), flits.size(), true, &place);
	stream->launchOperationH2D(copy);
	flex::destroyDmaParams(copy);
	/* The buffer is used again by the next launch, which may be queued at once. */
	flits.assign(flits.size(), 0xff);

	properties = step("JobExecPlan", 2, "ComputeOnDevice");
	const flex::CompositeAddress program(program_->chunks()[0]);
	flex::ComputeParams *compute = flex::createComputeParams(
		&program, tensors, name.empty() ? text_of(properties, "name") : name,
		number_of(properties, "job_bin_ptr") - flex::PROG_OFFSET_BASE);
	try {
		stream->launchOperationCompute(compute);
	} catch (...) {
		flex::destroyComputeParams(compute);
		throw;
	}
	flex::destroyComputeParams(compute);
}
}

#endif /* SPYRE_COMPAT_TESTS_BUNDLE_HPP */

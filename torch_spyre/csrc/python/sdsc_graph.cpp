// SPDX-License-Identifier: MIT
/* The SDSC builder in Python: graphs, their plans, and bundles written from them. */
#include "sdsc_graph.h"

#include <dlfcn.h>

#include <memory>
#include <optional>

#include <ATen/EmptyTensor.h>
#include <pybind11/stl.h>

#include "runtime/layout.h"
#include "module.h"
#include "aten/number.h"
#include "aten/operand.h"
#include "aten/tensor.h"

namespace py = pybind11;

namespace torch_spyre {

OperandTuple to_tuple(const spyre_sdsc_operand &o)
{
	const spyre_layout &l = o.layout;

	return { { o.size, o.size + o.rank },
		 { l.device_size, l.device_size + l.device_rank },
		 { l.stride_map, l.stride_map + l.device_rank },
		 { l.dim_map, l.dim_map + l.device_rank },
		 static_cast<int>(l.device_format) };
}

spyre_sdsc_operand from_tuple(const OperandTuple &tuple)
{
	const auto &[size, device_size, stride_map, dim_map, format] = tuple;
	spyre_sdsc_operand o{};

	TORCH_CHECK(size.size() <= SPYRE_MAX_RANK, "spyre: an operand has at most ", SPYRE_MAX_RANK,
		    " dimensions, got ", size.size());
	TORCH_CHECK(stride_map.size() == device_size.size() && dim_map.size() == device_size.size(),
		    "spyre: device_size, stride_map and dim_map of an operand have ",
		    device_size.size(), ", ", stride_map.size(), " and ", dim_map.size(),
		    " entries; expected equal numbers");
	o.rank = static_cast<uint32_t>(size.size());
	std::copy(size.begin(), size.end(), o.size);
	check(spyre_layout_init_explicit(&o.layout, static_cast<uint32_t>(device_size.size()),
					 device_size.data(), stride_map.data(),
					 static_cast<spyre_format>(format), SPYRE_EA_STANDARD),
	      "an operand");
	o.layout.mapped = true;
	for (size_t j = 0; j < dim_map.size(); j++)
		o.layout.dim_map[j] = static_cast<int8_t>(dim_map[j]);
	return o;
}

namespace {

class PyGraph {
public:
	PyGraph() { check(spyre_sdsc_graph_create(&graph_), "a graph"); }
	~PyGraph() { spyre_sdsc_graph_destroy(graph_); }
	PyGraph(const PyGraph &) = delete;
	PyGraph &operator=(const PyGraph &) = delete;

	uint32_t add_argument(const OperandTuple &tuple, int padding)
	{
		spyre_sdsc_operand operand = from_tuple(tuple);
		uint32_t tensor;

		check(spyre_sdsc_graph_add_argument(graph_, &operand, &tensor), "an argument");
		check(spyre_sdsc_graph_set_padding(graph_, tensor,
						   static_cast<spyre_sdsc_padding>(padding)),
		      "an argument");
		return tensor;
	}

	uint32_t add_op(const std::string &op,
			const std::vector<std::pair<std::string, double>> &attributes,
			const std::vector<uint32_t> &inputs, std::optional<uint32_t> out,
			const std::vector<std::pair<int32_t, int64_t>> &division)
	{
		std::vector<spyre_sdsc_attribute> list;
		std::vector<spyre_sdsc_split> splits;
		uint32_t tensor = out.value_or(SPYRE_SDSC_NEW);

		for (const auto &[name, value] : attributes)
			list.push_back({ name.c_str(), value });
		for (const auto &[dim, slices] : division)
			splits.push_back({ dim, slices });
		check(spyre_sdsc_graph_set_division(graph_, splits.data(),
						    static_cast<uint32_t>(splits.size())),
		      op.c_str());
		check(spyre_sdsc_graph_add_op(graph_, op.c_str(), list.data(),
					      static_cast<uint32_t>(list.size()), inputs.data(),
					      static_cast<uint32_t>(inputs.size()), &tensor),
		      op.c_str());
		return tensor;
	}

	uint32_t mark()
	{
		uint32_t mark;

		check(spyre_sdsc_graph_mark(graph_, &mark), "a mark");
		return mark;
	}

	void rollback(uint32_t mark)
	{
		check(spyre_sdsc_graph_rollback(graph_, mark), "a rollback");
	}

	OperandTuple tensor(uint32_t number) const
	{
		spyre_sdsc_operand operand;

		check(spyre_sdsc_graph_get_tensor(graph_, number, &operand), "a tensor");
		return to_tuple(operand);
	}

	void write(const std::string &directory) const
	{
		py::gil_scoped_release nogil;

		check(spyre_sdsc_graph_write(graph_, 0, directory.c_str()), "a bundle");
	}

	py::dict plan() const;

private:
	spyre_sdsc_graph *graph_ = nullptr;
};

py::dict step_dict(const spyre_sdsc_plan_step &step)
{
	py::list dims, sizes, slices, asked;
	py::dict dict;

	for (uint32_t d = 0; d < step.num_dims; d++) {
		dims.append(step.dim[d]);
		sizes.append(step.size[d]);
		slices.append(step.num_choices ? step.choice[0].slices[d] : 1);
		asked.append(step.asked[d]);
	}
	dict["op"] = step.op;
	dict["dims"] = dims;
	dict["sizes"] = sizes;
	dict["slices"] = slices;
	dict["asked"] = asked;
	dict["cores"] = step.num_cores;
	dict["output"] = step.tensor[step.num_tensors - 1];
	return dict;
}

py::dict PyGraph::plan() const
{
	spyre_sdsc_plan *plan = nullptr;
	py::list steps, in_lx;
	py::dict dict;

	check(spyre_sdsc_graph_plan(graph_, 0, &plan), "a plan");
	std::unique_ptr<spyre_sdsc_plan, decltype(&spyre_sdsc_plan_free)> held(
		plan, spyre_sdsc_plan_free);
	for (uint32_t i = 0; i < plan->num_steps; i++)
		steps.append(step_dict(plan->step[i]));
	for (uint32_t i = 0; i < plan->num_tensors; i++) {
		const spyre_sdsc_plan_tensor &t = plan->tensor[i];

		if (t.place == SPYRE_SDSC_LX)
			in_lx.append(py::make_tuple(t.at, t.bytes, t.first, t.last));
	}
	dict["steps"] = steps;
	/* Of each tensor in LX: offset, bytes, first and last step. */
	dict["in_lx"] = in_lx;
	dict["lx_capacity"] = plan->lx_capacity;
	dict["lx_bytes"] = plan->lx_bytes;
	dict["pool_bytes"] = plan->pool_bytes;
	dict["cycles"] = plan->cycles;
	dict["bytes_read"] = plan->bytes_read;
	dict["bytes_written"] = plan->bytes_written;
	dict["macs"] = plan->macs;
	return dict;
}

/* The operand of a view of a tensor in the default layout, its offset in bytes, and whether
 * a kernel that writes it writes no other elements. */
std::optional<std::tuple<OperandTuple, uint64_t, bool>>
view_operand(const std::vector<int64_t> &size, const std::vector<int64_t> &stride,
	     const py::object &dtype, const std::vector<int64_t> &view_size,
	     const std::vector<int64_t> &view_stride, int64_t offset,
	     const std::optional<spyre_layout> &layout)
{
	c10::ScalarType type = py::cast<c10::ScalarType>(dtype);
	PlacementPtr placement;
	int64_t elements = 1;

	for (size_t d = 0; d < size.size(); d++)
		elements += size[d] ? (size[d] - 1) * stride[d] : 0;
	placement = layout ? explicit_placement(size, stride, type, *layout) :
			     strided_placement(size, stride, type, elements);
	/* A storage without memory, at address 0. */
	c10::Storage storage = make_storage(0, placement, 0);
	storage.set_nbytes(elements * c10::elementSize(type));
	at::Tensor view = make_tensor(std::move(storage), type, view_size, view_stride, offset);
	Operand operand;

	if (!operand_of(view, &operand))
		return std::nullopt;
	return std::make_tuple(to_tuple(operand.desc), operand.address, operand.whole_sticks);
}

/*
 * The layout of a tensor that covers its memory, if operands can have it and tensors of this size
 * and stride have another one by default.
 */
std::optional<spyre_layout> own_layout(const at::Tensor &tensor)
{
	const PlacementPtr &own = block_of(tensor.storage())->placement;
	int64_t bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
							 tensor.itemsize());

	if (!own || !tensor.numel() || tensor.storage_offset() || own->storage_offset ||
	    own->dtype != tensor.scalar_type() || tensor.sizes() != at::IntArrayRef(own->size) ||
	    tensor.strides() != at::IntArrayRef(own->stride) ||
	    own->layout.arrangement != SPYRE_EA_STANDARD ||
	    own->layout.device_format != device_format(own->dtype))
		return std::nullopt;
	PlacementPtr usual = strided_placement(tensor.sizes(), tensor.strides(),
					       tensor.scalar_type(), bytes / tensor.itemsize());
	if (spyre_layout_equal(&usual->layout, &own->layout))
		return std::nullopt;
	return own->layout;
}

/* Path of the libspyre that this module has loaded. */
std::string library_path()
{
	Dl_info info;

	TORCH_CHECK(dladdr(reinterpret_cast<void *>(&spyre_version), &info) && info.dli_fname,
		    "spyre: cannot find the file of libspyre: dladdr() does not know it");
	return info.dli_fname;
}

void compile_bundle(const std::string &directory)
{
	py::gil_scoped_release nogil;
	const char *cores = std::getenv("SENCORES");

	check(spyre_kernel_compile(directory.c_str(), nullptr,
				   cores ? static_cast<uint32_t>(std::atoi(cores)) : 0, nullptr),
	      "a bundle");
}

const Binding binding([](py::module_ &module) {
	py::class_<PyGraph>(module, "_Graph")
		.def(py::init<>())
		.def("add_argument", &PyGraph::add_argument)
		.def("add_op", &PyGraph::add_op, py::arg("op"), py::arg("attributes"),
		     py::arg("inputs"), py::arg("out"),
		     py::arg("division") = std::vector<std::pair<int32_t, int64_t>>())
		.def("mark", &PyGraph::mark)
		.def("rollback", &PyGraph::rollback)
		.def("tensor", &PyGraph::tensor)
		.def("write", &PyGraph::write)
		.def("plan", &PyGraph::plan);
	module.def("_view_operand", view_operand, py::arg("size"), py::arg("stride"),
		   py::arg("dtype"), py::arg("view_size"), py::arg("view_stride"),
		   py::arg("offset"), py::arg("layout") = py::none());
	module.def("_own_layout", own_layout);
	module.def("_device_format", [](const py::object &dtype) {
		return static_cast<int>(device_format(py::cast<c10::ScalarType>(dtype)));
	});
	module.def("_number_in", [](const py::object &dtype, double value) {
		return number_in(py::cast<c10::ScalarType>(dtype), value);
	});
	module.def("_fits_number", [](const py::object &dtype, double value) {
		return fit_number(py::cast<c10::ScalarType>(dtype), &value);
	});
	module.def("_stored_number", [](const py::object &dtype, double value) {
		return stored_number(py::cast<c10::ScalarType>(dtype), value);
	});
	module.def("_library_path", library_path);
	module.def("_compile_bundle", compile_bundle);
});

} // namespace

} // namespace torch_spyre

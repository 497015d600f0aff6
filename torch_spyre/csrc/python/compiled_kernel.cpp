// SPDX-License-Identifier: MIT
/*
 * A kernel of torch.compile: a bundle that takes tensors of PyTorch. The operand of
 * an argument is computed once and then only compared. Results are allocated here,
 * so the generated code makes one call per kernel.
 */
#include <ATen/EmptyTensor.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/launch_note.h"
#include "runtime/layout.h"
#include "module.h"
#include "sdsc_graph.h"
#include "aten/copy.h"
#include "aten/operand.h"
#include "aten/tensor.h"

namespace py = pybind11;

namespace torch_spyre {

namespace {

/* A tensor that the kernel reads: a view of an argument of the call. */
struct Input {
	std::vector<int64_t> size, stride;
	int64_t offset;
	spyre_sdsc_operand expected;
	/* The placement of the argument for which the kernel was compiled. */
	PlacementPtr planned;
	/* Placement of the last tensor that matched. */
	PlacementPtr placement;
	std::vector<int64_t> base_size, base_stride;
	int64_t base_offset = 0;
	uint64_t bytes = 0;	/* offset from the storage's first stick */
	uint64_t copies = 0;
};

struct Output {
	c10::ScalarType dtype;
	std::vector<int64_t> size, stride;
	PlacementPtr placement;
	int64_t bytes;
};

/* The next device dim from @dim on with a size other than 1, which affects addresses. */
uint32_t next_dim(const spyre_layout &layout, uint32_t dim)
{
	while (dim + 1 < layout.device_rank && layout.device_size[dim] == 1)
		dim++;
	return dim;
}

bool same_dims(const spyre_layout &a, const spyre_layout &b)
{
	uint32_t i = next_dim(a, 0), j = next_dim(b, 0);

	while (i < a.device_rank && j < b.device_rank) {
		if (a.device_size[i] != b.device_size[j] || a.dim_map[i] != b.dim_map[j])
			return false;
		i = next_dim(a, i + 1);
		j = next_dim(b, j + 1);
	}
	return i >= a.device_rank && j >= b.device_rank;
}

bool same_operand(const spyre_sdsc_operand &a, const spyre_sdsc_operand &b)
{
	return a.rank == b.rank && std::equal(a.size, a.size + a.rank, b.size) &&
	       a.layout.device_format == b.layout.device_format &&
	       a.layout.arrangement == b.layout.arrangement && same_dims(a.layout, b.layout);
}

/* The kernel of a card's context, which a reset may have replaced. */
struct Loaded {
	std::shared_ptr<spyre_kernel> kernel;
	uint64_t generation;
};

class CompiledKernel {
public:
	CompiledKernel(std::string name, std::string directory, const py::list &inputs,
		       const py::list &outputs, std::string title, std::string key);
	py::tuple call(const py::args &args);
	uint64_t copies() const;

	const std::string name, directory;
	/* The operations of ATen, and the bundle's key in the names of events. */
	const std::string title, key;

private:
	std::vector<Input> inputs_;
	std::vector<Output> outputs_;
	std::vector<Loaded> loaded_;	/* by card; read and written with the GIL */

	std::shared_ptr<spyre_kernel> kernel(c10::DeviceIndex device);
	spyre_devptr address(Input &input, const at::Tensor &base, std::vector<at::Tensor> *held);
	void find(Input &input, const at::Tensor &base, std::vector<at::Tensor> *held,
		  spyre_devptr *address);
	void describe(KernelNote *note) const;
};

c10::ScalarType dtype_of(const py::handle &name)
{
	return py::cast<c10::ScalarType>(
		py::module_::import("torch").attr(py::cast<std::string>(name).c_str()));
}

/* The placement that a description gives, and the bytes of its elements on the host. */
PlacementPtr planned_placement(const py::handle &item, int64_t *bytes)
{
	auto size = py::cast<std::vector<int64_t>>(item["placed_size"]);
	auto stride = py::cast<std::vector<int64_t>>(item["placed_stride"]);
	c10::ScalarType dtype = dtype_of(item["dtype"]);
	int64_t item_bytes = static_cast<int64_t>(c10::elementSize(dtype));

	*bytes = at::detail::computeStorageNbytes(size, stride, item_bytes);
	if (!item["placed_layout"].is_none())
		return explicit_placement(size, stride, dtype,
					  py::cast<spyre_layout>(item["placed_layout"]));
	return strided_placement(size, stride, dtype, *bytes / item_bytes);
}

/* A copy of a tensor in another placement. Bytes between its elements are copied, too,
 * if a view may read them. */
at::Tensor copy_placed(const at::Tensor &base, const PlacementPtr &placement)
{
	int64_t bytes = at::detail::computeStorageNbytes(base.sizes(), base.strides(),
							 base.itemsize());
	at::Tensor made = make_tensor(make_storage(base.device().index(), placement, bytes),
				      base.scalar_type(), base.sizes(), base.strides());

	if (base.is_non_overlapping_and_dense()) {
		torch_spyre::copy(made, base, true);
	} else {
		int64_t elements = bytes / base.itemsize();

		torch_spyre::copy(made.as_strided({ elements }, { 1 }),
				  base.as_strided({ elements }, { 1 }), true);
	}
	return made;
}

CompiledKernel::CompiledKernel(std::string kernel_name, std::string path, const py::list &inputs,
			       const py::list &outputs, std::string operations,
			       std::string event_key)
	: name(std::move(kernel_name)), directory(std::move(path)), title(std::move(operations)),
	  key(std::move(event_key))
{
	for (const auto &item : inputs) {
		Input input;

		input.size = py::cast<std::vector<int64_t>>(item["size"]);
		input.stride = py::cast<std::vector<int64_t>>(item["stride"]);
		input.offset = py::cast<int64_t>(item["offset"]);
		input.expected = from_tuple(py::cast<OperandTuple>(item["operand"]));
		int64_t bytes;
		input.planned = planned_placement(item, &bytes);
		inputs_.push_back(std::move(input));
	}
	for (const auto &item : outputs) {
		Output output;

		output.dtype = dtype_of(item["dtype"]);
		output.size = py::cast<std::vector<int64_t>>(item["size"]);
		output.stride = py::cast<std::vector<int64_t>>(item["stride"]);
		output.placement = planned_placement(item, &output.bytes);
		outputs_.push_back(std::move(output));
	}
}

std::shared_ptr<spyre_kernel> CompiledKernel::kernel(c10::DeviceIndex device)
{
	size_t index = static_cast<size_t>(device);
	uint64_t now = generation(device);
	std::shared_ptr<spyre_kernel> fresh;

	if (index >= loaded_.size())
		loaded_.resize(index + 1);
	if (loaded_[index].kernel && loaded_[index].generation == now)
		return loaded_[index].kernel;
	{
		py::gil_scoped_release nogil;
		spyre_kernel *loaded;

		check(spyre_kernel_load(context(device), directory.c_str(), &loaded), name.c_str());
		fresh = keep_kernel(loaded, device, now);
	}
	loaded_[index] = { fresh, now };
	return fresh;
}

/* Finds the operand of an argument; copies a tensor with another layout than compiled for. */
void CompiledKernel::find(Input &input, const at::Tensor &base, std::vector<at::Tensor> *held,
			  spyre_devptr *address)
{
	/* Modes of PyTorch refuse subclasses of tensors, and need not see the kernel's views. */
	c10::impl::ExcludeDispatchKeyGuard no_python(c10::python_ks);
	at::Tensor view = base.as_strided(input.size, input.stride,
					  base.storage_offset() + input.offset);
	Operand operand;

	if (operand_of(view, &operand) && same_operand(operand.desc, input.expected)) {
		input.placement = block_of(base.storage())->placement;
		input.base_size = base.sizes().vec();
		input.base_stride = base.strides().vec();
		input.base_offset = base.storage_offset();
		input.bytes = operand.address - block_of(base.storage())->address;
		*address = operand.address;
		return;
	}
	input.copies++;
	at::Tensor dense = dense_copy(view);
	if (!operand_of(dense, &operand) || !same_operand(operand.desc, input.expected)) {
		dense = copy_placed(base, input.planned);
		view = dense.as_strided(input.size, input.stride, input.offset);
		TORCH_CHECK(operand_of(view, &operand) &&
			    same_operand(operand.desc, input.expected),
			    name, ": an argument of size ", base.sizes(), " and stride ",
			    base.strides(), " does not lie on the card as it did when this was "
			    "compiled; call .contiguous() on it");
	}
	held->push_back(dense);
	*address = operand.address;
}

spyre_devptr CompiledKernel::address(Input &input, const at::Tensor &base,
				     std::vector<at::Tensor> *held)
{
	const Block *block = block_of(base.storage());
	spyre_devptr found;

	if (block->placement && block->placement == input.placement &&
	    base.storage_offset() == input.base_offset && base.sizes() == input.base_size &&
	    base.strides() == input.base_stride)
		return block->address + input.bytes;
	find(input, base, held, &found);
	return found;
}

/* Describes the kernel to the profiler. */
void CompiledKernel::describe(KernelNote *note) const
{
	note->title = title;
	note->key = key;
	note->directory = directory;
	for (const Input &i : inputs_)
		note->shapes += (note->shapes.empty() ? "" : ", ") +
				shape_text(i.size.data(), static_cast<uint32_t>(i.size.size()),
					   i.expected.layout.device_format);
	for (const Output &o : outputs_)
		note->shapes += (&o == outputs_.data() ? " -> " : ", ") +
				shape_text(o.size.data(), static_cast<uint32_t>(o.size.size()),
					   o.placement->layout.device_format);
}

py::tuple CompiledKernel::call(const py::args &args)
{
	std::vector<at::Tensor> held;
	std::vector<spyre_arg> argument(outputs_.size() + inputs_.size());
	py::tuple results(outputs_.size());
	c10::DeviceIndex device = current_device();

	TORCH_CHECK(args.size() == inputs_.size(), name, " takes ", inputs_.size(),
		    " tensors, got ", args.size());
	for (size_t i = 0; i < inputs_.size(); i++) {
		PyObject *object = args[i].ptr();

		TORCH_CHECK(THPVariable_Check(object), name, ": argument ", i,
			    " is not a tensor, but of type ", Py_TYPE(object)->tp_name);
		const at::Tensor &base = THPVariable_Unpack(object);
		TORCH_CHECK(base.device().is_privateuseone(), name, ": argument ", i,
			    " is on ", base.device(), ", not on spyre");
		if (i == 0)
			device = base.device().index();
		TORCH_CHECK(base.device().index() == device, name, ": argument ", i, " is on ",
			    base.device(), ", the first one on spyre:", int(device));
		argument[outputs_.size() + i] = { address(inputs_[i], base, &held), nullptr };
	}
	std::shared_ptr<spyre_kernel> loaded = kernel(device);
	for (size_t i = 0; i < outputs_.size(); i++) {
		const Output &o = outputs_[i];
		at::Tensor tensor = make_tensor(make_storage(device, o.placement, o.bytes), o.dtype,
						o.size, o.stride);

		block_of(tensor.storage())->clean_padding = false;
		argument[i] = { block_of(tensor.storage())->address, nullptr };
		results[i] = py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(tensor)));
	}
	NotedLaunch noted(loaded, [this](KernelNote *note) { describe(note); });
	check(spyre_launch(current_native_stream(device), loaded.get(), argument.data(),
			   static_cast<uint32_t>(argument.size())),
	      name.c_str());
	return results;
}

uint64_t CompiledKernel::copies() const
{
	uint64_t sum = 0;

	for (const Input &input : inputs_)
		sum += input.copies;
	return sum;
}

const Binding binding([](py::module_ &module) {
	py::class_<CompiledKernel>(module, "_CompiledKernel")
		.def(py::init<std::string, std::string, const py::list &, const py::list &,
			      std::string, std::string>(),
		     py::arg("name"), py::arg("directory"), py::arg("inputs"), py::arg("outputs"),
		     py::arg("title"), py::arg("key"))
		.def("__call__", &CompiledKernel::call)
		.def_readonly("name", &CompiledKernel::name)
		.def_readonly("directory", &CompiledKernel::directory)
		.def_property_readonly("copies", &CompiledKernel::copies,
				       "Arguments that were copied to lie as expected.");
});

} // namespace

} // namespace torch_spyre

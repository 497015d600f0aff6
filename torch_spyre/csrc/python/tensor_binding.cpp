// SPDX-License-Identifier: MIT
/* Tensors with layouts for Python. */
#include <ATen/ops/as_strided.h>
#include <c10/core/DefaultDtype.h>
#include <pybind11/stl.h>

#include "runtime/allocator.h"
#include "aten/constant.h"
#include "runtime/device.h"
#include "module.h"
#include "aten/copy.h"
#include "aten/tensor.h"

namespace torch_spyre {

namespace py = pybind11;

namespace {

using Numbers = std::vector<int64_t>;

c10::DeviceIndex index_of(const std::optional<at::Device> &device)
{
	if (!device)
		return current_device();
	TORCH_CHECK_VALUE(device->is_privateuseone(), "expected a spyre device, got ", *device);
	return device->has_index() ? device->index() : current_device();
}

at::Tensor empty_strided_with_layout(const Numbers &size, const Numbers &stride,
				     at::ScalarType dtype, const spyre_layout &layout,
				     std::optional<at::Device> device)
{
	return empty_with_layout(size, stride, dtype, layout, index_of(device));
}

at::Tensor empty_dense_with_layout(const Numbers &size, const spyre_layout &layout,
				   std::optional<at::ScalarType> dtype,
				   std::optional<at::Device> device,
				   std::optional<bool> pin_memory,
				   std::optional<at::MemoryFormat> format)
{
	Numbers stride(size.size());
	int64_t step = 1;

	TORCH_CHECK(!pin_memory.value_or(false), "spyre: cannot pin a tensor on a card");
	TORCH_CHECK(!format || *format == at::MemoryFormat::Contiguous ||
			    *format == at::MemoryFormat::Preserve,
		    "spyre: cannot create a tensor with a device_layout in memory format ",
		    *format, "; use torch.contiguous_format");
	for (size_t d = size.size(); d-- > 0;) {
		stride[d] = step;
		step *= std::max<int64_t>(size[d], 1);
	}
	return empty_with_layout(size, stride,
				 dtype.value_or(at::typeMetaToScalarType(at::get_default_dtype())),
				 layout, index_of(device));
}

at::Tensor reinterpret(const at::Tensor &tensor, const Numbers &size, const Numbers &stride,
		       int64_t increment)
{
	return at::as_strided(tensor.detach(), size, stride, tensor.storage_offset() + increment);
}

/* Offsets are in elements and have to be whole sticks on the card. */
at::Tensor reinterpret_layout(const at::Tensor &tensor, const Numbers &size,
			      const Numbers &stride, int64_t offset, const spyre_layout &layout)
{
	return reinterpret_with_layout(tensor, size, stride,
				       offset * spyre_format_bytes(layout.device_format), layout);
}

at::Tensor as_strided_layout(const at::Tensor &tensor, const Numbers &size,
			     const Numbers &stride, std::optional<int64_t> offset,
			     const spyre_layout &layout)
{
	return reinterpret_layout(tensor, size, stride, offset.value_or(tensor.storage_offset()),
				  layout);
}

spyre_layout layout_of(const at::Tensor &tensor)
{
	TORCH_CHECK_VALUE(tensor.is_privateuseone(), "expected a tensor of a spyre device, got ",
			  tensor.device());
	return placement_of(tensor).layout;
}

/* Sets the layout of a tensor without moving its elements. */
void set_layout(const at::Tensor &tensor, const spyre_layout &layout)
{
	Block *block = placed_block(tensor);

	TORCH_CHECK(spyre_layout_bytes(&layout) <= block->bytes, "spyre: a layout of ",
		    spyre_layout_bytes(&layout), " bytes does not fit memory of ", block->bytes,
		    " bytes");
	block->placement = explicit_placement(tensor.sizes(), tensor.strides(),
					      tensor.scalar_type(), layout);
	block->forget();
}

at::Tensor to_layout(const at::Tensor &tensor, const spyre_layout &layout,
		     std::optional<at::ScalarType> dtype, std::optional<at::Device> device)
{
	std::optional<at::Device> target = device;

	if (!target && tensor.is_privateuseone())
		target = tensor.device();

	at::Tensor result = empty_with_layout(tensor.sizes(), tensor.strides(),
					      dtype.value_or(tensor.scalar_type()), layout,
					      index_of(target));

	copy(result, tensor, false);
	return result;
}

void define(py::module_ &m)
{
	m.def("spyre_empty_with_layout", empty_strided_with_layout, py::arg("size"),
	      py::arg("stride"), py::arg("dtype"), py::arg("device_layout"),
	      py::arg("device") = py::none());
	m.def("empty_with_layout", empty_dense_with_layout, py::arg("size"),
	      py::arg("device_layout"), py::arg("dtype") = py::none(),
	      py::arg("device") = py::none(), py::arg("pin_memory") = py::none(),
	      py::arg("memory_format") = py::none());
	m.def("as_strided_with_layout", as_strided_layout, py::arg("tensor"), py::arg("size"),
	      py::arg("stride"), py::arg("storage_offset"), py::arg("device_layout"));
	m.def("reinterpret_tensor", reinterpret, py::arg("tensor"), py::arg("size"),
	      py::arg("stride"), py::arg("offset_increment") = 0);
	m.def("reinterpret_tensor_with_layout", reinterpret_layout, py::arg("tensor"),
	      py::arg("size"), py::arg("stride"), py::arg("offset_increment"),
	      py::arg("device_layout"));
	m.def("copy_tensor",
	      [](const at::Tensor &source, const at::Tensor &target, bool non_blocking) {
		      copy(target, source, non_blocking);
		      return target;
	      },
	      py::arg("self"), py::arg("dst"), py::arg("non_blocking") = false);
	m.def("get_spyre_tensor_layout", layout_of, py::arg("tensor"));
	m.def("set_spyre_tensor_layout", set_layout, py::arg("tensor"), py::arg("device_layout"));
	m.def("to_with_layout", to_layout, py::arg("tensor"), py::arg("device_layout"),
	      py::arg("dtype") = py::none(), py::arg("device") = py::none());
	m.def("encode_constant", encode_constant, py::arg("value"), py::arg("device_dtype"));
}

const Binding binding(define);

} // namespace

} // namespace torch_spyre

// SPDX-License-Identifier: MIT
/*
 * Layouts in files. PyTorch keeps a map from names to flags with each tensor;
 * a layout that is not the default one is a name there:
 *
 *	spyre.layout.1 FORMAT ARRANGEMENT DTYPE rank sizes strides device_rank sizes strides
 *
 * with the sizes and strides of the host tensor that the storage holds first.
 * Values are stored as the host tensor, so such files load on any device.
 */
#include <sstream>

#include <torch/csrc/jit/serialization/pickler_helper.h>

#include "tensor.h"

namespace torch_spyre {

namespace {

constexpr const char *PREFIX = "spyre.layout.";
constexpr const char *VERSION = "1";

using Flags = std::unordered_map<std::string, bool>;

bool is_default(const Placement &placement)
{
	spyre_layout layout = default_layout(placement.size, placement.dtype);

	return placement.storage_offset == 0 && spyre_layout_equal(&layout, &placement.layout);
}

void put(std::ostream &out, const int64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out << ' ' << numbers[i];
}

void write(const at::Tensor &tensor, Flags &flags)
{
	std::ostringstream out;

	/*
	 * Fake tensors of torch.compile have device spyre, storages of the meta device and
	 * sizes that may be symbols.
	 */
	if (!tensor.storage().device().is_privateuseone() || !tensor.numel() ||
	    !block_of(tensor.storage())->placement)
		return;

	const Placement &p = placement_of(tensor);

	if (is_default(p))
		return;
	out << PREFIX << VERSION << ' ' << spyre_format_name(p.layout.device_format) << ' '
	    << p.layout.arrangement << ' ' << static_cast<int>(p.dtype) << ' ' << p.size.size();
	put(out, p.size.data(), p.size.size());
	put(out, p.stride.data(), p.stride.size());
	out << ' ' << p.layout.device_rank;
	put(out, p.layout.device_size, p.layout.device_rank);
	put(out, p.layout.stride_map, p.layout.device_rank);
	flags[out.str()] = true;
}

std::vector<int64_t> take(std::istream &in, size_t n)
{
	std::vector<int64_t> numbers(n);

	for (int64_t &number : numbers)
		in >> number;
	return numbers;
}

PlacementPtr parse(const std::string &text)
{
	std::istringstream in(text.substr(std::strlen(PREFIX)));
	std::string version, format;
	int arrangement = 0, dtype = 0;
	size_t rank = 0, device_rank = 0;
	spyre_layout layout;

	in >> version >> format >> arrangement >> dtype >> rank;
	TORCH_CHECK(version == VERSION, "spyre: cannot read layouts of version ", version,
		    ": this torch_spyre reads version ", VERSION, "; save the tensors again");
	TORCH_CHECK(in && rank <= SPYRE_MAX_RANK, "spyre: cannot parse the layout '", text,
		    "': its head is incomplete or has more than ", SPYRE_MAX_RANK, " dimensions");

	std::vector<int64_t> size = take(in, rank), stride = take(in, rank);

	in >> device_rank;
	TORCH_CHECK(in && device_rank <= SPYRE_MAX_DEVICE_RANK,
		    "spyre: cannot parse the layout '", text,
		    "': its device sizes are incomplete or more than ", SPYRE_MAX_DEVICE_RANK);

	std::vector<int64_t> device_size = take(in, device_rank);
	std::vector<int64_t> stride_map = take(in, device_rank);

	TORCH_CHECK(in && dtype >= 0 && dtype < static_cast<int>(c10::ScalarType::NumOptions),
		    "spyre: cannot parse the layout '", text,
		    "': it ends early or names the unknown dtype ", dtype);
	check(spyre_layout_init_explicit(&layout, device_rank, device_size.data(),
					 stride_map.data(), spyre_format_from_name(format.c_str()),
					 static_cast<spyre_element_arrangement>(arrangement)),
	      "reading a layout");
	return explicit_placement(size, stride, static_cast<c10::ScalarType>(dtype), layout);
}

void read(const at::Tensor &tensor, Flags &flags)
{
	for (const auto &[name, set] : flags) {
		if (name.rfind(PREFIX, 0) != 0 || !tensor.numel())
			continue;

		PlacementPtr placement = parse(name);
		const Placement &held = placement_of(tensor);

		/* Tensors that share a storage have the same layout. */
		if (held.dtype == placement->dtype && held.size == placement->size &&
		    held.stride == placement->stride &&
		    spyre_layout_equal(&held.layout, &placement->layout))
			continue;
		replace_storage(tensor.storage(), placement, tensor.storage().nbytes());
	}
}

const bool registered = [] {
	torch::jit::TensorBackendMetaRegistry(c10::DeviceType::PrivateUse1, write, read);
	return true;
}();

} // namespace

} // namespace torch_spyre

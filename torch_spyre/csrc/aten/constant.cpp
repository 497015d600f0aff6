// SPDX-License-Identifier: MIT
/* Constants as the card codes them, for SDSC fields; docs/numerics.md has the rules. */
#include "constant.h"

#include <c10/util/Exception.h>

namespace torch_spyre {

int64_t encode_constant(double value, spyre_format format)
{
	std::optional<int64_t> code = code_of(value, format);

	TORCH_CHECK(code, "spyre: cannot encode a constant in format ",
		    spyre_format_name(format) ? spyre_format_name(format) : "INVALID");
	return *code;
}

} // namespace torch_spyre

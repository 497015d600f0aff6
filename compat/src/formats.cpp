// SPDX-License-Identifier: MIT
/* Formats: stick sizes, names, conversions of single numbers, and DCIs as text. */
#include "formats.hpp"

#include <spyre/layout.h>

#include <stdexcept>

#include "error.hpp"
#include "spyrecode-host-functions/sendataconvert/sen_data_convert.h"
#include "spyrecode-host-functions/sendataconvert/sen_host_ops.h"

namespace spyre_compat
{
static_assert(static_cast<int>(DataFormats::SEN169_FP16) == SPYRE_FORMAT_SEN169_FP16);
static_assert(static_cast<int>(DataFormats::SENUINT32) == SPYRE_FORMAT_SENUINT32);
static_assert(static_cast<int>(DataFormats::BOOL) == SPYRE_FORMAT_BOOL);

spyre_format to_spyre(DataFormats format) noexcept
{
	const auto number = static_cast<std::int32_t>(format);

	if (number < 0 || number > SPYRE_FORMAT_BOOL)
		return SPYRE_FORMAT_INVALID;
	return static_cast<spyre_format>(number);
}

[[noreturn]] void fail(spyre_status status, const char *what)
{
	std::string text = std::string(what) + ": " + spyre_status_name(status);
	const char *detail = spyre_last_error();

	throw std::runtime_error(text + ": " + (*detail ? detail : spyre_status_text(status)));
}
}

std::int64_t DataFormatToStickSize::operator[](DataFormats format) const noexcept
{
	const std::size_t bytes = spyre_format_bytes(spyre_compat::to_spyre(format));

	switch (format) {
	case DataFormats::SENINT4:
		return 2 * SPYRE_STICK;
	case DataFormats::SENINT2:
	case DataFormats::SENUINT2:
		return 4 * SPYRE_STICK;
	default:
		return bytes && SPYRE_STICK % bytes == 0 ? SPYRE_STICK / bytes : 0;
	}
}

std::string EnumsConversion::dataFormatsToString(DataFormats format)
{
	const char *name = spyre_format_name(spyre_compat::to_spyre(format));

	return name && format != DataFormats::INVALID ? name : "INVALID";
}

namespace deeptools
{
[[noreturn]] void raise_error(const std::string &text, const char *file, int line)
{
	throw std::runtime_error(text + " (" + file + ":" + std::to_string(line) + ")");
}

std::uint32_t FloatToFp16Bin(float value)
{
	const double number = value;
	std::uint16_t bits;

	spyre_compat::check(spyre_format_encode(SPYRE_FORMAT_SEN169_FP16, &number, 1, &bits),
			    "cannot convert a number to SEN169_FP16");
	return bits;
}
}

namespace
{
void put(std::ostream &out, const char *name, const std::vector<std::int64_t> &values)
{
	const char *separator = "";

	out << '"' << name << "\": [";
	for (const std::int64_t value : values) {
		out << separator << value;
		separator = ", ";
	}
	out << ']';
}

void put(std::ostream &out, const data_conversion_stride_info &box)
{
	out << '{';
	put(out, "size_", box.size_);
	out << ", ";
	put(out, "stride_src_", box.stride_src_);
	out << ", ";
	put(out, "stride_dst_", box.stride_dst_);
	out << ", \"offset_src_\": " << box.offset_src_;
	out << ", \"offset_dst_\": " << box.offset_dst_ << '}';
}
}

void data_conversion_info::exportJson(std::stringstream &out) const
{
	const char *separator = "";

	/* Names of data structures are identifiers, which need no escapes in JSON. */
	out << "{\"dci_dsName_\": \"" << dci_dsName_ << "\", \"isHostToSen_\": "
	    << (isHostToSen_ ? "true" : "false") << ", \"dataformat_src_\": \""
	    << EnumsConversion::dataFormatsToString(dataformat_src_)
	    << "\", \"dataformat_dst_\": \""
	    << EnumsConversion::dataFormatsToString(dataformat_dst_) << "\", \"dcsi_\": [";
	for (const auto &box : dcsi_) {
		out << separator;
		put(out, box);
		separator = ", ";
	}
	out << "], ";
	put(out, "input_shape_", input_shape_);
	out << ", ";
	put(out, "output_shape_", output_shape_);
	out << '}';
}

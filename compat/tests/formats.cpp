// SPDX-License-Identifier: MIT
/* util/sendefs and spyrecode-host-functions/sendataconvert, as the front-end uses them. */
#include "check.hpp"

#include <cmath>
#include <sstream>
#include <string>

#include <spyrecode-host-functions/sendataconvert/sen_data_convert.h>
#include <spyrecode-host-functions/sendataconvert/sen_host_ops.h>
#include <util/sendefs/sendefs.h>

namespace
{
struct format {
	DataFormats format;
	const char *name;
	std::int64_t stick;
};

const format formats[] = {
	{ DataFormats::INVALID, "INVALID", 0 },
	{ DataFormats::SEN169_FP16, "SEN169_FP16", 64 },
	{ DataFormats::IEEE_FP32, "IEEE_FP32", 32 },
	{ DataFormats::SEN143_FP8, "SEN143_FP8", 128 },
	{ DataFormats::SEN152_FP8, "SEN152_FP8", 128 },
	{ DataFormats::SEN153_FP9, "SEN153_FP9", 0 },
	{ DataFormats::SEN18F_FP24, "SEN18F_FP24", 0 },
	{ DataFormats::SENINT2, "SENINT2", 512 },
	{ DataFormats::SENINT4, "SENINT4", 256 },
	{ DataFormats::SENINT8, "SENINT8", 128 },
	{ DataFormats::SENINT16, "SENINT16", 64 },
	{ DataFormats::SENINT24, "SENINT24", 0 },
	{ DataFormats::SENUINT2, "SENUINT2", 512 },
	{ DataFormats::SENUINT32, "SENUINT32", 32 },
	{ DataFormats::IEEE_INT32, "IEEE_INT32", 32 },
	{ DataFormats::IEEE_INT64, "IEEE_INT64", 16 },
	{ DataFormats::IEEE_FP16, "IEEE_FP16", 64 },
	{ DataFormats::BFLOAT16, "BFLOAT16", 64 },
	{ DataFormats::BOOL, "BOOL", 128 },
	{ static_cast<DataFormats>(19), "INVALID", 0 },
	{ static_cast<DataFormats>(-1), "INVALID", 0 },
};

std::string name_of(int value)
{
	switch (value) {
	case 0:
		return "zero";
	default:
		DT_ERROR("no name for " + std::to_string(value));
	}
}
}

START_TEST(names_and_sticks)
{
	for (const format &f : formats) {
		const auto stick = static_cast<std::int64_t>(dataFormatToStickSize[f.format]);

		check_text(EnumsConversion::dataFormatsToString(f.format), f.name);
		ck_assert_int_eq(stick, f.stick);
	}
}
END_TEST

START_TEST(error_macro)
{
	check_text(name_of(0), "zero");
	ck_throws(name_of(7), "no name for 7");
	ck_throws(name_of(7), "formats.cpp");
}
END_TEST

START_TEST(single_numbers)
{
	ck_assert_uint_eq(deeptools::BinaryConvert<std::uint32_t>(1.5f), 0x3fc00000);
	ck_assert_uint_eq(deeptools::BinaryConvert<std::uint32_t>(-0.0f), 0x80000000);
	/* DL16: 6 exponent bits with a bias of 31, 9 fraction bits. */
	ck_assert_uint_eq(deeptools::FloatToFp16Bin(1.0f), 31 << 9);
	ck_assert_uint_eq(deeptools::FloatToFp16Bin(-1.5f), 0x8000 | 31 << 9 | 1 << 8);
	ck_assert_uint_eq(deeptools::FloatToFp16Bin(0.0f), 0);
}
END_TEST

START_TEST(conversion_info)
{
	data_conversion_info dci{};
	data_conversion_stride_info box;
	std::stringstream text;

	ck_assert(!dci.isHostToSen_ && dci.dcsi_.empty());
	ck_assert(dci.dataformat_src_ == DataFormats::INVALID);
	dci.dci_dsName_ = "DCI-Tensor-0";
	dci.isHostToSen_ = true;
	dci.dataformat_src_ = DataFormats::IEEE_FP16;
	dci.dataformat_dst_ = DataFormats::SEN169_FP16;
	box.size_ = { 64, 4 };
	box.stride_src_ = { 1, 64 };
	box.stride_dst_ = { 1, 128 };
	box.offset_src_ = 3;
	box.offset_dst_ = 0;
	dci.dcsi_ = { box, box };
	dci.input_shape_ = { 64, 4 };
	dci.output_shape_ = { 64, 4 };
	const data_conversion_info copy = dci;
	copy.exportJson(text);
	check_text(text.str(),
		   "{\"dci_dsName_\": \"DCI-Tensor-0\", \"isHostToSen_\": true, "
		   "\"dataformat_src_\": \"IEEE_FP16\", "
		   "\"dataformat_dst_\": \"SEN169_FP16\", \"dcsi_\": ["
		   "{\"size_\": [64, 4], \"stride_src_\": [1, 64], "
		   "\"stride_dst_\": [1, 128], \"offset_src_\": 3, \"offset_dst_\": 0}, "
		   "{\"size_\": [64, 4], \"stride_src_\": [1, 64], "
		   "\"stride_dst_\": [1, 128], \"offset_src_\": 3, \"offset_dst_\": 0}], "
		   "\"input_shape_\": [64, 4], \"output_shape_\": [64, 4]}");
}
END_TEST

int main()
{
	const TTest *const cases[] = { names_and_sticks, error_macro, single_numbers,
				       conversion_info, nullptr };

	return run_tests("compat_formats", cases);
}

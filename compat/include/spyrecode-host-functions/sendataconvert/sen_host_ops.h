/* SPDX-License-Identifier: MIT */
/*
 * The description of a copy between a host tensor and device memory, as
 * csrc/spyre_mem.cpp:320-441 of torch-spyre a312898 fills it.
 */
#ifndef SPYRE_COMPAT_SEN_HOST_OPS_H
#define SPYRE_COMPAT_SEN_HOST_OPS_H

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "util/sendefs/sendefs.h"

/* A box of elements: sizes and strides per dimension, the innermost one first, in elements. */
struct data_conversion_stride_info {
	std::vector<std::int64_t> size_;
	std::vector<std::int64_t> stride_src_;
	std::vector<std::int64_t> stride_dst_;
	std::int64_t offset_src_ = 0;
	std::int64_t offset_dst_ = 0;
};

struct COMPAT_EXPORT data_conversion_info {
	std::string dci_dsName_;
	bool isHostToSen_ = false;
	DataFormats dataformat_src_ = DataFormats::INVALID;
	DataFormats dataformat_dst_ = DataFormats::INVALID;
	std::vector<data_conversion_stride_info> dcsi_;
	/* Shapes of both sides, the innermost dimension first. */
	std::vector<std::int64_t> input_shape_;
	std::vector<std::int64_t> output_shape_;

	/* Appends the description as a JSON object to @out. */
	void exportJson(std::stringstream &out) const;
};

#endif /* SPYRE_COMPAT_SEN_HOST_OPS_H */

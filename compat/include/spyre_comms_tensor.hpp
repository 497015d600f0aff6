/* SPDX-License-Identifier: MIT */
/*
 * Tensors of collective operations: data type, shape and device memory. The names are those
 * that torch-spyre's torch_spyre/csrc/distributed at a312898 uses; the numbers are this
 * project's.
 */
#ifndef SPYRE_COMMS_TENSOR_HPP
#define SPYRE_COMMS_TENSOR_HPP

#include <cstdint>
#include <utility>
#include <vector>

#include <flex/flex.hpp>

namespace spyre_comms {

/** Types of a tensor's elements on the host; names with sen_ are formats of the card. */
enum class TensorDataTypeEnum {
	dt_undef,
	boolean, string,
	float8, float16, float32, float64, float128, float256,
	decimal32, decimal64, decimal128,
	bfloat16,
	int1, int2, int4, int8, int16, int32, int64,
	uint1, uint2, uint4, uint8, uint16, uint32, uint64,
	qint1, qint2, qint4, qint8, qint16, qint32, qint64,
	quint1, quint2, quint4, quint8, quint16, quint32, quint64,
	complex64, complex128,
	sen_fp8, sen_fp16,
	sen_int1, sen_int2, sen_int4, sen_int8, sen_int16, sen_int24, sen_int32,
	sen_uint1, sen_uint2, sen_uint4, sen_uint8, sen_uint16, sen_uint24, sen_uint32,
};

/** Sizes of the dimensions, outermost first. */
class TensorShape {
public:
	TensorShape() = default;
	TensorShape(std::vector<int64_t> sizes) : sizes_(std::move(sizes))
	{
	}

	const std::vector<int64_t> &sizes() const
	{
		return sizes_;
	}

private:
	std::vector<int64_t> sizes_;
};

class TensorInfo {
public:
	TensorInfo() = default;
	TensorInfo(TensorDataTypeEnum type, TensorShape shape)
		: type_(type), shape_(std::move(shape))
	{
	}

	TensorDataTypeEnum type() const
	{
		return type_;
	}

	const TensorShape &shape() const
	{
		return shape_;
	}

private:
	TensorDataTypeEnum type_ = TensorDataTypeEnum::dt_undef;
	TensorShape shape_;
};

/**
 * A tensor in device memory. Operations move the whole allocation of its device address; the
 * shape says whether that is the tensor and no more.
 */
class Tensor {
public:
	Tensor() = default;

	/** @data is an opaque pointer of the caller, which operations do not use. */
	Tensor(TensorInfo info, void *data = nullptr) : info_(std::move(info)), data_(data)
	{
	}

	/**
	 * Sets the device memory. The caller keeps @address, and the memory, until the
	 * operations with this tensor or a copy of it have finished.
	 */
	void SetSpyreDeviceAddressBorrowed(flex::CompositeAddress *address)
	{
		address_ = address;
	}

	const TensorInfo &info() const
	{
		return info_;
	}

	void *data() const
	{
		return data_;
	}

	const flex::CompositeAddress *address() const
	{
		return address_;
	}

private:
	TensorInfo info_;
	void *data_ = nullptr;
	flex::CompositeAddress *address_ = nullptr;
};

} // namespace spyre_comms

#endif /* SPYRE_COMMS_TENSOR_HPP */

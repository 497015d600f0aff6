// SPDX-License-Identifier: MIT
/*
 * A compiled bundle, prepared and launched from its spyreCodeDir step by step, as
 * csrc/prepare_kernel.cpp and csrc/job_plan.cpp of the front-end do it.
 */
#include "bundle.hpp"

#include "tests/order.h"

namespace
{
struct Fixture {
	Fixture()
	{
		const auto status = flex::initializeRuntime(&runtime, 0);

		ck_assert_msg(status.ok, "%s", status.text.c_str());
		const flex::AllocationDirective directive(flex::PlacementPolicy::Bind, { 0 },
							  std::nullopt, flex::MemoryType::Tensor);
		stream = runtime->createStream(flex::RuntimeStreamPriority::NORMAL);
		for (int i = 0; i < 4; i++) {
			tensors.push_back(runtime->getAllocator()->allocate(bytes, directive));
			stream->fillAsync(&tensors[i], 1 << i, DataFormats::IEEE_FP32, true);
		}
	}

	std::int64_t address(int i) const
	{
		return runtime->getAllocator()->compositeAddressToDmva(tensors[i]);
	}

	/* Waits, and checks that each element of tensor @i is @value. */
	void expect(int i, float value)
	{
		expect_rows(i, { { rows, value } });
	}

	/* Checks the rows of tensor @i up to the ends of @parts. A stick has 32 elements. */
	void expect_rows(int i, const std::vector<std::pair<int, float>> &parts)
	{
		std::vector<float> data(rows * columns);
		flex::DmaParams *params =
			flex::createDmaParams(data.data(), bytes, false, &tensors[i]);

		stream->launchOperationD2H(params);
		flex::destroyDmaParams(params);
		stream->synchronize();
		order_le(data.data(), data.size(), sizeof(float));
		for (int at = 0; at < rows * columns; at++) {
			const int row = at / 32 % rows;
			auto part = parts.begin();

			while (part->first <= row)
				part++;
			ck_assert_msg(data[at] == part->second, "row %d: %g instead of %g", row,
				      data[at], part->second);
		}
	}

	std::shared_ptr<flex::RuntimeContext> runtime;
	flex::RuntimeStream *stream = nullptr;
	std::vector<flex::CompositeAddress> tensors;
};
}

/* Two launches with different addresses are in flight with one program. */
START_TEST(correction_flits_name_the_arguments)
{
	Bundle bundle;
	Fixture f;
	Plan plan(f.runtime, bundle);

	plan.launch(f.stream, { f.address(0), f.address(1), f.address(3) }, {});
	plan.launch(f.stream, { f.address(3), f.address(2), f.address(0) }, {});
	f.expect(3, 1 + 2);
	f.expect(0, 3 + 4);
}
END_TEST

/* Addresses that the launch gives take precedence over the flits. */
START_TEST(tensors_name_the_arguments)
{
	Bundle bundle;
	Fixture f;
	Plan plan(f.runtime, bundle);

	plan.launch(f.stream, { 0, 0, 0 }, { &f.tensors[0], &f.tensors[1], &f.tensors[2] });
	f.expect(2, 1 + 2);
	ck_throws(plan.launch(f.stream, { 0, 0, 0 }, { &f.tensors[0] }), "takes 3 arguments");
}
END_TEST

/* A launch whose addresses are not those of memory is refused before it runs. */
START_TEST(wrong_addresses)
{
	Bundle bundle;
	Fixture f;
	Plan plan(f.runtime, bundle);

	ck_throws(plan.launch(f.stream, { 1 << 20, f.address(1), f.address(2) }, {}),
		  "SPYRE_ERROR_INVALID_ADDRESS");
	f.expect(2, 4);
	ck_assert(!f.stream->needsShutdown());
}
END_TEST

/* The program may be freed as soon as its launch is queued. */
START_TEST(program_is_freed_in_flight)
{
	Bundle bundle;
	Fixture f;

	for (int i = 0; i < 3; i++) {
		Plan plan(f.runtime, bundle);

		plan.launch(f.stream, { f.address(0), f.address(2), f.address(2) }, {});
	}
	f.expect(2, 4 + 3);
}
END_TEST

/* A kernel finds in LX what the one before it has left there, with another one between them. */
START_TEST(tensors_stay_in_lx)
{
	Bundle producer(2), consumer(0), other;
	Fixture f;
	Plan make(f.runtime, producer), use(f.runtime, consumer), add(f.runtime, other);

	make.launch(f.stream, { 0, 0, 0 }, { &f.tensors[0], &f.tensors[1], &f.tensors[3] });
	add.launch(f.stream, { 0, 0, 0 }, { &f.tensors[2], &f.tensors[3], &f.tensors[3] });
	use.launch(f.stream, { 0, 0, 0 }, { &f.tensors[0], &f.tensors[2], &f.tensors[2] });
	f.expect(2, 1 + 2 + 4);
	f.expect(3, 4 + 8);
	/* It stays there for further readers. */
	use.launch(f.stream, { 0, 0, 0 }, { &f.tensors[0], &f.tensors[3], &f.tensors[2] });
	f.expect(2, 1 + 2 + 4 + 8);
}
END_TEST

/* The sizes of dimensions follow the addresses; launches with different ones are in flight. */
START_TEST(sizes_follow_the_addresses)
{
	Bundle bundle(-1, true);
	Fixture f;
	Plan plan(f.runtime, bundle);

	plan.launch(f.stream, { f.address(0), f.address(1), f.address(3), 16 }, {});
	plan.launch(f.stream, { f.address(0), f.address(3), f.address(2), 40 }, {});
	f.expect_rows(3, { { 16, 1 + 2 }, { rows, 8 } });
	f.expect_rows(2, { { 16, 1 + 1 + 2 }, { 40, 1 + 8 }, { rows, 4 } });
	plan.launch(f.stream, { 0, 0, 0, 8 }, { &f.tensors[0], &f.tensors[1], &f.tensors[1] });
	f.expect_rows(1, { { 8, 1 + 2 }, { rows, 2 } });
}
END_TEST

START_TEST(wrong_sizes)
{
	Bundle bundle(-1, true);
	Fixture f;
	Plan plan(f.runtime, bundle);

	ck_throws(plan.launch(f.stream, { f.address(0), f.address(1), f.address(2) }, {}),
		  "Number of inputs mismatches: they need 4 values, the launch gives 3; sizes of dimensions among them: 1");
	ck_throws(plan.launch(f.stream, { f.address(0), f.address(1), f.address(2), 20 }, {}),
		  "s0 = 20, it takes multiples of 8 up to 64");
	ck_throws(plan.launch(f.stream, { f.address(0), f.address(1), f.address(2), 72 }, {}),
		  "s0 = 72, it takes 8 to 64");
	f.expect(2, 4);
	ck_assert(!f.stream->needsShutdown());
}
END_TEST

int main()
{
	const TTest *const cases[] = { correction_flits_name_the_arguments,
				       tensors_name_the_arguments, wrong_addresses,
				       program_is_freed_in_flight, tensors_stay_in_lx,
				       sizes_follow_the_addresses, wrong_sizes, nullptr };

	return run_tests("compat_launch", cases);
}

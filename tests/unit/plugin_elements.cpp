// SPDX-License-Identifier: MIT
/*
 * Constants of the PyTorch plugin: their codes, their bytes in device memory and on the host
 * (torch_spyre/csrc/aten/element.h), on hosts of either byte order.
 */
#include <cmath>
#include <vector>

#include <check.h>
#include <spyre/spyre.h>

#include "suite.h"
#include "torch_spyre/csrc/aten/element.h"

#define ck_ok(call) \
	ck_assert_msg((call) == SPYRE_SUCCESS, "%s: %s", #call, spyre_last_error())

using namespace torch_spyre;

namespace {

/* Elements in a fill of one stick, whose pattern the plugin repeats in 16 bytes. */
constexpr size_t kPattern = 16;

struct Case {
	spyre_format format;
	size_t width;
	double value;
	uint8_t bytes[4];
};

/* By hand from docs/numerics.md: DL16 is 1-6-9 with bias 31. No code is a palindrome. */
const Case cases[] = {
	{ SPYRE_FORMAT_SEN169_FP16, 2, 1.0, { 0x00, 0x3e } },
	{ SPYRE_FORMAT_SEN169_FP16, 2, -1.5, { 0x00, 0xbf } },
	{ SPYRE_FORMAT_SEN169_FP16, 2, 18.09375, { 0x43, 0x46 } },
	{ SPYRE_FORMAT_SEN169_FP16, 2, HUGE_VAL, { 0xff, 0x7f } },
	{ SPYRE_FORMAT_BOOL, 2, 1.0, { 0x00, 0x3e } },
	{ SPYRE_FORMAT_BFLOAT16, 2, 1.0, { 0x80, 0x3f } },
	{ SPYRE_FORMAT_BFLOAT16, 2, -3.140625, { 0x49, 0xc0 } },
	{ SPYRE_FORMAT_IEEE_FP32, 4, 1.0, { 0x00, 0x00, 0x80, 0x3f } },
	{ SPYRE_FORMAT_IEEE_FP32, 4, -3.14159274101257324, { 0xdb, 0x0f, 0x49, 0xc0 } },
	{ SPYRE_FORMAT_IEEE_INT32, 4, 0x01020304, { 0x04, 0x03, 0x02, 0x01 } },
	{ SPYRE_FORMAT_IEEE_INT32, 4, -2, { 0xfe, 0xff, 0xff, 0xff } },
	{ SPYRE_FORMAT_SENUINT32, 4, 4278255360.0, { 0x00, 0xff, 0x00, 0xff } },
	{ SPYRE_FORMAT_SENINT16, 2, -32767, { 0x01, 0x80 } },
	{ SPYRE_FORMAT_SENINT8, 1, -3, { 0xfd } },
};
constexpr int kCases = sizeof(cases) / sizeof(cases[0]);

/* Dtypes of torch with a storage that fill_() fills, as host formats, and numbers in them. */
const struct Fill {
	spyre_format host;
	double value;
} fills[] = {
	{ SPYRE_FORMAT_IEEE_FP16, 18.09375 }, { SPYRE_FORMAT_IEEE_FP16, -0.3125 },
	{ SPYRE_FORMAT_BFLOAT16, -3.140625 }, { SPYRE_FORMAT_IEEE_FP32, 0x1.234566p+9 },
	{ SPYRE_FORMAT_BOOL, 1 },	      { SPYRE_FORMAT_IEEE_INT32, -0x01020304 },
	{ SPYRE_FORMAT_IEEE_INT64, 0x01020304 },
};
constexpr int kFills = sizeof(fills) / sizeof(fills[0]);

int64_t code(double value, spyre_format format)
{
	std::optional<int64_t> found = code_of(value, format);

	ck_assert_msg(found.has_value(), "%s has no constants", spyre_format_name(format));
	return *found;
}

/* A card, and memory of one stick on it. */
struct Card {
	Card()
	{
		ck_ok(spyre_context_create(0, 0, &context));
		ck_ok(spyre_mem_alloc(context, SPYRE_STICK, &memory));
	}
	~Card() { ck_ok(spyre_context_destroy(context)); }

	void fill(const uint8_t *pattern) const
	{
		spyre_stream *stream;

		ck_ok(spyre_stream_get(context, 0, &stream));
		ck_ok(spyre_memset_async(stream, memory, pattern, kPattern, SPYRE_STICK));
		ck_ok(spyre_stream_synchronize(stream));
	}

	spyre_context *context;
	spyre_devptr memory;
};

/* A tensor of host elements that fills a stick, and its layout. */
struct Stick {
	explicit Stick(spyre_format format) : host(format)
	{
		int64_t one = 1;

		ck_ok(spyre_layout_init(&layout, 1, &one, host));
		size = SPYRE_STICK / static_cast<int64_t>(width());
		ck_ok(spyre_layout_init(&layout, 1, &size, host));
		elements.resize(size * spyre_format_bytes(host));
		ck_ok(spyre_host_tensor_dense(&tensor, elements.data(), host, 1, &size));
	}
	size_t width() const
	{
		return layout.device_format == SPYRE_FORMAT_IEEE_FP32 ||
		       layout.device_format == SPYRE_FORMAT_IEEE_INT32 ? 4 : 2;
	}
	std::vector<double> numbers() const
	{
		std::vector<double> found(size);

		ck_ok(spyre_format_decode(host, elements.data(), found.size(), found.data()));
		return found;
	}

	spyre_format host;
	spyre_layout layout;
	int64_t size;
	std::vector<uint8_t> elements;
	spyre_host_tensor tensor;
};

/* Numbers of @format and of the middles between them, with the numbers of fp64 beside these. */
std::vector<double> neighbours(spyre_format format)
{
	std::vector<uint16_t> codes(65536);
	std::vector<double> known(codes.size()), all;

	for (size_t i = 0; i < codes.size(); i++)
		codes[i] = static_cast<uint16_t>(i);
	ck_ok(spyre_format_decode(format, codes.data(), codes.size(), known.data()));
	for (size_t i = 0; i + 1 < known.size(); i++) {
		double middle = known[i] / 2 + known[i + 1] / 2;

		for (double x : { known[i], middle, std::nextafter(middle, HUGE_VAL),
				  std::nextafter(middle, -HUGE_VAL) })
			all.push_back(x);
	}
	return all;
}

} // namespace

START_TEST(device_memory_is_little_endian)
{
	const Case &c = cases[_i];
	uint8_t element[5] = { 0xaa, 0xaa, 0xaa, 0xaa, 0xaa }, pattern[kPattern + 1];

	store_constant(code(c.value, c.format), c.width, element);
	ck_assert_mem_eq(element, c.bytes, c.width);
	ck_assert_uint_eq(element[c.width], 0xaa);

	pattern[kPattern] = 0xaa;
	fill_pattern(code(c.value, c.format), c.width, pattern, kPattern);
	for (size_t i = 0; i < kPattern; i++)
		ck_assert_uint_eq(pattern[i], c.bytes[i % c.width]);
	ck_assert_uint_eq(pattern[kPattern], 0xaa);
}
END_TEST

/* libspyre decodes elements in the host's order: the plugin gets the number that it rounded. */
START_TEST(host_elements_have_the_host_order)
{
	const Case &c = cases[_i];
	uint8_t element[5] = { 0xaa, 0xaa, 0xaa, 0xaa, 0xaa };
	double number;

	if (c.width == 1 || c.format == SPYRE_FORMAT_BOOL)
		return;
	store_host(code(c.value, c.format), c.width, element);
	ck_assert_uint_eq(element[c.width], 0xaa);
	ck_ok(spyre_format_decode(c.format, element, 1, &number));
	ck_assert(number == c.value);
}
END_TEST

START_TEST(codes_are_those_of_libspyre)
{
	const spyre_format format = _i ? SPYRE_FORMAT_BFLOAT16 : SPYRE_FORMAT_SEN169_FP16;
	std::vector<double> numbers = neighbours(format);
	std::vector<uint16_t> want(numbers.size());

	ck_ok(spyre_format_encode(format, numbers.data(), numbers.size(), want.data()));
	for (size_t i = 0; i < numbers.size(); i++) {
		uint16_t got;

		store_host(code(numbers[i], format), sizeof(got), &got);
		ck_assert_msg(got == want[i], "%s of %a is %#x, not %#x", spyre_format_name(format),
			      numbers[i], got, want[i]);
	}
}
END_TEST

/* The copy engine reads a filled stick as the number, in the host's order. */
START_TEST(the_card_reads_a_fill)
{
	Card card;
	Stick stick(fills[_i].host);
	uint8_t pattern[kPattern];

	fill_pattern(code(fills[_i].value, stick.layout.device_format), stick.width(), pattern,
		     kPattern);
	card.fill(pattern);
	ck_ok(spyre_copy_d2h(card.context, &stick.tensor, card.memory, &stick.layout));
	for (double number : stick.numbers())
		ck_assert_msg(number == fills[_i].value, "%a instead of %a", number, fills[_i].value);
}
END_TEST

/* A copy of host elements to the card leaves the same bytes as a fill. */
START_TEST(a_copy_has_the_bytes_of_a_fill)
{
	Card card;
	Stick stick(fills[_i].host);
	std::vector<double> numbers(stick.size, fills[_i].value);
	uint8_t pattern[kPattern], bytes[SPYRE_STICK];

	fill_pattern(code(fills[_i].value, stick.layout.device_format), stick.width(), pattern,
		     kPattern);
	ck_ok(spyre_format_encode(stick.host, numbers.data(), numbers.size(),
				  stick.elements.data()));
	ck_ok(spyre_copy_h2d(card.context, card.memory, &stick.layout, &stick.tensor));
	ck_ok(spyre_memcpy_d2h(card.context, bytes, card.memory, sizeof(bytes)));
	for (size_t i = 0; i < sizeof(bytes); i++)
		ck_assert_uint_eq(bytes[i], pattern[i % kPattern]);
}
END_TEST

/* Processors differ in what they make of numbers that no integer has. */
START_TEST(numbers_beyond_integers_are_those_of_any_host)
{
	for (spyre_format format : { SPYRE_FORMAT_SENINT8, SPYRE_FORMAT_SENINT16,
				     SPYRE_FORMAT_IEEE_INT32, SPYRE_FORMAT_SENUINT32 })
		for (double number : { HUGE_VAL, -HUGE_VAL, std::nan(""), 0x1p63, 1e300, -1e300 })
			ck_assert_msg(code(number, format) == 0, "%s of %g is %#llx",
				      spyre_format_name(format), number,
				      static_cast<unsigned long long>(code(number, format)));
}
END_TEST

START_TEST(other_formats_have_no_constants)
{
	for (spyre_format format : { SPYRE_FORMAT_INVALID, SPYRE_FORMAT_SEN143_FP8,
				     SPYRE_FORMAT_SENINT4, SPYRE_FORMAT_IEEE_INT64 })
		ck_assert_msg(!code_of(1, format).has_value(), "format %d", format);
}
END_TEST

int main()
{
	Suite *suite = suite_create("plugin_elements");
	TCase *tests = tcase_create("plugin_elements");

	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, device_memory_is_little_endian, 0, kCases);
	tcase_add_loop_test(tests, host_elements_have_the_host_order, 0, kCases);
	tcase_add_loop_test(tests, codes_are_those_of_libspyre, 0, 2);
	tcase_add_loop_test(tests, the_card_reads_a_fill, 0, kFills);
	tcase_add_loop_test(tests, a_copy_has_the_bytes_of_a_fill, 0, kFills);
	tcase_add_test(tests, numbers_beyond_integers_are_those_of_any_host);
	tcase_add_test(tests, other_formats_have_no_constants);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

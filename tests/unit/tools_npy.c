// SPDX-License-Identifier: MIT
/* .npy files: written files can be read back, and errors in a file are named. */
#include <stdio.h>

#include "tools/spyre/npy.h"

#include "tools_check.h"

static char path[128];

static void setup(void)
{
	make_folder();
	snprintf(path, sizeof(path), "%s/x.npy", folder);
}

static void teardown(void)
{
	unlink(path);
	remove_folder();
}

static void write_bytes(const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(data, 1, bytes, file), bytes);
	ck_assert_int_eq(fclose(file), 0);
}

/* Writes a version 1 file of @header and @bytes of zeros, padded like numpy's. */
static void write_file(const char *header, size_t bytes)
{
	uint8_t file[4096] = "\x93NUMPY\x01";
	size_t length = strlen(header);

	memcpy(file + 10, header, length);
	file[10 + length++] = '\n';
	file[8] = length & 0xff;
	file[9] = length >> 8;
	write_bytes(file, 10 + length + bytes);
}

static void check_refused(const char *part)
{
	struct text why;
	struct npy npy;

	ck_assert_int_eq(npy_read(path, &npy, &why), -1);
	ck_mentions(why, path);
	ck_mentions(why, part);
	ck_assert_ptr_null(npy.data);
}

static const struct {
	char kind;
	uint8_t item;
} types[] = {{'f', 2}, {'f', 4}, {'f', 8}, {'i', 1}, {'i', 2},
	     {'i', 4}, {'i', 8}, {'u', 1}, {'u', 2}, {'b', 1}};

START_TEST(round_trip)
{
	const int64_t size[SPYRE_MAX_RANK] = {2, 3, 1, 2, 1, 1, 2};
	uint8_t data[24 * 8];
	struct text why;
	struct npy npy;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 1);
	for (uint32_t rank = 0; rank <= SPYRE_MAX_RANK; rank++) {
		size_t elements = 1;

		for (uint32_t d = 0; d < rank; d++)
			elements *= size[d];
		ck_assert_int_eq(
			npy_write(path, types[_i].kind, types[_i].item, rank, size, data, &why), 0);
		ck_assert_msg(!npy_read(path, &npy, &why), "%s", why.s);
		ck_assert_int_eq(npy.kind, types[_i].kind);
		ck_assert_uint_eq(npy.item, types[_i].item);
		ck_assert_uint_eq(npy.rank, rank);
		ck_assert_mem_eq(npy.size, size, rank * sizeof(size[0]));
		ck_assert_int_eq(npy.elements, elements);
		ck_assert_uint_eq(npy.bytes, elements * types[_i].item);
		ck_assert_mem_eq(npy.data, data, npy.bytes);
		npy_fini(&npy);
	}
}
END_TEST

START_TEST(aligned_header)
{
	const int64_t size[1] = {3};
	const float data[3] = {1, 2, 3};
	uint8_t head[128];
	struct text why;
	FILE *file;

	ck_assert_int_eq(npy_write(path, 'f', 4, 1, size, data, &why), 0);
	file = fopen(path, "rb");
	ck_assert_uint_eq(fread(head, 1, sizeof(head), file), sizeof(head));
	fclose(file);
	ck_assert_uint_eq((10 + head[8] + head[9] * 256) % 64, 0);
	ck_assert_ptr_nonnull(strstr((char *)head + 10, "'shape': (3,), }"));
}
END_TEST

/* Files are written little endian and read in both orders, on any host. */
START_TEST(byte_order)
{
	static const char *const headers[] = {
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
		"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }\n",
	};
	static const uint8_t bytes[2][8] = {
		{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc1}, {0x3f, 0x80, 0, 0, 0xc1, 0x20, 0, 0},
	};
	const float values[2] = {1, -10};
	const int64_t size[1] = {2};
	uint8_t written[8];
	struct text why;
	struct npy npy;
	FILE *file;

	for (int i = 0; i < 2; i++) {
		uint8_t data[128] = "\x93NUMPY\x01";
		size_t length = strlen(headers[i]);

		data[8] = (uint8_t)length;
		memcpy(data + 10, headers[i], length);
		memcpy(data + 10 + length, bytes[i], 8);
		write_bytes(data, 10 + length + 8);
		ck_assert_msg(!npy_read(path, &npy, &why), "%s", why.s);
		ck_assert_mem_eq(npy.data, values, sizeof(values));
		npy_fini(&npy);
	}
	ck_assert_int_eq(npy_write(path, 'f', 4, 1, size, values, &why), 0);
	file = fopen(path, "rb");
	ck_assert_int_eq(fseek(file, -8, SEEK_END), 0);
	ck_assert_uint_eq(fread(written, 1, 8, file), 8);
	ck_assert_mem_eq(written, bytes[0], 8);
	fclose(file);
}
END_TEST

START_TEST(fortran_order)
{
	const uint8_t data[6] = {0};
	struct text why;
	struct npy npy;

	write_file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", sizeof(data));
	ck_assert_msg(!npy_read(path, &npy, &why), "%s", why.s);
	ck_assert(npy.fortran);
	ck_assert_int_eq(npy.stride[0], 1);
	ck_assert_int_eq(npy.stride[1], 2);
	npy_fini(&npy);
}
END_TEST

START_TEST(version_2)
{
	const char *header = "{'descr': '<f2', 'fortran_order': False, 'shape': (), }\n";
	uint8_t file[128] = "\x93NUMPY\x02";
	struct text why;
	struct npy npy;

	file[8] = (uint8_t)strlen(header);
	memcpy(file + 12, header, strlen(header));
	memcpy(file + 12 + strlen(header), "\x00\x3c", 2);
	write_bytes(file, 12 + strlen(header) + 2);
	ck_assert_msg(!npy_read(path, &npy, &why), "%s", why.s);
	ck_assert_uint_eq(npy.rank, 0);
	ck_assert_uint_eq(*(uint16_t *)npy.data, 0x3c00);
	npy_fini(&npy);
}
END_TEST

START_TEST(no_elements)
{
	struct text why;
	struct npy npy;

	write_file("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807)}",
		   0);
	ck_assert_msg(!npy_read(path, &npy, &why), "%s", why.s);
	ck_assert_int_eq(npy.elements, 0);
	ck_assert_ptr_null(npy.data);
	npy_fini(&npy);
}
END_TEST

#define HEAD(descr, order, shape) \
	"{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static const struct {
	const char *header;
	size_t bytes;
	const char *part;
} bad[] = {
	{HEAD("'<f4'", "False", "(2, 3)"), 23, "take 24 bytes, found 23"},
	{HEAD("'<f4'", "False", "(2, 3)"), 25, "take 24 bytes, found 25"},
	{HEAD("'=f4'", "False", "(2,)"), 8, "one of the dtypes"},
	{HEAD("'<c8'", "False", "(2,)"), 16, "one of the dtypes"},
	{HEAD("'f4'", "False", "(2,)"), 8, "one of the dtypes"},
	{HEAD("''", "False", "(2,)"), 8, "one of the dtypes"},
	{HEAD("'|O'", "False", "(2,)"), 16, "found '|O'"},
	{HEAD("[('a', '<f4')]", "False", "(2,)"), 8, "structured"},
	{HEAD("4", "False", "(2,)"), 8, "a string, found '4"},
	{HEAD("'<f4", "False", "(2,)"), 8, "expected"},
	{HEAD("'<f4'", "false", "(2,)"), 8, "True or False"},
	{HEAD("'<f4'", "False", "(2)"), 8, "a tuple"},
	{HEAD("'<f4'", "False", "2"), 8, "a tuple"},
	{HEAD("'<f4'", "False", "(-2,)"), 8, "a size, found '-2"},
	{HEAD("'<f4'", "False", "(2 3)"), 24, "',' or ')'"},
	{HEAD("'<f4'", "False", "(1,1,1,1,1,1,1,1)"), 4, "at most 7"},
	{HEAD("'<f4'", "False", "(99999999999999999999,)"), 4, "below 2^63"},
	{HEAD("'<f4'", "False", "(4611686018427387904, 4)"), 4, "exceeds the memory of any card"},
	{HEAD("'<f8'", "False", "(2305843009213693953,)"), 8, "exceeds the memory of any card"},
	{"{'descr': '<f4', 'shape': (1,)}", 4, "lacks 'fortran_order'"},
	{"{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", 4, "one each of"},
	{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, "one each of"},
	{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 7", 4, "the end of the header after"},
	{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4, "found the end"},
	{"", 4, "expected '{'"},
	{"__import__('os')", 4, "expected '{'"},
};

START_TEST(bad_header)
{
	write_file(bad[_i].header, bad[_i].bytes);
	check_refused(bad[_i].part);
	check_refused("offset ");
}
END_TEST

START_TEST(truncated)
{
	const int64_t size[2] = {3, 2};
	const uint16_t data[6] = {1, 2, 3, 4, 5, 6};
	uint8_t whole[256];
	struct text why;
	size_t bytes;
	FILE *file;

	ck_assert_int_eq(npy_write(path, 'u', 2, 2, size, data, &why), 0);
	file = fopen(path, "rb");
	bytes = fread(whole, 1, sizeof(whole), file);
	fclose(file);
	ck_assert_uint_eq(bytes, 140);
	for (size_t cut = 0; cut < bytes; cut++) {
		write_bytes(whole, cut);
		check_refused("offset ");
	}
}
END_TEST

START_TEST(damaged)
{
	const int64_t size[2] = {3, 2};
	const uint16_t data[6] = {1, 2, 3, 4, 5, 6};
	uint8_t whole[256];
	struct text why;
	struct npy npy;
	size_t bytes;
	FILE *file;

	ck_assert_int_eq(npy_write(path, 'u', 2, 2, size, data, &why), 0);
	file = fopen(path, "rb");
	bytes = fread(whole, 1, sizeof(whole), file);
	fclose(file);
	/* With any single byte replaced the file is read or refused, never worse (see ASan). */
	for (size_t at = 0; at < bytes - sizeof(data); at++) {
		for (int value = 0; value < 256; value += at < 12 ? 1 : 11) {
			uint8_t old = whole[at];

			whole[at] = (uint8_t)value;
			write_bytes(whole, bytes);
			whole[at] = old;
			if (npy_read(path, &npy, &why))
				ck_mentions(why, path);
			else
				ck_assert_uint_eq(npy.bytes, sizeof(data));
			npy_fini(&npy);
		}
	}
}
END_TEST

START_TEST(not_npy)
{
	struct text why;
	struct npy npy;

	write_bytes("PK\x03\x04 0123456789", 16);
	check_refused("not a .npy file");
	write_bytes("\x93NUMPY\x03\x00\x10\x00\x00\x00", 12);
	check_refused("version 3.0");
	write_bytes("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12);
	check_refused("a header of 2147483647 bytes");
	unlink(path);
	check_refused("No such file");
	ck_assert_int_eq(npy_read(folder, &npy, &why), -1);
	ck_mentions(why, "not a regular file");
	ck_assert_int_eq(npy_read("/dev/zero", &npy, &why), -1);
	ck_mentions(why, "not a regular file");
}
END_TEST

START_TEST(unwritable)
{
	const int64_t size[1] = {1};
	const uint8_t data[1] = {1};
	struct text why;

	ck_assert_int_eq(npy_write("/dev/full", 'u', 1, 1, size, data, &why), -1);
	ck_mentions(why, "/dev/full");
	ck_mentions(why, "No space left");
	ck_assert_int_eq(npy_write("/nowhere/x.npy", 'u', 1, 1, size, data, &why), -1);
	ck_mentions(why, "/nowhere/x.npy");
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("npy");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, round_trip, 0, sizeof(types) / sizeof(types[0]));
	tcase_add_test(tests, aligned_header);
	tcase_add_test(tests, byte_order);
	tcase_add_test(tests, fortran_order);
	tcase_add_test(tests, version_2);
	tcase_add_test(tests, no_elements);
	tcase_add_loop_test(tests, bad_header, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tests, truncated);
	tcase_add_test(tests, damaged);
	tcase_add_test(tests, not_npy);
	tcase_add_test(tests, unwritable);
	return run_case("npy", tests);
}

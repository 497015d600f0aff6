// SPDX-License-Identifier: MIT
/*
 * The peer of tiled copies: a loop that converts fp16 to DL16 sticks and back with F16C,
 * as a program would do without the card. Infinities and NaN are left out, and it has one
 * thread and no checks.
 */
#include "bench/convert.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define STICK 64		/* elements */
#define F16C __attribute__((target("avx2,f16c")))
#define REBIAS (96 << 23)	/* from DL16's exponent to that of fp32, as an addend */

/* Codes of eight numbers, as 32-bit integers. */
static F16C __m256i encode(__m128i half)
{
	const __m256i x = _mm256_castps_si256(_mm256_cvtph_ps(half));
	const __m256i magnitude = _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff));
	const __m256i rounded = _mm256_add_epi32(magnitude, _mm256_set1_epi32(0x2000 - REBIAS));
	const __m256i code = _mm256_max_epi32(_mm256_srai_epi32(rounded, 14),
					      _mm256_setzero_si256());

	return _mm256_or_si256(code, _mm256_and_si256(_mm256_srli_epi32(x, 16),
						      _mm256_set1_epi32(0x8000)));
}

static F16C void stick_to_card(uint16_t *dst, const uint16_t *src)
{
	for (int i = 0; i < STICK; i += 16) {
		const __m256i low = encode(_mm_loadu_si128((const __m128i *)(src + i)));
		const __m256i high = encode(_mm_loadu_si128((const __m128i *)(src + i + 8)));
		const __m256i both = _mm256_packus_epi32(low, high);

		_mm256_storeu_si256((__m256i *)(dst + i), _mm256_permute4x64_epi64(both, 0xd8));
	}
}

static F16C void stick_to_host(uint16_t *dst, const uint16_t *src)
{
	for (int i = 0; i < STICK; i += 8) {
		const __m256i code = _mm256_cvtepu16_epi32(
			_mm_loadu_si128((const __m128i *)(src + i)));
		const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi32(0x7fff));
		const __m256i zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
		const __m256i number = _mm256_add_epi32(_mm256_slli_epi32(magnitude, 14),
							_mm256_set1_epi32(REBIAS));
		const __m256i sign = _mm256_slli_epi32(_mm256_sub_epi32(code, magnitude), 16);
		const __m256i x = _mm256_or_si256(_mm256_andnot_si256(zero, number), sign);

		_mm_storeu_si128((__m128i *)(dst + i),
				 _mm256_cvtps_ph(_mm256_castsi256_ps(x), 0));
	}
}

bool bench_can_convert(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

F16C void bench_convert_to_card(uint16_t *dst, const uint16_t *src, size_t rows, size_t columns)
{
	for (size_t column = 0; column < columns; column += STICK)
		for (size_t row = 0; row < rows; row++, dst += STICK)
			stick_to_card(dst, src + row * columns + column);
}

F16C void bench_convert_to_host(uint16_t *dst, const uint16_t *src, size_t rows, size_t columns)
{
	for (size_t column = 0; column < columns; column += STICK)
		for (size_t row = 0; row < rows; row++, src += STICK)
			stick_to_host(dst + row * columns + column, src);
}
#else
bool bench_can_convert(void)
{
	return false;
}

void bench_convert_to_card(uint16_t *dst, const uint16_t *src, size_t rows, size_t columns)
{
}

void bench_convert_to_host(uint16_t *dst, const uint16_t *src, size_t rows, size_t columns)
{
}
#endif

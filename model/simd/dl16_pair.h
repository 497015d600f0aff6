/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two vectors of DL16 numbers, for units that decode and encode them faster than one, because most
 * of the work is done on HL codes of 16 bits. Included by codec.h. The unit defines the macros of
 * pair.h; HL_PACK(a, b), which narrows two vectors of integers with saturation to codes that
 * HL_LOW() and HL_HIGH() separate again; HLS_MAX(a, b) of signed codes; and PAIR_FIRST(a, b) and
 * PAIR_SECOND(a, b), which exchange the lanes of a pair with those of two vectors in order, in
 * either direction.
 */
#ifndef SPYRE_MODEL_SIMD_DL16_PAIR_H
#define SPYRE_MODEL_SIMD_DL16_PAIR_H

/* The lower half of a number comes first on a little-endian host. */
static ALWAYS_INLINE struct vf_two dl16_join(hls low, hls high)
{
	hl first = SPYRE_BIG_ENDIAN ? (hl)high : (hl)low;
	hl second = SPYRE_BIG_ENDIAN ? (hl)low : (hl)high;

	return (struct vf_two) { (vf)HL_LOW(first, second), (vf)HL_HIGH(first, second) };
}

/* The upper halves of the numbers. @magnitude is the codes' without their sign. */
static ALWAYS_INLINE hls dl16_upper(hls code, hls magnitude)
{
	return (hls)HL_ADD_SOME((hl)((code >> 2) & (s16)0x9fff), (hl){ 0 } + (96 << 7),
				(hl)magnitude);
}

/* Decodes all codes but those of NaN and infinity; adds the magnitudes to the maximum @most. */
static ALWAYS_INLINE struct vf_two dl16_pair_finite(hls code, hls *most)
{
	hls magnitude = code & 0x7fff;

	*most = HLS_MAX(*most, magnitude);
	return dl16_join(code << 14, dl16_upper(code, magnitude));
}

/* Returns true if @most, a maximum of magnitudes, is not that of a number in all lanes. */
static ALWAYS_INLINE bool dl16_pair_special(hls most)
{
	return hl_any(most > SPYRE_DL16_NAN - 1);
}

static ALWAYS_INLINE struct vf_two dl16_pair_decode(hls code)
{
	hls magnitude = code & 0x7fff, low = code << 14, high = dl16_upper(code, magnitude);

	if (__builtin_expect(dl16_pair_special(magnitude), 0)) {
		hls infinite = magnitude == SPYRE_DL16_INF, none = magnitude == SPYRE_DL16_NAN;

		low &= ~(infinite | none);
		high = (infinite & ((code & (s16)0x8000) | 0x7f80)) | (~infinite & high);
		high = (none & 0x7fc0) | (~none & high);
	}
	return dl16_join(low, high);
}

static ALWAYS_INLINE vi dl16_shifted(vf x)
{
	return (((vi)x & 0x7fffffff) + (0x2000 - (96 << 23))) >> 14;
}

/* Narrowing saturates to infinity's code; underflows are negative before the maximum. */
static ALWAYS_INLINE hls dl16_pair_magnitude(struct vf_two x)
{
	return HLS_MAX(HL_PACK(dl16_shifted(x.first), dl16_shifted(x.second)), (hls){ 0 });
}

/* Saturation preserves the sign of the pattern of any number. */
static ALWAYS_INLINE hls dl16_pair_signs(struct vf_two x)
{
	return HL_PACK((vi)x.first, (vi)x.second) & (s16)0x8000;
}

/* Encodes numbers whose code is below that of NaN; all others make @most that of one. */
static ALWAYS_INLINE hls dl16_pair_round(struct vf_two x, hls *most)
{
	hls magnitude = dl16_pair_magnitude(x);

	*most = HLS_MAX(*most, magnitude);
	return magnitude | dl16_pair_signs(x);
}

/* NaN saturates too, so one comparison finds all lanes that need more than the sign. */
static ALWAYS_INLINE hls dl16_pair_encode(struct vf_two x)
{
	hls code = dl16_pair_magnitude(x), signs = dl16_pair_signs(x), none;

	if (__builtin_expect(!dl16_pair_special(code), 1))
		return code | signs;
	none = HL_PACK(x.first != x.first, x.second != x.second);
	code -= code == SPYRE_DL16_NAN;	/* infinity is the code after NaN */
	return (none & SPYRE_DL16_NAN) | (~none & (code | signs));
}

static ALWAYS_INLINE struct vf_two vf_two_swap(struct vf_two x)
{
	return (struct vf_two) { PAIR_FIRST(x.first, x.second), PAIR_SECOND(x.first, x.second) };
}

static ALWAYS_INLINE struct vf_two dl16_load_pair(const u8 *p)
{
	return dl16_pair_decode((hls)hl_le(*(const hl_mem *)p));
}

static ALWAYS_INLINE struct vf_two dl16_load_ordered(const u8 *p)
{
	return dl16_pair_decode((hls)HL_SPREAD(hl_le(*(const hl_mem *)p)));
}

static ALWAYS_INLINE void dl16_store_pair(u8 *p, struct vf_two x, bool stream)
{
	hl_store(p, (hl)dl16_pair_encode(x), stream);
}

static ALWAYS_INLINE void dl16_store_ordered(u8 *p, struct vf_two x)
{
	*(hl_mem *)p = hl_le(HL_SPREAD((hl)dl16_pair_encode(x)));
}

#endif /* SPYRE_MODEL_SIMD_DL16_PAIR_H */

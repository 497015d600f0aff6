// SPDX-License-Identifier: MIT
/* DMA descriptors: what spyre_dma_check() accepts stays within its two spans. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/card.h"

#include <stdlib.h>
#include <string.h>

#include "model/dma.h"

#define MAX_BYTES (1u << 20)

/* An input: a descriptor and the bytes of the host span. */
struct dma_input {
	struct spyre_dma_desc desc;
	uint64_t host_bytes;
};

/* A [rows, columns] fp16 tensor in sticks of 64 lanes. */
static void add_seed(uint8_t direction, uint32_t rows, uint32_t columns, uint64_t offset)
{
	const uint32_t sticks = (columns + 63) / 64;
	struct dma_input input = {
		.desc = {
			.direction = direction, .host_format = SPYRE_FMT_IEEE_FP16,
			.device_format = SPYRE_FMT_SEN169_FP16, .num_dims = 3, .num_bounds = 1,
			.host_offset = offset,
			.dim = {
				{ .count = sticks, .host_stride = 128 },
				{ .count = rows, .host_stride = 2ull * columns },
				{ .count = 64, .host_stride = 2 },
			},
			.bound = { { .limit = columns, .coef = { 64, 0, 1 } } },
		},
		.host_bytes = offset + 2ull * rows * columns,
	};

	fuzz_seed(&input, sizeof(input));
}

static void seeds(const char *source_dir)
{
	for (uint8_t direction = 0; direction < 2; direction++) {
		add_seed(direction, 4, 128, 0);
		add_seed(direction, 3, 100, 6);
		add_seed(direction, 1, 1, 2);
		add_seed(direction, 17, 65, 0);
	}
}

static bool run(const uint8_t *data, size_t size)
{
	struct fuzz_card *card = fuzz_card();
	struct dma_input input = { 0 };
	uint64_t device_bytes = 0;
	uint8_t *device, *host;
	enum spyre_stop stop;

	memcpy(&input, data, size < sizeof(input) ? size : sizeof(input));
	if (spyre_dma_check(&input.desc, &device_bytes, NULL) != SPYRE_STOP_NONE)
		return false;
	if (device_bytes > MAX_BYTES || input.host_bytes > MAX_BYTES)
		return true;
	/* Exactly as long as they may be: the sanitizer watches the edges. */
	device = fuzz_card_memory(device_bytes);
	host = malloc(input.host_bytes ? input.host_bytes : 1);
	if (!host)
		fuzz_fail("no memory");
	memset(host, 0x3c, input.host_bytes);
	for (unsigned int unit = 0; unit < card->num_units; unit++) {
		card->host.unit = card->unit[unit];
		stop = spyre_card_dma(&card->host, card, &card->worker, &input.desc, device, host,
				      input.host_bytes);
		if (stop != SPYRE_STOP_NONE && stop != SPYRE_STOP_CANCELLED)
			fuzz_fail("an accepted descriptor stopped with %s", spyre_stop_name(stop));
	}
	free(device);
	free(host);
	return true;
}

const struct fuzz_target fuzz_target = { "fuzz-dma", seeds, run, NULL };

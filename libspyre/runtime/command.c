// SPDX-License-Identifier: MIT
/* Deep copies of commands, which outlive the caller's arguments. */
#include "libspyre/runtime/stream.h"

static size_t payload_bytes(const struct spyre_command *command)
{
	if (command->type == SPYRE_COMMAND_EXEC)
		return command->exec.num_args * sizeof(uint64_t);
	if (command->type == SPYRE_COMMAND_DMA)
		return sizeof(struct spyre_dma_desc);
	return 0;
}

size_t spyre_commands_bytes(const struct spyre_command *commands, uint32_t n)
{
	size_t bytes = n * sizeof(*commands);

	for (uint32_t i = 0; i < n; i++)
		bytes += payload_bytes(&commands[i]);
	return bytes;
}

void spyre_commands_copy(struct spyre_command *to, const struct spyre_command *from, uint32_t n)
{
	char *payload = (char *)(to + n);

	for (uint32_t i = 0; i < n; i++) {
		size_t bytes = payload_bytes(&from[i]);

		to[i] = from[i];
		if (from[i].type == SPYRE_COMMAND_EXEC) {
			memcpy(payload, from[i].exec.args, bytes);
			to[i].exec.args = (const uint64_t *)(void *)payload;
		} else if (from[i].type == SPYRE_COMMAND_DMA) {
			memcpy(payload, from[i].dma.desc, bytes);
			to[i].dma.desc = (const struct spyre_dma_desc *)(void *)payload;
		}
		payload += bytes;
	}
}

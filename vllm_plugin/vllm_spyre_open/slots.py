# SPDX-License-Identifier: MIT
"""The slots of the KV cache that the tokens of a step are written to."""

import torch


def slot_mapping(
    num_tokens, max_num_tokens, query_start_loc, positions, block_table, stride, slots,
    block_size, cp_size, cp_rank, cp_interleave, pad, _tile,
):  # fmt: skip
    """Stands in for vLLM's Triton kernel of the same arguments, on tensors of the host.

    A token's slot is the page of its position in its request's row of the block table, times the
    size of a page, plus the position within the page. Slots of no token are @pad.
    """
    if cp_size != 1:
        raise ValueError(
            f"cannot place tokens of {cp_size} ranks of context parallelism: one card has all "
            "pages; leave --decode-context-parallel-size at 1"
        )
    lengths = query_start_loc.diff()
    used = int(query_start_loc[-1])
    rows = torch.repeat_interleave(torch.arange(len(lengths)), lengths.long())
    position = positions[:used].long()
    pages = block_table[rows, position // block_size].long()
    slots[:used] = pages * block_size + position % block_size
    slots[used:max_num_tokens] = pad

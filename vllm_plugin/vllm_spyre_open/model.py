# SPDX-License-Identifier: MIT
"""A model of vLLM on a card, called with tensors of the host."""

import torch
import torch.nn.functional as F

from .batches import bucket


class CardModel:
    """Calls a model in steps whose number of tokens is that of a bucket.

    Other attributes are the model's own.
    """

    def __init__(self, model, card):
        self.model, self.card = model, card

    def __getattr__(self, name):
        return getattr(self.model, name)

    def forward_step(self, input_ids, positions, tokens):
        """Returns the hidden states of a step on the card, with rows of padding at the end."""
        padding = (0, tokens - input_ids.shape[0])
        return self.model(
            input_ids=F.pad(input_ids, padding).to(self.card),
            positions=F.pad(positions, padding).to(self.card),
        )

    def compute_logits(self, hidden_states):
        """Returns logits on the host, where tokens are chosen."""
        rows = hidden_states.shape[0]
        padded = F.pad(hidden_states, (0, 0, 0, bucket(rows) - rows))
        with torch.no_grad():
            return self.model.compute_logits(padded).cpu()[:rows]

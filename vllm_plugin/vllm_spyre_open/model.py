# SPDX-License-Identifier: MIT
"""A model of vLLM on a card, called with tensors of the host."""

from collections import OrderedDict

import torch
import torch.nn.functional as F
from vllm.logger import init_logger

from .batches import bucket

logger = init_logger(__name__)

#: Decode steps of this many shapes keep a graph. A step whose requests pass a bucket has another
#: shape; with eight requests some tens of them occur.
GRAPHS = 64


class Step:
    """The inputs of a step on the card, and from its second call on a graph of the model.

    Calls of one shape write the same tensors, which a graph reads.
    """

    def __init__(self, model, card):
        self.model, self.card = model, card
        self.inputs = self.graph = self.hidden = None

    def fill(self, tensors, metadata):
        """Copies the inputs: ids or embeddings, positions and plans of attention."""
        if self.inputs is None:
            self.inputs = [tensor.to(self.card) for tensor in tensors]
        else:
            for target, tensor in zip(self.inputs, tensors, strict=True):
                target.copy_(tensor)
        rest = iter(self.inputs[2:])
        for part in metadata:
            part.place(rest)

    def call(self):
        given, positions = self.inputs[:2]
        if given.is_floating_point():
            return self.model(input_ids=None, positions=positions, inputs_embeds=given)
        return self.model(input_ids=given, positions=positions)

    def capture(self, pool):
        """Captures the model's call, whose programs an earlier call has compiled."""
        graph = torch.accelerator.Graph(pool=pool)
        with torch.Stream(device=self.card), graph:
            self.hidden = self.call()
        self.graph = graph

    def replay(self):
        self.graph.replay()
        return self.hidden


class CardModel:
    """Calls a model in steps whose number of tokens is that of a bucket.

    Other attributes are the model's own.
    """

    def __init__(self, model, card, graphs=True):
        self.model, self.card, self.graphs = model, card, graphs
        #: Decode steps by their shape, the last one used at the end.
        self.steps = OrderedDict()
        self.pool = None
        #: Steps that were replayed, and those that were called.
        self.replayed = self.called = 0

    def __getattr__(self, name):
        return getattr(self.model, name)

    def embed_input_ids(self, input_ids, multimodal_embeddings=None, *, is_multimodal=None):
        """Returns embeddings on the host, where those of images take their places."""
        text = self.model
        if hasattr(text, "get_language_model"):
            text = text.get_language_model()
        rows = len(input_ids)
        ids = F.pad(input_ids, (0, bucket(rows) - rows)).to(self.card)
        embeds = text.embed_input_ids(ids).cpu()[:rows]
        if multimodal_embeddings:
            embeds[is_multimodal] = torch.cat(tuple(multimodal_embeddings)).to(embeds.dtype)
        return embeds

    def embed_multimodal(self, **inputs):
        """Returns the embeddings of images on the host; their encoder is on the card."""
        return [one.cpu() for one in self.model.embed_multimodal(**inputs)]

    def forward_step(self, given, positions, metadata):
        """Returns the hidden states of a step on the card, with rows of padding at the end.

        @given has the ids of tokens, or their embeddings.
        """
        rows = given.shape[0]
        padding = (0, bucket(rows) - rows)
        embedded = given.dim() == 2
        tensors = [
            F.pad(given, (0, 0, *padding) if embedded else padding),
            F.pad(positions, padding),
        ]
        for part in metadata:
            tensors += part.tensors()
        if embedded or not self.graphs or not all(part.decodes for part in metadata):
            step = Step(self.model, self.card)
            step.fill(tensors, metadata)
            self.called += 1
            return step.call()
        key = bucket(rows), *(part.key for part in metadata)
        return self.decode(key, tensors, metadata)

    def decode(self, key, tensors, metadata):
        """Calls a step of a shape that is new, and replays it later."""
        step = self.steps.pop(key, None)
        known = step is not None
        self.steps[key] = step = step or Step(self.model, self.card)
        if len(self.steps) > GRAPHS:
            self.steps.popitem(last=False)
        step.fill(tensors, metadata)
        if known and step.graph is None:
            self.capture(step)
        if step.graph is not None:
            self.replayed += 1
            return step.replay()
        self.called += 1
        return step.call()

    def capture(self, step):
        """Captures a step; a model that cannot be captured is called from now on."""
        try:
            step.capture(self.pool)
            # Graphs share memory: the results of one are read before another is replayed.
            self.pool = step.graph.pool()
        except RuntimeError as error:
            logger.warning("decode steps are not replayed as graphs: %s", error)
            self.graphs = False
            self.steps.clear()

    def compute_logits(self, hidden_states):
        """Returns logits on the host, where tokens are chosen."""
        rows = hidden_states.shape[0]
        padded = F.pad(hidden_states, (0, 0, 0, bucket(rows) - rows))
        return self.model.compute_logits(padded).cpu()[:rows]

# SPDX-License-Identifier: MIT
"""Attention masks under autograd, and with dropout: forward, gradients, training."""

import pytest
import torch
from support import DEVICE, exact
from torch.nn.functional import scaled_dot_product_attention as sdpa

TOKENS = 12


def padded(batch=3):
    """Rows padded on the left, as tokenizers give batches to decoders; none is empty."""
    keep = torch.ones(batch, TOKENS, dtype=torch.bool)
    for row in range(batch):
        keep[row, : 2 * row] = False
    return keep


def triangle():
    return torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()


def decoder():
    """Padding and triangle; a padded token sees itself, as transformers have it."""
    return padded()[:, None, None, :] & triangle() | torch.eye(TOKENS, dtype=torch.bool)


MASKS = {
    "triangle": triangle,
    "rows": lambda: padded()[:, None, None, :],
    "batch": decoder,
    "heads": lambda: decoder().expand(3, 4, TOKENS, TOKENS),
    "one row": lambda: (torch.arange(TOKENS) % 3 != 1)[None],
    "empty rows": lambda: padded()[:, None, None, :] & triangle(),
}


def results(device, mask, dtype, kv_heads=4, **options):
    """Attention and its three gradients, in fp32 on the host."""
    q = exact(3, 4, TOKENS, 16, dtype=dtype, seed=1)
    k, v = (exact(3, kv_heads, TOKENS, 16, dtype=dtype, seed=seed) for seed in (2, 3))
    g = exact(3, 4, TOKENS, 16, dtype=dtype, seed=4)
    wanted = dtype if device == DEVICE else torch.float32
    q, k, v = (x.to(device, wanted).requires_grad_() for x in (q, k, v))
    out = sdpa(q, k, v, attn_mask=mask.to(device), **options)
    out.backward(g.to(device, wanted))
    return [x.detach().cpu().float() for x in (out, q.grad, k.grad, v.grad)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_truth_values_mask_under_autograd(mask, dtype, kv_heads):
    options = {"kv_heads": kv_heads, "enable_gqa": kv_heads != 4}
    mask = MASKS[mask]()
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    for actual, expected in zip(
        results(DEVICE, mask, dtype, **options), results("cpu", mask, dtype, **options)
    ):
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_truth_values_mask_with_dropout():
    """So little dropout that none happens, but the way is that of dropout."""
    q = exact(1, 2, TOKENS, 16, dtype=torch.float32)
    with torch.no_grad():
        expected = sdpa(q, q, q, attn_mask=triangle())
        q = q.to(DEVICE)
        actual = sdpa(q, q, q, attn_mask=triangle().to(DEVICE), dropout_p=1e-12)
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_rows_that_minus_infinity_empties_are_zeros(dtype, compiled):
    """As on the CPU, and as a mask of truth values has it."""
    q = exact(2, 2, TOKENS, 64, dtype=dtype)
    keep = MASKS["empty rows"]()[:2]
    mask = torch.zeros(keep.shape, dtype=dtype).masked_fill(~keep, -torch.inf)
    call = torch.compile(sdpa) if compiled else sdpa
    card = q.to(DEVICE)
    actual = call(card, card, card, attn_mask=mask.to(DEVICE)).cpu()
    empty = ~keep.any(-1).expand(2, 2, TOKENS)
    assert empty.any() and not actual[empty].any()
    expected = sdpa(*3 * [q.float()], attn_mask=mask.float())
    torch.testing.assert_close(actual.float(), expected, rtol=3e-2, atol=3e-2)


def test_gradient_of_a_mask_of_numbers():
    q = exact(2, 2, TOKENS, 16, dtype=torch.float32)
    grads = []
    for device in DEVICE, "cpu":
        mask = torch.zeros(TOKENS, TOKENS, device=device, requires_grad=True)
        x = q.to(device)
        sdpa(x, x, x, attn_mask=mask).square().sum().backward()
        grads.append(mask.grad.cpu())
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-5)


def test_forward_derivative_is_refused_not_lost():
    """matmul has no forward derivative on the card, so a tangent raises an error."""
    q = exact(1, 2, TOKENS, 16, dtype=torch.float32).to(DEVICE)
    with pytest.raises(NotImplementedError, match="forward AD"):
        torch.func.jvp(lambda x: sdpa(x, q, q), (q,), (q,))


def test_masks_that_torch_refuses():
    q = exact(1, 1, 4, 16, dtype=torch.float32).to(DEVICE)
    for grad in False, True:
        q.requires_grad_(grad)
        with pytest.raises(RuntimeError, match="attn_mask.*dtype"):
            sdpa(q, q, q, attn_mask=torch.ones(4, 4, dtype=torch.int32, device=DEVICE))
        with pytest.raises(RuntimeError, match="attn_mask and is_causal"):
            sdpa(q, q, q, attn_mask=torch.ones(4, 4, device=DEVICE).bool(), is_causal=True)


class Block(torch.nn.Module):
    """A token model with one decoder block."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(32, 32)
        self.joined = torch.nn.Linear(32, 96)
        self.out = torch.nn.Linear(32, 32)

    def forward(self, ids, mask):
        h = self.tokens(ids)
        q, k, v = (x.unflatten(-1, (2, 16)).transpose(1, 2) for x in self.joined(h).chunk(3, -1))
        a = sdpa(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
        return self.out(h + a)


def losses(device, steps=5):
    torch.manual_seed(0)
    model, keep = Block().to(device), padded()
    ids = torch.randint(0, 32, (3, TOKENS), generator=torch.Generator().manual_seed(1))
    targets = torch.where(keep, ids.roll(-1, 1), -100).to(device)
    ids, mask = ids.to(device), decoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    history = []
    for _ in range(steps):
        optimizer.zero_grad()
        logits = model(ids, mask)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return torch.tensor(history)


def test_padded_batches_train_as_on_the_cpu():
    torch.testing.assert_close(losses(DEVICE), losses("cpu"), rtol=1e-4, atol=1e-4)

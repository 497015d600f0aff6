# SPDX-License-Identifier: MIT
"""Operations that reach DTensor only on cards.

linear() and matmul() are single operations of the card, so that autograd calls their derivatives,
linear_backward() and matmul_backward(). On other devices it records the products that they
consist of, which is why DTensor has no rules for the two. Here they consist of products, too.
Attention is a single operation as well, and PyTorch composes it with a mask that is no DTensor.
"""

import torch

from ._inductor import after_import

aten = torch.ops.aten


def _rows(tensor):
    """Returns a tensor as a matrix with its last dim."""
    return tensor.reshape(-1, tensor.shape[-1])


def _summed(gradient, like):
    """Returns a gradient summed along the dims in which a factor was broadcast."""
    leading = gradient.dim() - like.dim()
    sizes = [1] * leading + [*like.shape]
    dims = [i for i, size in enumerate(gradient.shape) if i < leading or size != sizes[i]]
    return (gradient.sum(dims, keepdim=True) if dims else gradient).reshape(like.shape)


def linear_backward(_op, args, _kwargs):
    """Returns the derivatives that are wanted of input, weight and bias; else None."""
    x, grad, weight, wanted = args
    return (
        grad @ weight if wanted[0] else None,
        _rows(grad).t() @ _rows(x) if wanted[1] else None,
        _rows(grad).sum(0) if wanted[2] else None,
    )


def matmul_backward(_op, args, _kwargs):
    """Returns the derivatives that are wanted of both factors; else None."""
    grad, a, b, wanted = args
    rows = a.unsqueeze(0) if a.dim() == 1 else a
    columns = b.unsqueeze(1) if b.dim() == 1 else b
    if b.dim() == 1:
        grad = grad.unsqueeze(-1)
    if a.dim() == 1:
        grad = grad.unsqueeze(-2)
    left = _summed(grad @ columns.mT, rows).view(a.shape) if wanted[0] else None
    right = _summed(rows.mT @ grad, columns).view(b.shape) if wanted[1] else None
    return left, right


def _shared(q, k, v):
    """Returns placements in which ranks have whole heads or batches; else whole tensors."""
    from torch.distributed.tensor import Replicate

    def keeps(i, placement):
        return (
            placement == k.placements[i] == v.placements[i]
            and placement.is_shard()
            and placement.dim < q.dim() - 2
            and all(t.shape[placement.dim] % q.device_mesh.size(i) == 0 for t in (q, k, v))
        )

    return [p if keeps(i, p) else Replicate() for i, p in enumerate(q.placements)]


def _attend(q, k, v, mask=None, dropout=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    """Returns attention without a derivative; the arguments are those of the operation."""
    from torch.distributed.tensor import DTensor

    if mask is not None:
        return aten._scaled_dot_product_attention_math(
            q, k, v, mask, dropout, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
    placements = _shared(q, k, v)
    local = [t.redistribute(placements=placements).to_local() for t in (q, k, v)]
    result = aten.scaled_dot_product_attention(
        *local, None, dropout, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return DTensor.from_local(result, q.device_mesh, placements, run_check=False)


def attention(_op, args, kwargs):
    """Returns the result of scaled_dot_product_attention() of DTensors."""
    return _attend(*args, **kwargs)


def _add_handlers():
    from torch.distributed.tensor import DTensor

    DTensor._op_dispatcher._custom_op_handlers |= {
        aten.linear_backward.default: linear_backward,
        aten.matmul_backward.default: matmul_backward,
        aten.scaled_dot_product_attention.default: attention,
    }


def register():
    """Registers the operations once a program imports DTensor."""
    if torch.distributed.is_available():
        after_import("torch.distributed.tensor", _add_handlers)

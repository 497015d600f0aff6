# SPDX-License-Identifier: MIT
"""Operations that are not decomposed for the card, because the builder has them by name."""

import functools

import torch
from torch._decomp.decompositions import upsample_compute_output_size
from torch.utils._pytree import tree_leaves


def _on_card(args, kwargs):
    """Returns True if an argument is a tensor of a card or its device."""
    leaves = tree_leaves((args, kwargs))
    devices = [x.device if isinstance(x, torch.Tensor) else x for x in leaves]
    return any(isinstance(d, torch.device) and d.type == "spyre" for d in devices)


def _keep(decomposition, whole=_on_card):
    """Returns @decomposition, but NotImplemented for calls that @whole accepts."""
    @functools.wraps(decomposition)
    def keep(*args, **kwargs):
        """Decomposes unless the call is kept whole."""
        if whole(args, kwargs):
            return NotImplemented
        return decomposition(*args, **kwargs)

    return keep


aten = torch.ops.aten

INTERPOLATIONS = (
    *(aten.upsample_linear1d, aten.upsample_bilinear2d),
    *(aten.upsample_bicubic2d, aten.upsample_trilinear3d),
)

#: Operations that the builder lacks but eager mode has. They run eagerly, with the same results:
#: the CPU computes most of them and rounds once, while their parts would round each time.
EAGER = (
    *(aten.elu, aten.elu_backward, aten.celu, aten.selu, aten.threshold),
    *(aten._prelu_kernel, aten._prelu_kernel_backward, aten.glu_backward),
    *(aten.hardswish_backward, aten.hardsigmoid_backward),
    *(aten.log_sigmoid_forward, aten.log_sigmoid_backward),
    *(aten.logit, aten.logit_backward, aten.sinc, aten.logaddexp, aten.logaddexp2, aten.logsumexp),
    *(aten.xlogy, aten.special_xlog1py, aten.special_entr, aten.special_log_ndtr),
    *(aten.deg2rad, aten.rad2deg, aten.round, aten.linspace, aten.std_mean, aten.nansum),
    *(aten.dist, aten.pairwise_distance, aten.renorm, aten._weight_norm_interface),
    *(aten.mv, aten.addmv, aten.addr, aten.linalg_cross),
    *(*INTERPOLATIONS, aten.grid_sampler_2d, aten.affine_grid_generator),
    *(aten.native_layer_norm_backward, aten.native_dropout),
    *(aten.native_group_norm, aten.native_group_norm_backward),
    *(aten.native_batch_norm_backward, aten.batch_norm_backward),
    *(aten.binary_cross_entropy, aten.binary_cross_entropy_backward),
    *(aten.huber_loss, aten.huber_loss_backward, aten.multi_margin_loss),
    *(aten.smooth_l1_loss, aten.smooth_l1_loss_backward),
    *(aten.soft_margin_loss, aten.soft_margin_loss_backward),
    *(aten.nll_loss_forward, aten.nll_loss_backward),
    *(aten.nll_loss2d_forward, aten.nll_loss2d_backward),
    *(aten.embedding_dense_backward, aten.index_add, aten.index_reduce),
)


def overloads(packet):
    """Returns the overloads of an operation."""
    return (getattr(packet, name) for name in packet.overloads())


def _makes_floats(args, kwargs):
    """Returns True for a range of floats, which the CPU counts in float64."""
    dtype = kwargs.get("dtype")
    floats = any(isinstance(number, float) for number in args)
    return _on_card(args, kwargs) and (dtype.is_floating_point if dtype else floats)


def _where_training(position, wanted):
    """On the card, in training or in evaluation, as the argument of that position says."""

    def when(args, kwargs):
        """Returns True for calls on the card with the wanted value of 'training'."""
        training = args[position] if position < len(args) else kwargs.get("training", False)
        return training is wanted and _on_card(args, kwargs)

    return when


#: Operations that are not decomposed for some arguments, with the condition.
SOMETIMES = {
    aten.arange.default: _makes_floats,
    aten.arange.start: _makes_floats,
    aten.arange.start_step: _makes_floats,
    aten._native_batch_norm_legit.no_stats: _on_card,
    aten._native_batch_norm_legit.default: _where_training(5, True),
    aten._native_batch_norm_legit_functional.default: _where_training(5, True),
    aten.rrelu_with_noise.default: _where_training(4, False),
    aten.rrelu_with_noise_functional.default: _where_training(4, False),
}
#: The dispatch keys of autograd, and of decompositions in inference mode.
AUTOGRAD = torch._C.DispatchKey.AutogradPrivateUse1
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


def _interpolation(packet, decomposition):
    """Returns packet.vec, which takes sizes or scales, based on packet.default, which is kept."""

    def vec(input, output_size, align_corners, scale_factors):
        """Calls the overload with an output size on the card, decomposes elsewhere."""
        if input.device.type != "spyre":
            return decomposition(input, output_size, align_corners, scale_factors)
        size = upsample_compute_output_size(input.size(), output_size, scale_factors)
        scales = scale_factors or [None] * len(size)
        return packet.default(input, size, align_corners, *scales)

    return vec


def _keep_under_autograd(packet):
    """Keeps operations that Python kernels of PyTorch decompose before tables are consulted.

    The kernel with the derivative is registered under the alias of all autograd keys. For this
    key alone the dispatcher would use its fallback, which has no derivative.
    """
    for op in overloads(packet):
        if torch._C.DispatchKey.Autograd in op.py_kernels and AUTOGRAD not in op.py_kernels:
            op.py_impl(AUTOGRAD)(functools.partial(op._op_dk, torch._C.DispatchKey.Autograd))


def _keep_interpolation(packet, tables):
    """Keeps an upsampling operation whole in eager dispatch and in @tables."""
    op = packet.vec
    vec = _interpolation(packet, op.py_kernels[COMPOSITE])
    op.py_kernels[COMPOSITE] = vec
    op.py_kernels[AUTOGRAD] = vec
    op._dispatch_cache.clear()
    for table in tables:
        table[op] = vec


def _singular_values(decomposition):
    """As eager mode asks for them: without vectors, unless a derivative needs those.

    Of fake tensors PyTorch asks for vectors always, which LAPACK finds another way; the values
    then differ in the last bits."""

    def svdvals(A, *, driver=None):
        """Calls _linalg_svd on the card, decomposes elsewhere."""
        if A.device.type != "spyre":
            return decomposition(A, driver=driver)
        vectors = torch.is_grad_enabled() and A.requires_grad
        return aten._linalg_svd(A, False, vectors, driver=driver)[1]

    return svdvals


def _keep_singular_values():
    """Keeps svdvals one operation of the card."""
    op = aten.linalg_svdvals.default
    original = op.py_kernels.get(COMPOSITE) or functools.partial(op._op_dk, COMPOSITE)
    svdvals = _singular_values(original)
    op.py_kernels[COMPOSITE] = svdvals
    op.py_kernels[AUTOGRAD] = svdvals
    op._dispatch_cache.clear()


def register():
    """Replaces entries of Inductor's tables, so that these operations are kept on the card."""
    from torch._inductor import decomposition

    from .attention import whole
    from .norm import whole as whole_norm
    from .rules import RULES

    tables = (decomposition.decompositions, decomposition.fast_random_decomps())
    for table in tables:
        for target in (*RULES, *(op for packet in EAGER for op in overloads(packet))):
            if target in table:
                table[target] = _keep(table[target])
        for target, when in SOMETIMES.items():
            if target in table:
                table[target] = _keep(table[target], when)
        table[aten.scaled_dot_product_attention.default] = whole
        table[aten.rms_norm.default] = whole_norm
    for packet in EAGER:
        _keep_under_autograd(packet)
    for packet in INTERPOLATIONS:
        _keep_interpolation(packet, tables)
    _keep_singular_values()

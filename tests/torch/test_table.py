# SPDX-License-Identifier: MIT
"""The table of operations, which eager mode and torch.compile share."""

import itertools

import pytest
import torch
from support import DEVICE

from torch_spyre._inductor.emit import Number, Value
from torch_spyre._inductor.rules import RULES
from torch_spyre._inductor.rules.base import ROWS, promote
from torch_spyre._inductor.rules.table import target_of

aten = torch.ops.aten

#: Rules of operations that are not computed element by element, each in code of its own: products,
#: windows, reductions, searches, rows at indices, norms, copies, conversions and constants.
OF_THEIR_OWN = {
    "_fused_rms_norm",
    "_native_batch_norm_legit_no_training",
    "_to_copy",
    "addmm",
    "alias",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "attention",
    "attention_side_by_side",
    "avg_pool2d",
    "baddbmm",
    "bmm",
    "clone",
    "convert_element_type",
    "convolution",
    "detach",
    "dropout",
    "embedding",
    "full",
    "full_like",
    "gather",
    "index",
    "index_select",
    "lift_fresh_copy",
    "linalg_vector_norm",
    "matmul",
    "max",
    "max_pool2d_with_indices",
    "mean",
    "min",
    "mm",
    "native_layer_norm",
    "ones",
    "ones_like",
    "scalar_tensor",
    "square",
    "std",
    "sum",
    "topk",
    "var",
    "whole_rms_norm",
    "zeros",
    "zeros_like",
}


def test_rules_come_from_the_table():
    described = {target_of(schema) for schema in ROWS}
    assert described <= set(RULES)
    others = {target._schema.name.split("::")[1] for target in set(RULES) - described}
    assert others == OF_THEIR_OWN
    # The reductions of a loss are in code, its formula is in the table.
    for target in described - {aten.mse_loss.default, aten.mse_loss_backward.default}:
        assert RULES[target].__module__.endswith(".table"), target


def test_rows_name_arguments_of_their_schema():
    for schema, rows in ROWS.items():
        names = {argument.name for argument in target_of(schema)._schema.arguments}
        for row in rows:
            used = {*row.operands, *(given.argument for given in row.parameters)}
            assert used <= names, (schema, used - names)
            assert row.choice is None or row.choice[0] in names
        assert rows[-1].choice is None, f"{schema} has no row for what none of its rows chooses"


DTYPES = (torch.bool, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32)
#: A tensor, one without dims, and the numbers of Python.
KINDS = [(dtype, size) for dtype in DTYPES for size in ((2,), ())] + [True, 3, 2.5]
PROMOTING = ("add.Tensor", "div.Tensor", "eq.Tensor", "mul.Tensor", "maximum", "where.self")


def tensor(kind, device):
    if not isinstance(kind, tuple):
        return kind
    return torch.ones(kind[1], dtype=kind[0], device=device)


def value(kind):
    return Value(0, kind[1], 0, kind[0]) if isinstance(kind, tuple) else kind


def operation(schema):
    return ROWS[schema][0].operation


@pytest.mark.parametrize("schema", PROMOTING)
def test_promotion_is_that_of_pytorch(schema):
    """Of all pairs of dtypes, with and without dims, and numbers."""
    checked = 0
    for a, b in itertools.product(KINDS, KINDS):
        if not isinstance(a, tuple) and not isinstance(b, tuple):
            continue
        given = [tensor(kind, "cpu") for kind in (a, b)]
        wanted = torch.result_type(*given)
        if operation(schema).result == "float" and not wanted.is_floating_point:
            wanted = torch.get_default_dtype()
        things = [value(a), value(b)]
        if operation(schema).condition:
            things.insert(0, value((torch.bool, (2,))))
        assert promote(things, operation(schema)) == wanted, (schema, a, b)
        checked += 1
    assert checked == 15 * 15 - 9


#: Functions of eager mode by schema; integers are computed by the CPU.
EAGER = {"add.Tensor": torch.add, "div.Tensor": torch.div, "mul.Tensor": torch.mul}


@pytest.mark.parametrize("schema", EAGER)
@pytest.mark.filterwarnings("ignore")
def test_eager_mode_promotes_alike(schema):
    for a, b in itertools.product(KINDS, KINDS):
        if not isinstance(a, tuple):
            continue
        result = EAGER[schema](tensor(a, DEVICE), tensor(b, DEVICE))
        assert result.dtype == promote([value(a), value(b)], operation(schema)), (schema, a, b)


def test_a_constant_promotes_as_the_tensor_that_it_stands_for():
    for dtype, other in itertools.product(DTYPES, DTYPES):
        assert promote([Number(1, (4,), dtype), value((other, ()))]) == \
            promote([value((dtype, (4,))), value((other, ()))])

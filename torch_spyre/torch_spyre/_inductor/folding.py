# SPDX-License-Identifier: MIT
"""Keeps constants of the card whose value the host cannot read back."""

import torch

#: The card has other numbers in place of these: the largest of fp16 is 65536 there, which a copy to
#: the host makes infinite.
STORED_OTHERWISE = (torch.float16, torch.bfloat16)


def returns(tensor):
    """Returns True if a copy to the host, as the caches of compiled code make, has its numbers."""
    if tensor.dtype not in STORED_OTHERWISE:
        return True
    return torch.allclose(tensor.float().cpu(), tensor.cpu().float(), 0, 0, equal_nan=True)


def register():
    """Makes Inductor's folding leave such tensors alone, which evaluates them and reads a number."""
    from torch._inductor.fx_passes.joint_graph import UniformValueConstantFolder

    check = UniformValueConstantFolder.insertable_tensor_check

    def insertable_tensor_check(self, t):
        stored_otherwise = t.device.type == "spyre" and t.dtype in STORED_OTHERWISE
        return not stored_otherwise and check(self, t)

    UniformValueConstantFolder.insertable_tensor_check = insertable_tensor_check

# SPDX-License-Identifier: MIT
"""torch.compile for the card.

A pass over the graph, before Inductor lowers it, gathers operations that the SDSC builder
supports into groups (:mod:`.partition`). Each group becomes one node of Inductor's IR
(:mod:`.lowering`), one bundle on disk (:mod:`.bundle`) and one line of the generated wrapper.
All other operations run eagerly.

This package does not import torch._dynamo or torch._inductor; it registers its parts when a
program imports them.
"""

import importlib
import importlib.abc
import importlib.util
import sys


class _AfterImport(importlib.abc.MetaPathFinder):
    """An import hook that calls a function after a module has been imported."""

    def __init__(self, name, function):
        self.name, self.function = name, function

    def find_spec(self, name, path=None, target=None):
        """Returns the module's spec with a loader that calls the function; else None."""
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            try:
                load(module)
            except BaseException:
                sys.meta_path.insert(0, self)  # the program may import it again
                raise
            self.function()

        spec.loader.exec_module = exec_module
        return spec


def after_import(name, function):
    """Calls @function once module @name is imported, at once if it is already."""
    if name in sys.modules:
        function()
    else:
        sys.meta_path.insert(0, _AfterImport(name, function))


def _dynamo():
    """Registers the device with Dynamo."""
    from . import device

    device.register_interface()


def _backend():
    """Registers the backend of torch.compile(backend='spyre')."""
    from torch._dynamo.backends.registry import register_backend

    def spyre(gm, example_inputs, **options):
        """Compiles with Inductor and the card's back end."""
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(gm, example_inputs, **options)

    register_backend(spyre, name="spyre")


def _codegen():
    """Registers the card's passes, scheduling and wrapper with Inductor."""
    from . import registration

    registration.register()


def _decompositions():
    """Keeps operations whole that the card has."""
    from . import decompositions

    decompositions.register()


def _calls():
    """Keeps functions whole that Dynamo would take apart."""
    from . import dynamo

    dynamo.keep_functions()


def _methods():
    """Keeps methods of tensors whole that Dynamo would take apart."""
    from . import dynamo

    dynamo.keep_methods()


def _hints():
    """Makes spyre_hint() and named dims known to compile_fx()."""
    from . import hint

    hint.register()


def _folding():
    """Keeps constants whose value the host cannot read back."""
    from . import folding

    folding.register()


def _artefacts():
    """Makes AOTAutograd's cache bypass graphs that it would confuse."""
    from . import artefacts

    artefacts.register()


def register():
    """Registers the card with dynamo and Inductor when they are imported."""
    after_import("torch._dynamo.device_interface", _dynamo)
    after_import("torch._dynamo.backends.registry", _backend)
    after_import("torch._dynamo.variables.torch", _calls)
    after_import("torch._dynamo.variables.tensor", _methods)
    after_import("torch._inductor.codegen.common", _codegen)
    after_import("torch._inductor.decomposition", _decompositions)
    after_import("torch._functorch._aot_autograd.autograd_cache", _artefacts)
    after_import("torch._inductor.fx_passes.joint_graph", _folding)
    after_import("torch._inductor.compile_fx", _hints)


#: The public names and their modules, which are imported on first access.
PUBLIC = {
    "spyre_hint": "hint",
    "HintError": "hint",
    "declare_tensor_dim": "propagate_named_dims",
    "name_tensor_dims": "propagate_named_dims",
}


def __getattr__(name):
    """Imports the submodule of a public name at its first use."""
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{PUBLIC[name]}"), name)

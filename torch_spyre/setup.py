# SPDX-License-Identifier: MIT
"""Builds torch_spyre._C against torch and libspyre.

libspyre comes from pkg-config; SPYRE_PREFIX names another installation and
SPYRE_BUILDDIR an uninstalled build tree (SPYRE_SRCDIR its sources, if elsewhere).
"""

import glob
import os
import subprocess

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

HERE = os.path.dirname(os.path.abspath(__file__))


def pkg_config(*options):
    command = ["pkg-config", *options, "libspyre"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            "torch_spyre: libspyre is not there: `pkg-config libspyre` fails. Install it, or set "
            "SPYRE_PREFIX to where it is installed or SPYRE_BUILDDIR to the tree it was built in."
        ) from error


def libspyre():
    """Include and library folders of libspyre."""
    build = os.environ.get("SPYRE_BUILDDIR")
    if build:
        source = os.environ.get("SPYRE_SRCDIR", build)
        return [os.path.join(source, "include")], [os.path.join(build, "libspyre", ".libs")]
    prefix = os.environ.get("SPYRE_PREFIX")
    if prefix:
        return [os.path.join(prefix, "include")], [os.path.join(prefix, "lib")]
    include = [option[2:] for option in pkg_config("--cflags-only-I")]
    library = [option[2:] for option in pkg_config("--libs-only-L")]
    return include, library


include_dirs, library_dirs = libspyre()
# torch's own headers of the profiler include Kineto's by plain names.
include_dirs += [os.path.join(path, "kineto") for path in include_paths()]
include_dirs = [os.path.abspath(path) for path in include_dirs]
library_dirs = [os.path.abspath(path) for path in library_dirs]


def required_torch():
    """The minor version that is built against: its binary interface is no other's."""
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    return f"torch>={major}.{minor},<{major}.{minor + 1}"


setup(
    install_requires=[required_torch()],
    ext_modules=[
        CppExtension(
            "torch_spyre._C",
            # Relative, as setuptools wants it for a source distribution.
            sorted(os.path.relpath(path, HERE) for path in glob.glob(f"{HERE}/csrc/*.cpp")),
            include_dirs=include_dirs,
            library_dirs=library_dirs,
            runtime_library_dirs=library_dirs,
            libraries=["spyre"],
            extra_compile_args=["-Wall", "-fvisibility=hidden"],
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)

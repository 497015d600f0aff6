# SPDX-License-Identifier: MIT
"""Builds the package "spyre". Its version is that of the libspyre that it is built with."""

import subprocess

from setuptools import setup

setup(
    version=subprocess.check_output(["pkg-config", "--modversion", "libspyre"], text=True).strip(),
    cffi_modules=["spyre/build_library.py:ffi"],
)

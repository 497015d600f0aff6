# SPDX-License-Identifier: MIT
"""Builds the module spyre._library: all functions and types of libspyre's installed headers.

The declarations are taken from the headers by the C preprocessor, and the compiler checks each of
them, so the module cannot differ from the library that it was built with.
"""

import os
import re
import shlex
import subprocess

import cffi


def output(*command):
    """Returns what a command prints; raises CalledProcessError if it fails."""
    return subprocess.check_output(command, text=True)


def preprocessed(*options):
    """Returns the text of <spyre/spyre.h> and its includes after the preprocessor."""
    return output(*shlex.split(os.environ.get("CC", "cc")), "-E", *options, "-include", "spyre/spyre.h",
                  "-x", "c", os.devnull)


def declarations(flags):
    """Returns the lines of libspyre's headers, without those of system headers."""
    ours, lines = False, []
    for line in preprocessed(*flags).splitlines():
        if line.startswith("# "):
            ours = "/spyre/" in line
        elif ours:
            lines.append(line.replace('__attribute__((visibility("default")))', ""))
    return lines


flags = shlex.split(output("pkg-config", "--cflags", "libspyre"))
libraries = shlex.split(output("pkg-config", "--libs", "libspyre"))
ffi = cffi.FFI()
numbers = re.findall(r"^#define (SPYRE_\w+) (?:\d|UINT)", preprocessed("-dM", *flags), re.M)
ffi.cdef("\n".join(declarations(flags) + [f"#define {name} ..." for name in numbers]))
ffi.set_source(
    "spyre._library", "#include <spyre/spyre.h>", extra_compile_args=flags,
    extra_link_args=libraries + shlex.split(os.environ.get("LDFLAGS", "")))

# SPDX-License-Identifier: MIT
"""Builds torch_spyre._C against torch and libspyre.

libspyre comes from pkg-config; SPYRE_PREFIX names another installation and
SPYRE_BUILDDIR an uninstalled build tree (SPYRE_SRCDIR its sources, if elsewhere).
An installed libspyre is copied into the package, with the libraries that it
needs, so that a wheel needs nothing but torch. One of a build tree is linked
by its path, so that a rebuilt library takes effect. SPYRE_BUNDLE=1 or 0
overrides that.

For another architecture, SPYRE_TORCH names the folder of that one's torch, CXX
the compiler, and LDD, OBJDUMP and STRIP the commands that read its libraries.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

HERE = os.path.dirname(os.path.abspath(__file__))


def pkg_config(*options):
    """Returns the words that pkg-config prints for libspyre; exits with a remedy if it fails."""
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


TORCH = os.environ.get("SPYRE_TORCH", os.path.dirname(torch.__file__))


def of_target(paths):
    """Returns folders of this Python's torch as those of TORCH, and others as they are."""
    here = os.path.dirname(torch.__file__)
    return [TORCH + path.removeprefix(here) if path.startswith(here) else path for path in paths]


include_dirs, library_dirs = libspyre()
# torch's own headers of the profiler include Kineto's by plain names.
include_dirs += [os.path.join(path, "kineto") for path in of_target(include_paths())]
# Includes name the folder of csrc unless it is their own.
include_dirs = [os.path.abspath(path) for path in [os.path.join(HERE, "csrc"), *include_dirs]]
library_dirs = [os.path.abspath(path) for path in library_dirs]


# Libraries that every machine with Python has; torch loads its own copy of the last two.
SYSTEM_LIBRARIES = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libpthread|libdl|librt"
                              r"|libgcc_s|libstdc\+\+)\.so")


def bundled():
    """Returns True if the package is to carry libspyre: SPYRE_BUNDLE, or no SPYRE_BUILDDIR."""
    choice = os.environ.get("SPYRE_BUNDLE", "0" if os.environ.get("SPYRE_BUILDDIR") else "1")
    if choice not in ("0", "1"):
        raise SystemExit(f"torch_spyre: SPYRE_BUNDLE is '{choice}'; set it to 0 or 1")
    return choice == "1"


def tool(name):
    """Returns the words of a command that an environment variable, its name in capitals, may set."""
    return shlex.split(os.environ.get(name.upper(), "")) or [name]


def run(*command):
    """Runs a command and returns its output; raises CalledProcessError if it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def find_library():
    """Returns the path of libspyre.so that the extension is linked with; exits without one."""
    for folder in [*library_dirs, *pkg_config_folder()]:
        path = os.path.join(folder, "libspyre.so")
        if os.path.exists(path):
            return os.path.realpath(path)
    raise SystemExit("torch_spyre: cannot find libspyre.so to put into the package; "
                     "set SPYRE_PREFIX to where it is installed, or SPYRE_BUNDLE=0")


def pkg_config_folder():
    """The folder of libspyre where pkg-config leaves out -L because it is a system one."""
    if os.environ.get("SPYRE_BUILDDIR") or os.environ.get("SPYRE_PREFIX"):
        return []
    return pkg_config("--variable=libdir")


def soname(path):
    """Returns the SONAME of a shared library."""
    return re.search(r"SONAME\s+(\S+)", run(*tool("objdump"), "-p", path)).group(1)


def libraries_to_bundle():
    """Name and path of libspyre and of each library that it needs and a machine may lack."""
    library = find_library()
    found = {soname(library): library}
    for name, path in re.findall(r"^\s*(\S+) => (.*?)(?: \(0x\w+\))?$", run(*tool("ldd"), library), re.M):
        if path == "not found":
            raise SystemExit(f"torch_spyre: libspyre needs {name}, which is not installed")
        if not SYSTEM_LIBRARIES.match(name):
            found[name] = os.path.realpath(path)
    return found


def copyright_file(path):
    """Where Debian keeps the licence of the package that a library came with, or None."""
    # The last pattern finds the library of another architecture under this one's folder.
    for name in (path, re.sub("^/usr/lib/", "/lib/", path), "*/" + os.path.basename(path)):
        try:
            package = run("dpkg-query", "-S", name).split(":")[0]
        except (OSError, subprocess.CalledProcessError):
            continue
        return f"/usr/share/doc/{package}/copyright"
    return None


class BundlingBuildExtension(BuildExtension):
    """Copies libspyre and its libraries next to the extension module."""

    def run(self):
        """Builds the extension, then copies libspyre and its libraries next to it if bundled()."""
        super().run()
        if not bundled():
            return
        folder = os.path.join(os.path.dirname(self.get_ext_fullpath("torch_spyre._C")), "lib")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "licences"))
        for name, path in libraries_to_bundle().items():
            copy = os.path.join(folder, name)
            shutil.copyfile(path, copy)
            if shutil.which(tool("strip")[0]):
                run(*tool("strip"), "--strip-unneeded", copy)
            licence = copyright_file(path)
            if licence and os.path.exists(licence):
                shutil.copyfile(licence, os.path.join(folder, "licences", name + ".txt"))


def link_options():
    """Options of the linker and folders of libraries at run time.

    The module names each library of its own folder: the loader then has them before
    libspyre, which has no path to them, asks for them.
    """
    if not bundled():
        return [], library_dirs
    others = [path for name, path in libraries_to_bundle().items() if "spyre" not in name]
    return ["-Wl,--no-as-needed", *others, "-Wl,--as-needed"], ["$ORIGIN/lib"]


extra_link_args, runtime_library_dirs = link_options()


def required_torch():
    """The minor version that is built against: its binary interface is no other's."""
    with open(os.path.join(TORCH, "version.py"), encoding="utf-8") as file:
        version = re.search(r"^__version__ = '(\d+)\.(\d+)", file.read(), re.M)
    major, minor = (int(part) for part in version.groups())
    return f"torch>={major}.{minor},<{major}.{minor + 1}"


extension = CppExtension(
    "torch_spyre._C",
    # Relative, as setuptools wants it for a source distribution.
    sorted(os.path.relpath(path, HERE) for path in glob.glob(f"{HERE}/csrc/*/*.cpp")),
    include_dirs=include_dirs,
    library_dirs=library_dirs,
    runtime_library_dirs=runtime_library_dirs,
    libraries=["spyre"],
    extra_link_args=extra_link_args,
    extra_compile_args=["-Wall", "-fvisibility=hidden"],
)
extension.include_dirs = of_target(extension.include_dirs)
extension.library_dirs = of_target(extension.library_dirs)
extension.runtime_library_dirs = of_target(extension.runtime_library_dirs)

setup(
    install_requires=[required_torch()],
    ext_modules=[extension],
    cmdclass={"build_ext": BundlingBuildExtension},
)

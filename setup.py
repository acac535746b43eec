"""Build the optional C extensions; everything else is declared in pyproject.toml.

Four environment variables are read. LOGUNIF_KL_NO_EXTENSION=1 leaves them out, so that the
wheel is pure Python. LOGUNIF_KL_SANITIZE=1 builds them with AddressSanitizer and
UndefinedBehaviorSanitizer. LOGUNIF_KL_RELEASE=1 requires the kernels of SIMD, as the wheels for
others need. With either of the last two, a failure to compile is an error. SOURCE_DATE_EPOCH is
the time of each file in an sdist, as setuptools makes it in a wheel.
"""

import gzip
import os
import re
import shutil
import sys
import sysconfig
import tarfile
import tomllib
from glob import glob
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

FLOATING_POINT = [
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-fast-math",
]
FLAGS = [
    "-std=c11",
    "-O3",
    *FLOATING_POINT,
    "-fvisibility=hidden",
    # Python's own flags have these, but CFLAGS replaces them.
    "-fwrapv",
    "-DNDEBUG",
    # Debug information triples the size of a wheel and names the directory of the build.
    "-g0",
]
LINK_FLAGS = ["-O3", *FLOATING_POINT]
MSVC_FLAGS = ["/std:c11", "/O2", "/fp:precise"]
CLANG_CL_FLAGS = [*MSVC_FLAGS, *(f"/clang:{flag}" for flag in ("-O3", *FLOATING_POINT))]
CLANG_CL_TARGETS = {"win-amd64": "x86_64", "win-arm64": "aarch64", "win32": "i686"}
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
# Lines without variables: following those takes the compiler three times as long.
SANITIZE_FLAGS = [*SANITIZE, "-O1", "-g1", "-fno-omit-frame-pointer"]

NOTICE = """
logunif_kl: C extensions were not built, because the C compiler failed or there is none (see the
messages above): {names}.
The package still works: the same functions run without them, several times more slowly. To have the
fast ones, install a C compiler and reinstall; logunif_kl.show_config() says which are in use.
"""


def switched_on(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


# One binary serves each CPython from 3.11 on, except those without the GIL.
ABI3 = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
RELEASE = switched_on("LOGUNIF_KL_RELEASE")


class BuildUfuncs(build_ext):
    """Choose flags for the compiler at hand; let a missing compiler cost speed, not the install."""

    def build_extension(self, ext):
        import numpy as np

        ext.include_dirs.append(np.get_include())
        ext.extra_compile_args += self.flags()
        if self.compiler.compiler_type != "msvc":
            # CFLAGS reaches the linker too, where -Ofast would add code that flushes subnormal
            # numbers in the whole process. The last options count.
            ext.extra_link_args += LINK_FLAGS
        if switched_on("LOGUNIF_KL_SANITIZE"):
            ext.extra_compile_args += SANITIZE_FLAGS
            ext.extra_link_args += SANITIZE
        super().build_extension(ext)

    def flags(self):
        if self.compiler.compiler_type != "msvc":
            return FLAGS
        # MSVC has no attribute for the instruction set of a function, so only clang compiles the
        # kernels of SIMD.
        clang = shutil.which("clang-cl")
        if clang is None:
            return MSVC_FLAGS
        if not self.compiler.initialized:
            self.compiler.initialize(self.plat_name)
        self.compiler.cc = clang
        return [f"--target={CLANG_CL_TARGETS[self.plat_name]}-pc-windows-msvc", *CLANG_CL_FLAGS]

    def get_ext_filename(self, fullname):
        # Python 3.15 adds the platform to ".abi3", and Python 3.13 does not find such a file.
        return re.sub(r"\.abi3-[^.]+(?=\.so$)", ".abi3", super().get_ext_filename(fullname))

    def run(self):
        # What an earlier build left, under other flags or another suffix, must not be used again.
        for folder in [self.build_lib, *([""] if self.inplace else [])]:
            for ext in self.extensions:
                for suffix in EXTENSION_SUFFIXES:
                    Path(folder, ext.name.replace(".", "/") + suffix).unlink(missing_ok=True)
        self.force = True
        super().run()
        missing = [
            ext.name
            for ext in self.extensions
            if not Path(self.build_lib, self.get_ext_filename(ext.name)).exists()
        ]
        if missing:
            print(NOTICE.format(names=", ".join(missing)), flush=True)


class Sdist(sdist):
    """With SOURCE_DATE_EPOCH, two sdists of one commit have the same bytes, as wheels do."""

    def make_archive(self, base_name, format, **options):
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, **options)

        def normal(member):
            member.mtime = int(epoch)
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            return member

        name = f"{base_name}.tar.gz"
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        with (
            open(name, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=int(epoch)) as zipped,
            tarfile.open(fileobj=zipped, mode="w") as tar,
        ):
            tar.add(options["base_dir"], filter=normal)
        return name


def extension(name, source, **options):
    return Extension(
        f"logunif_kl.{name}",
        sources=[f"logunif_kl/{source}"],
        depends=sorted(glob("logunif_kl/_numpy/c/*.h") + glob("logunif_kl/*/c/*.h")),
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
            *([("Py_LIMITED_API", "0x030B0000")] if ABI3 else []),
            *([("LK_RELEASE", "1")] if RELEASE else []),
        ],
        py_limited_api=ABI3,
        libraries=[] if sys.platform == "win32" else ["m"],
        optional=not (RELEASE or switched_on("LOGUNIF_KL_SANITIZE")),
        **options,
    )


EXTENSIONS = [
    extension("_numpy._exact", "_numpy/c/exact_ufuncs.c"),
    extension("_numpy._float32", "_numpy/c/float32_ufuncs.c"),
    # PyTorch reports errors by exceptions of C++, which pass through the functions of this module.
    extension(
        "torch._library",
        "torch/c/library.c",
        extra_compile_args=[] if sys.platform == "win32" else ["-fexceptions"],
    ),
    extension("jax._ffi", "jax/c/ffi.c"),
]


def readme():
    """The README, with links that also lead to the repository from elsewhere."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = Path("README.md").read_text(encoding="utf-8")
    address = project["urls"]["Repository"]
    text = re.sub(r"(!\[[^]]*\]\()(?!https:)", rf"\1{address}/raw/HEAD/", text)
    return re.sub(r"(?<!!)(\[[^]!]*\]\()(?!https:)", rf"\1{address}/blob/HEAD/", text)


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    ext_modules=[] if switched_on("LOGUNIF_KL_NO_EXTENSION") else EXTENSIONS,
    cmdclass={"build_ext": BuildUfuncs, "sdist": Sdist},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {},
)

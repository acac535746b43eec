"""Build the optional C extensions; everything else is declared in pyproject.toml.

Two environment variables are read. LOGUNIF_KL_NO_EXTENSION=1 leaves them out, so that the
wheel is pure Python. LOGUNIF_KL_SANITIZE=1 builds them with AddressSanitizer and
UndefinedBehaviorSanitizer, and then a failure to compile is an error.
"""

import os
import sys
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FLAGS = [
    "-std=c11",
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fvisibility=hidden",
]
MSVC_FLAGS = ["/std:c11", "/O2", "/fp:precise"]
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


class BuildUfuncs(build_ext):
    """Choose flags for the compiler at hand; let a missing compiler cost speed, not the install."""

    def build_extension(self, ext):
        import numpy as np

        # What an earlier build left under another set of flags must not be packaged again.
        output = Path(self.get_ext_fullpath(ext.name))
        output.unlink(missing_ok=True)
        self.force = True
        self.compiler.force = True

        ext.include_dirs.append(np.get_include())
        ext.extra_compile_args += MSVC_FLAGS if self.compiler.compiler_type == "msvc" else FLAGS
        if switched_on("LOGUNIF_KL_SANITIZE"):
            ext.extra_compile_args += SANITIZE_FLAGS
            ext.extra_link_args += SANITIZE
        super().build_extension(ext)

    def run(self):
        super().run()
        missing = [
            ext.name
            for ext in self.extensions
            if not Path(self.build_lib, self.get_ext_filename(ext.name)).exists()
        ]
        if missing:
            print(NOTICE.format(names=", ".join(missing)), flush=True)


def extension(name, source, **options):
    return Extension(
        f"logunif_kl.{name}",
        sources=[f"logunif_kl/{source}"],
        depends=sorted(glob("logunif_kl/_numpy/c/*.h") + glob("logunif_kl/*/c/*.h")),
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
        ],
        libraries=[] if sys.platform == "win32" else ["m"],
        optional=not switched_on("LOGUNIF_KL_SANITIZE"),
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

setup(
    ext_modules=[] if switched_on("LOGUNIF_KL_NO_EXTENSION") else EXTENSIONS,
    cmdclass={"build_ext": BuildUfuncs},
)

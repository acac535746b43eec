"""Run tests against the C extensions built with AddressSanitizer and UndefinedBehaviorSanitizer.

    python -m validation.tools.sanitize [pytest arguments]

The package is built with LOGUNIF_KL_SANITIZE=1 in a temporary directory and tested there, with each
instruction set of this machine. Leaks are not detected, because Python keeps some memory until it
exits. For 100,000 examples use ``--hypothesis-profile thorough tests/test_shapes.py``.
"""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from validation.tools.elsewhere import EXTENSIONS, copy_source, copy_tests, pip_install, python

# These tests use the chosen kernel, so they run once for each.
OF_THE_CHOSEN = [f"tests/test_{name}.py" for name in ("accuracy", "api", "special")]
# These tests try all kernels themselves, or depend on none.
OF_ALL = [
    "tests/jax/test_handlers.py",
    "tests/numpy/test_float32_magnitudes.py",
    "tests/numpy/test_float32_ufuncs.py",
    "tests/numpy/test_magnitudes.py",
    "tests/numpy/test_threads.py",
    "tests/test_shapes.py",  # with PyTorch and JAX if they are installed
    "tests/torch/test_library.py",  # with stubs instead of PyTorch
]
# To detect uses of returned stack memory, GCC before 14 aligns variables to 32 bytes, but AVX-512
# needs 64 (its bug 110027). The tests of every kernel also run those of the others.
ASAN_OPTIONS = "detect_leaks=0:detect_stack_use_after_return="
AVAILABLE = "from logunif_kl._numpy import _exact; print(*_exact.available)"


def runtime_libraries() -> str:
    """Return the libraries to preload: the sanitizer must come before everything that allocates.

    libstdc++ is included, because the exceptions of other C++ extensions are intercepted only if it
    is loaded from the start.
    """
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    found = []
    for name in ("libasan.so", "libstdc++.so.6"):
        command = [compiler, f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        if not Path(path).is_absolute():
            raise SystemExit(f"sanitize: {compiler} has no {name}; install the sanitizer runtime.")
        found.append(path)
    return ":".join(found)


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        target = here / "target"
        built = pip_install(copy_source(here / "source"), target, env={"LOGUNIF_KL_SANITIZE": "1"})
        for name in EXTENSIONS:
            found = list(target.glob(f"logunif_kl/{name}.*so"))
            if built.returncode or not found or b"__asan_" not in found[0].read_bytes():
                print(built.stdout, f"sanitize: {name} was not built with them", sep="\n")
                return 1

        env = {
            "LD_PRELOAD": runtime_libraries(),
            "ASAN_OPTIONS": f"{ASAN_OPTIONS}0",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
        }
        elsewhere = copy_tests(here / "elsewhere")
        kernels = python(["-c", AVAILABLE], target, cwd=elsewhere, env=env).stdout.split()
        if "avx512" not in kernels:
            env["ASAN_OPTIONS"] = f"{ASAN_OPTIONS}1"
        status = 0
        for index, kernel in enumerate(kernels):
            tests = arguments or [*([] if index else OF_ALL), *OF_THE_CHOSEN]
            print(f"sanitize: {kernel}", flush=True)
            command = ["-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *tests]
            done = python(command, target, elsewhere, env | {"LOGUNIF_KL_KERNEL": kernel})
            print(done.stdout, flush=True)
            status = status or done.returncode
        return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

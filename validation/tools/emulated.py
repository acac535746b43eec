"""Build the C extensions for AArch64 and run their tests under emulation.

    python -m validation.tools.emulated [--cache DIRECTORY] [--measure] [pytest arguments]

debootstrap, which needs root and a system like Debian, puts Python for arm64 into a directory, and
a cross compiler builds the extensions. QEMU runs the tests with the kernel ``neon``, and a few with
``baseline``. ``--measure`` measures the accuracy of ``neon`` instead. The exit status is 1 if a
test fails, and 77 if emulation is not possible.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, NoReturn

from validation.accuracy.driver import EMULATOR, RESULTS, WORST_INPUTS
from validation.paths import ROOT
from validation.tools.elsewhere import EXTENSIONS, copy_source, copy_tests, run
from validation.tools.versions import project, requirements

UNAVAILABLE = 77
EMULATORS = ("qemu-aarch64-static", "qemu-aarch64")
COMPILER = "aarch64-linux-gnu-gcc"
PACKAGES = ("qemu-user-static", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "debootstrap")
SHORT = ("tests/test_accuracy.py", "tests/test_api.py")
TESTS = {
    "neon": (
        *SHORT,
        "tests/test_special.py",
        "tests/numpy/test_float32_magnitudes.py",
        "tests/numpy/test_float32_ufuncs.py",
        "tests/validation/test_bits.py::test_today_s_kernels_are_those_that_were_measured[neon]",
        "tests/validation/test_bits.py::test_fused_and_unfused_arithmetic_are_told_apart",
        "tests/validation/test_golden.py",
        "tests/validation/test_proofs.py::test_the_graph_is_the_kernel",
    ),
    "baseline": SHORT,
}


def say(what: str) -> None:
    print(f"emulated: {what}", flush=True)


def unavailable(why: str) -> NoReturn:
    print(f"emulated: {why}.", file=sys.stderr)
    raise SystemExit(UNAVAILABLE)


def emulator() -> str:
    """Find QEMU, or exit with a sentence that says what is missing."""
    if platform.machine() in ("aarch64", "arm64"):
        unavailable("this machine is AArch64 itself: run the tests by pytest")
    found = next(filter(None, map(shutil.which, EMULATORS)), None)
    missing = [name for name in (COMPILER, "debootstrap") if shutil.which(name) is None]
    if found is None:
        missing.insert(0, EMULATORS[0])
    if missing or found is None:
        unavailable(
            f"AArch64 cannot be emulated here, because {', '.join(missing)} cannot be found: "
            f"apt-get install {' '.join(PACKAGES)}"
        )
    if os.geteuid() != 0:
        unavailable("debootstrap must be run by root: start this as root")
    return found


def checked(command: Sequence[str | Path], what: str, env: Mapping[str, str] | None = None) -> None:
    done = run([str(word) for word in command], cwd=ROOT, env=env)
    if done.returncode:
        print(done.stdout)
        unavailable(f"{what} failed with the exit status {done.returncode}, as shown above")


def suite() -> str:
    """Name the Debian release, whose C library must not be older than the compiler's."""
    try:
        about = platform.freedesktop_os_release()
    except OSError:
        about = {}
    return about.get("VERSION_CODENAME", "bookworm") if about.get("ID") == "debian" else "bookworm"


def make_root(root: Path) -> None:
    """Unpack Python for arm64 and its dependencies, without configuring them."""
    packages = "--include=python3,libpython3-dev"
    options = ["--foreign", "--arch=arm64", "--variant=minbase", packages]
    checked(["debootstrap", *options, suite(), root], "debootstrap")
    for package in sorted(root.glob("var/cache/apt/archives/*.deb")):
        unpack = ["dpkg-deb", "--fsys-tarfile", str(package)]
        with subprocess.Popen(unpack, stdout=subprocess.PIPE) as unpacked:
            command = ["tar", "-x", "--keep-directory-symlink", "-C", str(root)]
            subprocess.run(command, stdin=unpacked.stdout, check=True)
        package.unlink()


def make_site(root: Path, site: Path) -> None:
    wanted = [f"{name}>={bound}" for name, bound in requirements("test", of=project()).items()]
    version = os.readlink(root / "usr" / "bin" / "python3").removeprefix("python")
    options = ["--target", str(site), "--only-binary", ":all:", "--python-version", version]
    options += [f"--platform=manylinux{v}_aarch64" for v in ("_2_28", "_2_27", "_2_17", "2014")]
    options += ["--implementation=cp", f"--abi=cp{version.replace('.', '')}"]
    options += ["--abi=abi3", "--abi=none"]
    checked([sys.executable, "-m", "pip", "install", "-q", *options, *wanted], "pip")


class Machine(NamedTuple):
    """An emulated Python, and a copy of the tree with extensions built for it."""

    python: Path
    tree: Path
    env: dict[str, str]

    def test(self, kernel: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        return run(command, cwd=self.tree, env={**self.env, "LOGUNIF_KL_KERNEL": kernel})


def make_machine(qemu: str, cache: Path, tree: Path) -> Machine:
    """Make the root and the wheels if the cache lacks them, and build the extensions."""
    root, site, done = cache / "root", cache / "site", cache / "done"
    if not done.exists():
        say("a root for arm64, and the wheels")
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(site, ignore_errors=True)
        make_root(root)
        make_site(root, site)
        done.touch()

    # QEMU looks for a directory in the root first, and temporary files are outside.
    shutil.rmtree(root / "tmp", ignore_errors=True)
    # Python finds its directories, and starts other Pythons, by this name.
    scripts = root / "usr" / "bin"
    python, binary = scripts / "python-emulated", scripts / os.readlink(scripts / "python3")
    python.write_text(f'#!/bin/sh\nexec "{qemu}" -L "{root}" -0 "$0" "{binary}" "$@"\n')
    python.chmod(0o755)
    said = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"\d+(\.\d+)+", said)
    copy_source(tree)
    copy_tests(tree)
    tools = cache / "tools"  # what a test compiles and loads must be for arm64 too
    tools.mkdir(exist_ok=True)
    (tools / "cc").unlink(missing_ok=True)
    (tools / "cc").symlink_to(str(shutil.which(COMPILER)))
    env = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{tree}{os.pathsep}{site}",
        EMULATOR: f"qemu-aarch64 {version[0] if version else 'of an unknown version'}",
    }
    machine = Machine(python, tree, env)

    say("the extensions")
    headers = {"CC": COMPILER, "LDSHARED": f"{COMPILER} -shared"}
    headers["CFLAGS"] = f"-idirafter {root}/usr/include"
    built = run([str(python), "setup.py", "build_ext", "--inplace"], tree, env | headers)
    for name in EXTENSIONS:
        if built.returncode or not list(tree.glob(f"logunif_kl/{name}.*so")):
            print(built.stdout, f"emulated: {name} was not built", sep="\n")
            raise SystemExit(1)
    return machine


def measure(machine: Machine) -> int:
    command = [str(machine.python), "-m", "validation.accuracy", "measure", "neon"]
    status = subprocess.run(command, cwd=machine.tree, env=os.environ | machine.env).returncode
    for path in (machine.tree / RESULTS.relative_to(ROOT)).glob("neon*.json"):
        shutil.copy(path, RESULTS / path.name)
    shutil.copy(machine.tree / WORST_INPUTS.relative_to(ROOT), WORST_INPUTS)
    return status


def test(machine: Machine, arguments: Sequence[str]) -> int:
    def tested(kernel: str) -> int:
        done = machine.test(kernel, arguments or TESTS[kernel])
        say(f"{kernel}\n{done.stdout}")
        return done.returncode

    say("the tests")
    with ThreadPoolExecutor() as pool:
        return int(any(list(pool.map(tested, TESTS))))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Test the C extensions on an emulated AArch64.")
    parser.add_argument("--cache", type=Path, help="a directory for what was downloaded")
    parser.add_argument("--measure", action="store_true", help="measure the accuracy of neon")
    options, rest = parser.parse_known_args(arguments)
    qemu = emulator()
    with tempfile.TemporaryDirectory() as temporary:
        cache = options.cache.absolute() if options.cache else Path(temporary, "cache")
        cache.mkdir(parents=True, exist_ok=True)
        machine = make_machine(qemu, cache, Path(temporary, "tree"))
        return measure(machine) if options.measure else test(machine, rest)


if __name__ == "__main__":
    raise SystemExit(main())

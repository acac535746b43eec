"""The fuzzing targets, built without a fuzzer: a few inputs find nothing, and find what is broken.

`python -m validation.fuzz` tries many more under the sanitizers.
"""

import re
import shutil
import subprocess

import pytest

from validation.fuzz import __main__ as fuzz
from validation.fuzz import build
from validation.fuzz.build import TARGETS
from validation.paths import PACKAGE

INPUTS = 400
SANITIZE = ("-fsanitize=address",)

# By target: a file, what is replaced in it, by what, and what is said then.
BROKEN = {
    "one element too many is written": (
        "exact",
        "_numpy/c/exact_loops.h",
        "memcpy(value + k, a, bytes);",
        "memcpy(value + k, a, bytes + (LANES > 1) * sizeof(type));",
        "heap-buffer-overflow|memory was written",
    ),
    "the last number is left out": (
        "torch",
        "torch/c/work.h",
        "work->second + start,\n                          (ptrdiff_t)least(step, end - start)",
        "work->second + start, (ptrdiff_t)(least(step, end - start) - (end - start > 1000))",
        "by the kernel|result",
    ),
    "a place between chunks is left out": (
        "jax",
        "jax/c/ffi.c",
        "start = i * CHUNK;",
        "start = i * (CHUNK + 1);",
        "by the kernel",
    ),
}


@pytest.fixture(scope="module")
def compiler():
    found = build.find_cc()
    if found is None:
        pytest.skip("there is no C compiler")
    if not build.has_headers():
        pytest.skip("the headers of Python are not here")
    return found


@pytest.fixture(scope="module")
def sanitize(compiler, tmp_path_factory):
    """The options of a target: AddressSanitizer, where the compiler has it.

    It takes the compiler a minute over the float32 kernels.
    """
    folder = tmp_path_factory.mktemp("empty")
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    command = [compiler, *SANITIZE, "empty.c", "-o", "empty"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return lambda target: SANITIZE if done.returncode == 0 and target == "exact" else ()


@pytest.fixture(scope="module")
def built(compiler, sanitize, tmp_path_factory):
    """Every target, compiled when it is asked for."""
    folder = tmp_path_factory.mktemp("targets")

    def built(target):
        made = folder / target
        if not made.exists():
            build.build(target, folder, compiler, sanitize(target))
        return made

    return built


def run(program, *arguments):
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
class TestTargets:
    @pytest.mark.parametrize("target", TARGETS)
    def test_no_finding(self, target, built, tmp_path):
        """For random inputs, and for inputs in files."""
        done = run(built(target), "--seed", 1, "--count", INPUTS)
        assert (done.returncode, done.stdout) == (0, f"{INPUTS}\n"), done.stderr
        for i in range(40):
            (tmp_path / str(i)).write_bytes(bytes(range(i)))
        done = run(built(target), *sorted(tmp_path.iterdir()))
        assert (done.returncode, done.stdout) == (0, "40\n"), done.stderr

    @pytest.mark.parametrize("what", BROKEN)
    def test_what_is_broken_is_found(self, what, built, compiler, sanitize, tmp_path):
        target, file, good, bad, said = BROKEN[what]
        for folder in ("_numpy/c", "torch/c", "jax/c"):
            shutil.copytree(PACKAGE / folder, tmp_path / "logunif_kl" / folder)
        path = tmp_path / "logunif_kl" / file
        text = path.read_text()
        assert text.count(good) == 1
        path.write_text(text.replace(good, bad))
        for name in TARGETS[target]:
            shutil.copy(built(target).parent / f"{name}.o", tmp_path)
        broken = build.build(target, tmp_path, compiler, sanitize(target), root=tmp_path)
        done = run(broken, "--seed", 1, "--count", 4 * INPUTS)
        assert done.returncode != 0
        assert re.search(said, done.stderr), done.stderr


class TestCommand:
    def test_no_clang(self, monkeypatch, capsys, tmp_path):
        monkeypatch.setattr(build.shutil, "which", lambda name: None)
        monkeypatch.setattr(fuzz, "FOLDER", tmp_path / "fuzz")
        assert fuzz.main(["--minutes", "1"]) == 1
        assert capsys.readouterr().err == (
            "fuzz: clang with libFuzzer is needed, and there is no clang: install it "
            "(on Debian: apt-get install clang llvm libclang-rt-dev)\n"
        )

    def test_a_finding_fails(self, monkeypatch, capsys, tmp_path):
        """The input stays, the command that tries it again is printed, and no report is written."""
        finding = {"input": str(tmp_path / "exact-crash-1"), "said": "fuzz: it is wrong"}
        result = {"inputs": 7, "seconds": 1.0, "ended": 77, "finding": finding}
        monkeypatch.setattr(fuzz, "FOLDER", tmp_path)
        monkeypatch.setattr(fuzz, "find_clang", lambda: "clang")
        monkeypatch.setattr(fuzz, "build_fuzzer", lambda target, folder, clang: folder / target)
        monkeypatch.setattr(fuzz, "fuzz", lambda target, program, seconds: dict(result))
        report = tmp_path / "report.json"
        assert fuzz.main(["--targets", "exact", "--minutes", "1", "--json", str(report)]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[:2] == ["exact: 7 inputs in 1 s", "  fuzz: it is wrong"]
        assert lines[2].startswith("  to try it again: ")
        assert lines[2].endswith("exact-crash-1")
        assert not report.exists()

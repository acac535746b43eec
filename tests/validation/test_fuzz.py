"""The fuzzing targets, built without a fuzzer: a few inputs find nothing, and find what is broken.

`python -m validation.fuzz` tries many more under the sanitizers.
"""

import re
import shutil
import subprocess

import pytest

from logunif_kl._numpy import ufuncs
from validation.fuzz import __main__ as fuzz
from validation.fuzz import build
from validation.fuzz.build import TARGETS, BuildError
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
    "a NaN is not limited": (
        "float32",
        "_numpy/c/float32_rare.h",
        "maximum(set1(-14.0f), exponent)",
        "maximum(exponent, set1(-14.0f))",
        "an instruction took or made a subnormal number",
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
        if what == "a NaN is not limited" and "clang" in build.version(compiler):
            pytest.skip("clang takes subnormal numbers anyway, and so they are not looked for")
        if what == "a NaN is not limited" and "avx512" not in ufuncs.available_kernels():
            pytest.skip("it was found by the kernel for AVX-512 alone")
        for folder in ("_numpy/c", "torch/c", "jax/c"):
            shutil.copytree(PACKAGE / folder, tmp_path / "logunif_kl" / folder)
        path = tmp_path / "logunif_kl" / file
        text = path.read_text()
        assert text.count(good) == 1
        path.write_text(text.replace(good, bad))
        others = built(target).parent
        for name in TARGETS[target]:
            if target != "float32" or name == "reference":
                shutil.copy(others / f"{name}.o", tmp_path)
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

    def test_a_compiler_that_fails(self, compiler, tmp_path, monkeypatch):
        (tmp_path / "a.c").write_text("no C\n")
        with pytest.raises(BuildError, match=r"failed to make a:\n.*error"):
            build.compile_file(compiler, tmp_path / "a", [str(tmp_path / "a.c")])
        monkeypatch.setattr(build, "has_headers", lambda: False)
        with pytest.raises(BuildError, match=r"^fuzz: Python\.h is needed, and it is not there: "):
            build.compile_file(compiler, tmp_path / "a", [])

    def test_what_libfuzzer_says(self):
        said = (
            "#5583\tREDUCE cov: 2880 ft: 14874 corp: 1527/88Kb lim: 506 exec/s: 398\n"
            "#9000\tDONE   cov: 2881 ft: 14880 corp: 1530/89Kb lim: 512 exec/s: 390\n"
            "stat::number_of_executed_units: 9000\n"
        )
        expected = {"inputs": 9000, "edges": 2881, "features": 14880, "corpus": 1530}
        assert fuzz.read_log(said) == expected
        crash = "fuzz: input 0: kl_gap: it is wrong\n==7== ERROR: libFuzzer: deadly signal\n"
        found = fuzz.read_log(f"{crash}{said}Test unit written to build/fuzz/exact-crash-1\n")
        said = "fuzz: input 0: kl_gap: it is wrong"
        finding = {"input": "build/fuzz/exact-crash-1", "said": said}
        assert found == {**expected, "finding": finding}

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

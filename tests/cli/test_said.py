"""What a measurement depends on is what sources say, not how or where they are written."""

import pytest

from logunif_kl.cli import said

PYTHON = '''"""Doc."""
import math
from . import _kernel

A_SHA256 = "1"
_B: float = 2.0


def f(x: float) -> float:
    """Doc."""
    from ._tables import first

    return _kernel._exp(x) + _B * first(x)  # why
'''
MOVED = """from ..tables import exp, first
B = 2.0
def f( x ):
  return exp(
 x) + B * first(x)
"""
C = """#ifndef FILE_H
#define FILE_H
#include "file.h"
#define A 1 /* one */

// line
static char *s = "/* no // comment */";  // yes
#if LK_ISA == 512
#define wide(x) (x)
#endif
LK_TARGET_AVX2

LK_INLINE V
LK_NAME(f)(V a,
           V b)
{
    if (a) {
#ifdef LK_UNFUSED
        return a;
#endif
    }
    return b;
}
MAKES(one, two)
static int number(PyObject *names) { return 1; }
#endif
"""


def python_said(text):
    return said.python_said([("module", text)])


class TestPython:
    def test_what_moves_no_result_does_not_count(self):
        assert python_said(PYTHON) == python_said(MOVED)

    def test_the_order_does_not_count(self):
        assert python_said("x = 1\ny = 2") == python_said("y = 2\n\n\nx = 1")

    @pytest.mark.parametrize(
        "change",
        [("exp(x)", "exp(-x)"), ("._exp", "._log"), ("def f", "def g"), ("2.0", "3.0")],
    )
    def test_code_counts(self, change):
        assert python_said(PYTHON.replace(*change)) != python_said(PYTHON)

    def test_the_text_of_an_exception_does_not_count(self):
        before, after = "if x:\n raise E(f'{x}') from e", "if x:\n raise E('no x')"
        assert python_said(before) == python_said(after)
        assert python_said(before) != python_said(before.replace("E(", "F("))

    def test_the_module_of_another_library_counts(self):
        before, after = "import np\nnp.exp(1)", "import np\nmath.exp(1)"
        assert python_said(before) != python_said(after)

    def test_a_string_that_is_no_docstring_counts(self):
        assert python_said("x = 1\n'a'") != python_said("x = 1\n'b'")


FILES = {
    "first": "def f(x):\n    return x",
    "second": "def f(x):\n    return -x",
    "user": "from .first import f\ny = f(1)",
}


class TestNamesOfTwoModules:
    def of(self, **changed):
        return said.python_said([*(FILES | changed).items()])

    def test_which_is_imported_counts(self):
        other = "from .second import f\ny = f(1)"
        assert self.of(user=other) != self.of()
        assert self.of(user="from . import first\ny = first.f(1)") == self.of()
        assert self.of(user="from . import second as first\ny = first.f(1)") == self.of(user=other)

    def test_which_defines_what_counts(self):
        assert self.of(first=FILES["second"], second=FILES["first"]) != self.of()

    def test_a_name_that_both_define_alike_does_not_count(self):
        alike = dict.fromkeys(("first", "second"), "Array = object")
        assert self.of(**alike, user="from .first import Array\ny = Array") == self.of(
            **alike, user="from .second import Array\ny = Array"
        )


class TestC:
    def test_comments_layout_guards_and_glue_do_not_count(self):
        bare = """MAKES(one, two)
LK_INLINE V LK_NAME(f)(V a, V b) { if (a) {
#ifdef LK_UNFUSED
return a;
#endif
} return b; }
#define A 1
static char *s =\t"/* no // comment */";
#if LK_ISA == 512
#define wide(x) (x)
#endif
"""
        assert said.c_said(C) == said.c_said(bare)

    def test_definitions_are_told_apart(self):
        assert len(said.c_said(C)) == 5

    @pytest.mark.parametrize(
        "change",
        [
            ("A 1", "A 2"),
            ("no //", "yes //"),
            ("return b", "return a"),
            ("== 512", "== 256"),
            ("ifdef LK_UNFUSED", "ifndef LK_UNFUSED"),
            ("one, two", "two, one"),
            ("ifdef LK_UNFUSED", "ifdef LK_OTHER"),
        ],
    )
    def test_code_counts(self, change):
        assert said.c_said(C.replace(*change, 1)) != said.c_said(C)

    def test_a_body_belongs_to_its_head(self):
        f, g = "int f(int a)\n{\n return 1;\n}\n", "int g(int a)\n{\n return 2;\n}\n"
        swapped = f.replace("1", "2") + g.replace("2", "1")
        assert said.c_said(f + g) != said.c_said(swapped)


def test_top_level_conditions_count():
    text = "#if defined(A)\n#define f 1\n#else\n#define f 2\n#endif\n"
    assert said.c_said(text) != said.c_said(text.replace("1", "3").replace("2", "1"))
    assert said.c_said(text) != said.c_said(text.replace("defined(A)", "defined(B)"))


def test_a_hash_is_of_all_files_together(tmp_path):
    whole, first, second = (tmp_path / name for name in ("whole.py", "first.py", "second.py"))
    whole.write_text("x = 1\ny = 2\n")
    first.write_text("y = 2\n")
    second.write_text("x = 1\n")
    assert said.sha256([whole]) == said.sha256([first, second])
    assert said.sha256([whole]) != said.sha256([first])

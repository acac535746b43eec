"""Every kernel looks at the tensors that it is given, and no address of memory is passed elsewhere.

What the functions in C look at is tested with stubs too: tests/torch/test_library.py and
tests/jax/test_handlers.py, which run under the sanitizers.
"""

import ast
import importlib.util
import re
from types import SimpleNamespace

import pytest

from validation.paths import PACKAGE

torch = pytest.importorskip("torch")

from logunif_kl.torch import _cpu, _cpu_float32, _foreach, _kernels, _operators  # noqa: E402
from logunif_kl.torch._triton import launch  # noqa: E402

MARKS = {
    "exact": (),
    "float32": pytest.mark.skipif(
        not _cpu_float32.available(torch.zeros(1)), reason="the C extension is not in use"
    ),
    "operator": pytest.mark.skipif(_kernels.library() is None, reason=str(_kernels.why_not())),
    "Triton": pytest.mark.skipif(
        importlib.util.find_spec("triton") is None, reason="Triton is not installed"
    ),
}
FLOAT32, HALVES = [torch.float32], [torch.bfloat16, torch.float16]
# Of every function that takes tensors to a kernel, how many.
EXACT = dict.fromkeys(("value", "value_sum", "with_gradients", "sum_with_gradients"), 2)
ENTRIES = {
    "exact": (EXACT | {"of_log_alpha": 1, "sum_of_log_alpha": 1}, [*FLOAT32, torch.float64]),
    "float32": ({"value": 2, "value_sum": 2, "gradient": 3}, FLOAT32),
    "operator": ({"value": 2, "value_sum": 2, "gradient": 3, "log_alpha_gradient": 2}, FLOAT32),
    "Triton": ({"value": 2, "value_sum": 2, "gradient": 3, "unary": 1}, FLOAT32),
}
each_entry = pytest.mark.parametrize(
    ("kind", "name", "number", "dtype"),
    [
        pytest.param(kind, name, number, dtype, marks=MARKS[kind])
        for kind, (names, dtypes) in ENTRIES.items()
        for name, number in names.items()
        for dtype in (dtypes if kind == "operator" else dtypes + HALVES)
    ],
    ids=str,
)


class Nothing:
    """A kernel that is started and does nothing, on a device that is not there."""

    def __init__(self, *arguments): ...
    def __enter__(self): ...
    def __exit__(self, *error): ...
    def __getitem__(self, programs):
        return lambda *arguments, **options: None


@pytest.fixture
def triton(monkeypatch):
    """Launches that look at tensors of the CPU as if it was a GPU."""
    kernels = dict.fromkeys(("value", "value_sum", "gradient", "unary"), Nothing())
    monkeypatch.setattr(launch, "_kernels", lambda: SimpleNamespace(**kernels))
    monkeypatch.setattr(launch, "interpreting", True)
    monkeypatch.setattr(torch.cuda, "device_of", Nothing)


def call(kind, name, tensors):
    """Call an entry; return its results."""
    if kind == "operator":
        found = getattr(_operators.registered(), name)(*tensors)
    elif name == "unary":
        found = launch.unary(0, *tensors)
    elif name == "of_log_alpha":
        found = _cpu.Cpu().of_log_alpha(*tensors, 0)
    else:
        room = {"exact": _cpu.Cpu(), "float32": _cpu_float32.CpuFloat32(), "Triton": launch}[kind]
        found = getattr(room, name)(*tensors)
    return found if isinstance(found, tuple) else (found,)


def tensors(number, dtype, n=100):
    return [torch.linspace(-2, 1 + i, n).to(dtype) for i in range(number)]


def without_memory(x, view, bytes_left=0):
    """A view of other memory, of which nothing or less is left."""
    whole = torch.ones(2 * len(x) + 16, dtype=x.dtype)
    found = view(whole, len(x))
    whole.untyped_storage().resize_(bytes_left)
    return found


WRONG = {
    "one element short": lambda x: x[:-1],
    "one element": lambda x: x[:1],
    "no element": lambda x: x[:0],
    "one row": lambda x: x[None],
    "a number of another length": lambda x: x[:1].expand(len(x) - 1),
    "another type": lambda x: x.to(torch.float32 if x.dtype is torch.float64 else torch.float64),
}
WRONG_ALONE = {
    "another device": lambda x: x.to("meta"),
    "freed": lambda x: without_memory(x, lambda whole, n: whole[:n]),
    # Its address is not 0.
    "a freed view": lambda x: without_memory(x, lambda whole, n: whole[16 : 16 + n]),
    "a view beyond what is left": lambda x: without_memory(
        x, lambda whole, n: whole[16 : 16 + n], len(x) * x.itemsize
    ),
    "every second of freed": lambda x: without_memory(x, lambda whole, n: whole[: 2 * n : 2]),
    "a freed number": lambda x: without_memory(x, lambda whole, n: whole[:1].expand(n)),
    "a byte short": lambda x: without_memory(
        x, lambda whole, n: whole[:n], len(x) * x.itemsize - 1
    ),
}
EVERY_WRONG = WRONG | WRONG_ALONE


@each_entry
@pytest.mark.parametrize("wrong", EVERY_WRONG)
@pytest.mark.usefixtures("triton")
def test_what_is_wrong_is_refused(kind, name, number, dtype, wrong):
    given = tensors(number, dtype)
    if number == 1 and wrong not in WRONG_ALONE:
        return
    for i in range(number):
        changed = [EVERY_WRONG[wrong](x) if i == j else x for j, x in enumerate(given)]
        if kind == "operator" and changed[i].is_meta:
            continue  # PyTorch's dispatcher calls what traces, not the kernel
        with pytest.raises((TypeError, ValueError, RuntimeError), match=r"kernel|memory was freed"):
            call(kind, name, changed)


@each_entry
@pytest.mark.usefixtures("triton")
def test_strides(kind, name, number, dtype):
    """What is not dense is copied, and refused by the operators. Triton's are in test_triton.py."""
    given = tensors(number, dtype)
    steps = [x.repeat_interleave(2)[::2] for x in given]
    if kind == "operator":
        with pytest.raises(RuntimeError, match="contiguous CPU tensors of float32"):
            call(kind, name, steps)
    elif kind != "Triton":
        for got, wanted in zip(call(kind, name, steps), call(kind, name, given), strict=True):
            assert torch.equal(got, wanted)


@each_entry
@pytest.mark.usefixtures("triton")
def test_no_elements(kind, name, number, dtype):
    for found in call(kind, name, tensors(number, dtype, 0)):
        assert found.shape == (0,) or (found.shape == () and found.item() == 0.0)


def test_what_is_still_to_be_negated():
    x = torch.linspace(-1.0, 1.0, 40)
    kernels = _cpu_float32.CpuFloat32()
    for function in (kernels.value, kernels.value_sum):
        with pytest.raises(TypeError, match=r"negative bit is set .*: pass x.resolve_neg\(\)$"):
            function(x, torch._neg_view(x))


def _matrix():
    return torch.ones(4, 6)


@MARKS["Triton"]
@pytest.mark.parametrize(
    ("second", "step", "said"),
    [
        (_matrix().reshape(6, 4).T, 1, "of strides"),
        (torch.ones(4, 12)[:, ::2], 1, "of strides"),
        (torch.ones(6, 4), 1, "of shapes"),
        (_matrix(), 0, "as one number"),
        (torch.ones(1), 0, "as one number"),
        (torch.ones((), device="meta"), 0, "as one number"),
        (without_memory(_matrix(), lambda whole, n: whole[0]), 0, "memory was freed"),
    ],
)
@pytest.mark.usefixtures("triton")
def test_a_launch_looks_at_what_was_arranged(monkeypatch, second, step, said):
    monkeypatch.setattr(launch, "available", lambda x: True)
    monkeypatch.setattr(launch, "_arranged", lambda *x: (list(x), [1, step], x[0]))
    for name in ("value", "value_sum"):
        with pytest.raises((ValueError, RuntimeError), match=said):
            getattr(launch, name)(_matrix(), second)
    if second.stride() == (12, 2):
        with pytest.raises(ValueError, match=said):
            launch.value(second, second)  # of one layout, with gaps
    if step and second.shape == (4, 6):
        monkeypatch.setattr(launch, "_arranged", lambda *x: (list(x), [1, 1], x[1]))
        with pytest.raises(ValueError, match=said):
            launch.value(_matrix(), second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES], ids=str)
@pytest.mark.parametrize("rows", [200, 20_000])
def test_several(dtype, rows):
    """A second tensor of fewer rows was read beyond its end."""
    good = (torch.ones(3, 5, dtype=dtype), torch.zeros(3, 5, dtype=dtype))
    for shape in ((10, 50), (1, 50), (rows, 1), (50, rows), (rows * 50,), ()):
        bad = torch.zeros(rows, 50, dtype=dtype), torch.zeros(shape, dtype=dtype)
        for terms in ([(bad, 1)], [(good, 1), (bad[::-1], 2)]):
            with pytest.raises(
                ValueError, match=r"of shape \(.*\) were given: pass tensors of one"
            ):
                _foreach.total(terms)


# The functions that hold an address of memory or call a kernel by addresses. Each takes tensors or
# XLA's buffers and looks at them, or is called by one that does.
C = {
    "PyLong_AsVoidPtr": {"torch/c/library.c connect"},
    "PyCapsule_GetPointer": {"torch/c/library.c connect", "jax/c/ffi.c fill"},
    "PyLong_As": {"torch/c/library.c connect", "torch/c/library.c number_from"},
    "= number_from(": {"torch/c/library.c is_held"},
    "get_data_ptr(": {"torch/c/boxed.h look", "torch/c/boxed.h make"},
    "exchange->": {"torch/c/library.c look_at"},
    "buffer->data": {"jax/c/ffi.c array"},
    "kernels->": {
        *(f"torch/c/work.h {name}_range" for name in ("value", "gradient", "sum")),
        *("jax/c/ffi.c compute", "jax/c/ffi.c compute_of_log_alpha"),
    },
}
NOWHERE = ("data_ptr", "const_data_ptr", "unsafe_buffer_pointer", "from_address", "cffi", "cupy")
NOWHERE += ("__array_interface__", "__cuda_array_interface__")
PYTHON = {word: set() for word in NOWHERE} | {
    # Of functions of libtorch.
    "ctypes": {"torch/_kernels.py _addresses"},
    "__dlpack_c_exchange_api__": {"torch/_kernels.py _connected"},
    "from_dlpack": {"torch/_cpu_parallel.py _array"},
    "logunif_kl.torch._library": {"torch/_kernels.py _connected"},
    "logunif_kl.jax._ffi": {"jax/_custom_call.py _extension"},
}


def _in_c():
    """Every line of C that other libraries call, with its file and function."""
    for path in sorted([*PACKAGE.glob("*/c/*.[ch]"), *PACKAGE.glob("*/*/c/*.[ch]")]):
        file = path.relative_to(PACKAGE).as_posix()
        if not file.startswith("_numpy/"):  # the loops of ufuncs, whose sizes NumPy gives
            function = ""
            for line in path.read_text().splitlines():
                function = found[1] if (found := re.match(r"(\w+)\(", line)) else function
                yield line, f"{file} {function}" if line.startswith(" ") else file


def _in_python():
    """Every name, attribute, import and string, with its file and the function at the top."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for top in ast.parse(path.read_text()).body:
            place = f"{path.relative_to(PACKAGE).as_posix()} {getattr(top, 'name', '')}"
            for node in ast.walk(top):
                for field in ("id", "attr", "name", "module", "value"):
                    if isinstance(word := getattr(node, field, None), str):
                        yield word, place


def test_no_address_is_passed_elsewhere():
    lines, words = list(_in_c()), list(_in_python())
    assert {
        w: {place for line, place in lines if w in line} - {"torch/c/library.c"} for w in C
    } == C
    assert {w: {place for word, place in words if w == word} for w in PYTHON} == PYTHON


def test_one_function_starts_kernels_of_triton():
    tree = ast.parse((PACKAGE / "torch" / "_triton" / "launch.py").read_text())
    starting = {
        top.name
        for top in tree.body
        for node in ast.walk(top)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
    }
    assert starting == {"_start"}
    importing = {
        path.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (*(alias.name for alias in node.names), getattr(node, "module", None) or "")
        if name.split(".")[0] in ("triton", "kernels")
    }
    assert importing == {"launch.py", "arithmetic.py", "elementary.py", "kernels.py"}

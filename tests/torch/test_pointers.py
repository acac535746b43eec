"""Every kernel looks at the tensors that it is given, and no address of memory is passed elsewhere.

What the functions in C look at is tested with stubs too: tests/torch/test_library.py and
tests/jax/test_handlers.py, which run under the sanitizers.
"""

import importlib.util
import re
from functools import partial
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


def entry(kind, name):
    """Return a function of tensors alone."""
    if kind == "operator":
        return getattr(_operators.registered(), name)
    if name == "unary":
        return partial(launch.unary, 0)
    if name == "of_log_alpha":
        return lambda x: _cpu.Cpu().of_log_alpha(x, 0)
    holders = {"exact": _cpu.Cpu(), "float32": _cpu_float32.CpuFloat32(), "Triton": launch}
    return getattr(holders[kind], name)


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
# What the other entries copy. Triton's layouts are in test_triton.py.
OF_OPERATORS = {"every second": lambda x: x.repeat_interleave(2)[::2]}


@each_entry
@pytest.mark.usefixtures("triton")
def test_what_is_wrong_is_refused(kind, name, number, dtype):
    function = entry(kind, name)
    given = [torch.linspace(-2, 1 + i, 100).to(dtype) for i in range(number)]
    wrong = WRONG_ALONE | (WRONG if number > 1 else {})
    taken = []
    for what, change in (wrong | (OF_OPERATORS if kind == "operator" else {})).items():
        for i in range(number):
            changed = [change(x) if i == j else x for j, x in enumerate(given)]
            if kind == "operator" and changed[i].is_meta:
                continue  # PyTorch's dispatcher calls what traces, not the kernel
            said = ""
            try:
                function(*changed)
            except (TypeError, ValueError, RuntimeError) as error:
                said = str(error)
            if not re.search("kernel|memory was freed", said):
                taken.append((what, i, said))
    assert taken == []


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


# The files that hold an address of memory or call a kernel by addresses. Each of their functions
# takes tensors or XLA's buffers and looks at them, or is called by one that does.
OF_TORCH, OF_JAX = "torch/c/library.c", "jax/c/ffi.c"
HELD = {
    "*.[ch]": {
        r"PyLong_As": {OF_TORCH},
        r"PyCapsule_GetPointer": {OF_TORCH, OF_JAX},
        r"get_data_ptr\(": {"torch/c/boxed.h"},
        r"exchange->": {OF_TORCH},
        r"buffer->data": {OF_JAX},
        r"kernels->": {"torch/c/work.h", OF_JAX},
    },
    "*.py": {
        # Numba gives the kernels its arrays, a checkpoint tells noise apart by its address, a
        # weight without noise refuses to give its address, and a trace compares that of a tensor.
        r"data_ptr|buffer_pointer|from_address|cffi|_array_interface__": {
            "_numba/__init__.py",
            "nn/torch/noise/recomputation.py",
            "nn/torch/noise/undrawn.py",
            "nn/torch/shrink/state.py",
        },
        # Of functions of libtorch, and of the loops of the ufuncs.
        r"ctypes|__dlpack_c_exchange_api__": {"_numba/__init__.py", "torch/_kernels.py"},
        r"from_dlpack": {"torch/_cpu_parallel.py"},
        r"import_module\(.*\._library": {"torch/_kernels.py"},
        r"import_module\(.*\._ffi": {"jax/_custom_call.py"},
        r"kernel\[\(": {"torch/_triton/launch.py"},
        r"import triton|import kernels": {
            f"torch/_triton/{name}.py" for name in ("launch", "arithmetic", "elementary", "kernels")
        },
    },
}


@pytest.mark.parametrize("files", HELD)
def test_no_address_is_passed_elsewhere(files):
    texts = {
        file: path.read_text()
        for path in PACKAGE.rglob(files)
        # The loops of ufuncs get their sizes from NumPy.
        if not (file := path.relative_to(PACKAGE).as_posix()).startswith("_numpy/c/")
    }
    found = {
        word: {file for file, text in texts.items() if re.search(word, text)}
        for word in HELD[files]
    }
    assert found == HELD[files]

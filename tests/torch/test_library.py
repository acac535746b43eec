"""The extension for PyTorch with stubs in place of libtorch's functions, so that it needs none.

`python -m validation.tools.sanitize` runs these tests too.
"""

import ctypes
import importlib.util
import math
import shutil
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_int32, c_int64, c_uint32, c_uint64
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import logunif_kl

PLACES = [
    Path(logunif_kl.__file__).parent / "torch" / f"_library{suffix}"
    for suffix in EXTENSION_SUFFIXES
]
BUILT = [path for path in PLACES if path.exists()]
c = pytest.importorskip("logunif_kl._numpy._float32", exc_type=ImportError)
pytestmark = pytest.mark.skipif(not BUILT, reason="the extension was not built")

ADDRESS = ctypes.c_void_p
RANGE = CFUNCTYPE(None, c_int64, c_int64, ADDRESS)
BOXED = CFUNCTYPE(None, POINTER(c_uint64), c_uint64, c_uint64)
FLOAT32, CPU = 6, 0
BLOCK = 32768


class Libtorch:
    """Tensors are arrays that handles stand for."""

    def __init__(self, pieces=3):
        self.pieces = pieces
        self.tensors = {}
        self.kept = []
        self.operators = {}
        self.said = []
        self.device = CPU
        self.memory = math.inf
        self.ranges = []
        int64s, handles = POINTER(c_int64), POINTER(ADDRESS)
        types = {
            "aoti_torch_library_init_impl": (c_char_p, c_char_p, c_char_p, c_uint32, handles),
            "aoti_torch_library_impl": (ADDRESS, c_char_p, ADDRESS),
            "torch_parallel_for": (c_int64, c_int64, c_int64, ADDRESS, ADDRESS),
            "aoti_torch_get_data_ptr": (ADDRESS, handles),
            "aoti_torch_get_numel": (ADDRESS, int64s),
            "aoti_torch_get_dim": (ADDRESS, int64s),
            "aoti_torch_get_sizes": (ADDRESS, POINTER(int64s)),
            "aoti_torch_get_dtype": (ADDRESS, POINTER(c_int32)),
            "aoti_torch_get_device_type": (ADDRESS, POINTER(c_int32)),
            "aoti_torch_is_contiguous": (ADDRESS, POINTER(c_bool)),
            "aoti_torch_empty_strided": (
                *(c_int64, int64s, int64s),
                *(c_int32, c_int32, c_int32, handles),
            ),
            "aoti_torch_delete_tensor_object": (ADDRESS,),
            "aoti_torch_dtype_float32": (),
            "aoti_torch_device_type_cpu": (),
            "aoti_torch_check": (c_bool, c_char_p, c_char_p, c_uint32, c_char_p),
        }
        for name, parameters in types.items():
            result = None if name == "aoti_torch_check" else c_int32
            function = getattr(self, name.removeprefix("aoti_").removeprefix("torch_"))
            self.kept.append((name, CFUNCTYPE(result, *parameters)(function)))

    def addresses(self, names):
        found = {name: ctypes.cast(f, ADDRESS).value for name, f in self.kept}
        assert set(names) == set(found)
        return tuple(found[name] for name in names)

    def add(self, array):
        handle = max(self.tensors, default=0) + 8
        sizes = (c_int64 * max(1, array.ndim))(*array.shape)
        self.tensors[handle] = array, sizes
        return handle

    def library_init_impl(self, name, key, file, line, made):
        assert (name, key) == (b"logunif_kl", b"CPU")
        made[0] = 1
        return 0

    def library_impl(self, library, name, function):
        self.operators[name.decode()] = BOXED(function)
        return 0

    def parallel_for(self, begin, end, grain, function, context):
        ends = sorted({begin, *np.linspace(begin, end, self.pieces + 1).astype(int).tolist()})
        self.ranges.append((begin, end, grain))
        for low, high in reversed(list(pairwise(ends))):
            RANGE(function)(low, high, context)
        return 0

    def get_data_ptr(self, tensor, found):
        found[0] = self.tensors[tensor][0].ctypes.data
        return 0

    def get_numel(self, tensor, found):
        found[0] = self.tensors[tensor][0].size
        return 0

    def get_dim(self, tensor, found):
        found[0] = self.tensors[tensor][0].ndim
        return 0

    def get_sizes(self, tensor, found):
        found[0] = self.tensors[tensor][1]
        return 0

    def get_dtype(self, tensor, found):
        found[0] = FLOAT32 if self.tensors[tensor][0].dtype == np.float32 else 7
        return 0

    def get_device_type(self, tensor, found):
        found[0] = self.device
        return 0

    def is_contiguous(self, tensor, found):
        found[0] = bool(self.tensors[tensor][0].flags.c_contiguous)
        return 0

    def empty_strided(self, dim, sizes, strides, dtype, device, index, made):
        self.memory -= 1
        if self.memory < 0:
            return 1
        assert (dtype, device) == (FLOAT32, CPU)
        array = np.empty(sizes[:dim] if dim else (), np.float32)
        assert array.size == 0 or [s * 4 for s in (strides[:dim] if dim else [])] == list(
            np.empty([max(1, s) for s in array.shape], np.float32).strides
        )
        made[0] = self.add(array)
        return 0

    def delete_tensor_object(self, tensor):
        del self.tensors[tensor]
        return 0

    def dtype_float32(self):
        return FLOAT32

    def device_type_cpu(self):
        return CPU

    def check(self, condition, function, file, line, message):
        assert not condition
        self.said.append(message.decode())

    def call(self, name, *arguments):
        """Call an operator; return the results, or None if it raised."""
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        count = 2 if name == "gradient" else 1
        stack = (c_uint64 * len(arguments))()
        for i, argument in enumerate(arguments):
            number = not isinstance(argument, np.ndarray)
            stack[i] = np.float64(argument).view(np.uint64).item() if number else self.add(argument)
        before = len(self.said)
        self.operators[name](stack, len(arguments), count)
        if len(self.said) > before:
            assert not self.tensors
            return None
        found = [self.tensors.pop(stack[i])[0] for i in range(count)]
        # The operator owned its arguments, and nothing else is left.
        assert not self.tensors
        assert len(arrays) == len(arguments) - 1
        return found


@pytest.fixture(scope="module")
def extension(tmp_path_factory):
    """A copy, for the extension itself keeps libtorch's functions as long as the process runs."""
    copy = shutil.copy(BUILT[0], tmp_path_factory.mktemp("extension"))
    spec = importlib.util.spec_from_file_location("logunif_kl.torch._library", copy)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def libtorch(extension):
    stubs = Libtorch()
    extension.connect(stubs.addresses(extension.shims), c.kernels)
    extension.register_operators()
    assert set(stubs.operators) == {"value", "value_sum", "gradient"}
    return stubs


def arguments(n, number):
    """A factor, a mean and a variance, one of which may be a number."""
    generator = np.random.default_rng(n)
    found = {
        "factor": generator.standard_normal(n),
        "mu": generator.standard_normal(n),
        "log_sigma2": 4.0 * generator.standard_normal(n) - 6.0,
    }
    if number:
        found[number] = np.array(0.75)
    return [x.astype(np.float32) for x in found.values()]


def expected(factor, mu, log_sigma2, sign):
    factor, mu, log_sigma2 = np.broadcast_arrays(factor, mu, log_sigma2)
    value = np.float32(sign) * c.value(mu, log_sigma2)
    slopes = [x.copy() for x in c.gradient(np.float32(sign) * factor, mu, log_sigma2)]
    return value, slopes, math.fsum(value.tolist())


SIZES = [0, 1, 5, 1023, 1024, 1025, BLOCK, BLOCK + 1, 3 * BLOCK + 77]
by_size = pytest.mark.parametrize("n", SIZES)
by_number = pytest.mark.parametrize("number", [None, "factor", "mu", "log_sigma2"])
by_sign = pytest.mark.parametrize("sign", [1.0, -1.0])


@by_size
@by_number
@by_sign
def test_operators(libtorch, n, number, sign):
    factor, mu, log_sigma2 = arguments(n, number)
    value, slopes, total = expected(factor, mu, log_sigma2, sign)
    (got,) = libtorch.call("value", mu, log_sigma2, sign)
    np.testing.assert_array_equal(got, value)
    for a, b in zip(libtorch.call("gradient", factor, mu, log_sigma2, sign), slopes, strict=True):
        np.testing.assert_array_equal(a, b)
    (got,) = libtorch.call("value_sum", mu, log_sigma2, sign)
    assert got.shape == ()
    assert abs(got.item() - total) <= 2.0**-23 * abs(total)
    # Threads are asked for only where there is work for more than one.
    assert bool(libtorch.ranges) == (n > BLOCK)
    assert not libtorch.said


@by_size
@by_number
@by_sign
def test_functions_of_memory(libtorch, extension, n, number, sign):
    factor, mu, log_sigma2 = arguments(n, number)
    value, slopes, total = expected(factor, mu, log_sigma2, sign)

    def place(x):
        return x.ctypes.data, x.ndim == 0

    out, other, one = np.empty(n, np.float32), np.empty(n, np.float32), np.empty((), np.float32)
    extension.value(*place(mu), *place(log_sigma2), out.ctypes.data, n, sign)
    np.testing.assert_array_equal(out, value)
    extension.value_sum(*place(mu), *place(log_sigma2), one.ctypes.data, n, sign)
    assert abs(one.item() - total) <= 2.0**-23 * abs(total)
    extension.gradient(
        *(*place(factor), *place(mu), *place(log_sigma2)),
        *(out.ctypes.data, other.ctypes.data, n, sign),
    )
    np.testing.assert_array_equal(out, slopes[0])
    np.testing.assert_array_equal(other, slopes[1])


@pytest.mark.parametrize("pieces", [1, 2, 5, 64])
def test_a_sum_does_not_depend_on_the_pieces(libtorch, pieces):
    _, mu, log_sigma2 = arguments(70 * BLOCK + 5, None)
    libtorch.pieces = 1
    (alone,) = libtorch.call("value_sum", mu, log_sigma2, 1.0)
    libtorch.pieces = pieces
    (got,) = libtorch.call("value_sum", mu, log_sigma2, 1.0)
    assert got == alone


def test_shapes(libtorch):
    _, mu, log_sigma2 = arguments(60, None)
    (got,) = libtorch.call("value", mu.reshape(3, 4, 5), log_sigma2.reshape(3, 4, 5), 1.0)
    np.testing.assert_array_equal(got, c.value(mu, log_sigma2).reshape(3, 4, 5))
    (got,) = libtorch.call("value", mu[:1].reshape(()), log_sigma2[:1].reshape(()), 1.0)
    assert got.shape == ()


WRONG = {
    "float64": (lambda x: x.astype(np.float64), "contiguous CPU tensors of float32"),
    "a slice": (lambda x: x[::2], "contiguous CPU tensors of float32"),
    "another length": (lambda x: x[:50], "of one shape"),
    "another shape": (lambda x: x.reshape(10, 10), "of one shape"),
    "many dimensions": (lambda x: x[:1].reshape((1,) * 32), "of one shape"),
}


@pytest.mark.parametrize("name", ["value", "value_sum", "gradient"])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_refused(libtorch, name, wrong):
    change, said = WRONG[wrong]
    given = arguments(100, None)[0 if name == "gradient" else 1 :]
    for i in range(len(given)):
        changed = [change(x) if i == j else x for j, x in enumerate(given)]
        assert libtorch.call(name, *changed, 1.0) is None
        assert said in libtorch.said[-1]


def test_another_device_is_refused(libtorch):
    libtorch.device = 1
    assert libtorch.call("value", *arguments(10, None)[1:], 1.0) is None
    assert "CPU" in libtorch.said[-1]


@pytest.mark.parametrize("name", ["value", "value_sum", "gradient"])
@pytest.mark.parametrize("memory", [0, 1])
def test_no_memory(libtorch, name, memory):
    libtorch.memory = memory
    given = arguments(100, None)[0 if name == "gradient" else 1 :]
    found = libtorch.call(name, *given, 1.0)
    if memory < (2 if name == "gradient" else 1):
        assert found is None
        assert "no memory" in libtorch.said[-1]
    else:
        assert found is not None


def test_wrong_calls(extension, libtorch):
    with pytest.raises(TypeError, match="7 arguments are taken, and 0 were given"):
        extension.value()
    with pytest.raises(TypeError, match="10 arguments are taken, and 1 were given"):
        extension.gradient(1)
    with pytest.raises(TypeError):
        extension.value_sum("mu", False, 0, False, 0, 0, 1.0)
    with pytest.raises(ValueError, match="an address for each name"):
        extension.connect((), c.kernels)
    with pytest.raises(ValueError, match="was given 0 for aoti_torch_library_init_impl"):
        extension.connect((0,) * len(extension.shims), c.kernels)
    with pytest.raises(ValueError, match="PyCapsule"):
        extension.connect(libtorch.addresses(extension.shims), None)

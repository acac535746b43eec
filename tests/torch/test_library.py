"""The extension for PyTorch with stubs in place of libtorch's functions, so that it needs none.

`python -m validation.tools.sanitize` runs these tests too.
"""

import ctypes
import importlib.util
import math
import shutil
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_bool,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
)
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
EXCHANGE = b"dlpack_exchange_api"


class DLTensor(ctypes.Structure):
    _fields_ = [
        *(("data", ADDRESS), ("device", c_int32), ("index", c_int32), ("ndim", c_int32)),
        *(("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)),
        *(("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("offset", c_uint64)),
    ]


LOOK = CFUNCTYPE(c_int32, ADDRESS, POINTER(DLTensor))


class Exchange(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("others", ADDRESS * 4), ("look", LOOK)]


class Memory:
    """A tensor of Python on an array, in a storage of its own: the storage is the tensor too."""

    def __init__(self, array, device=1, before=0, after=0, first=None):
        self.array, self.device = array, device
        self.first = array.ctypes.data - before if first is None else first
        spread = any(array.strides) or array.ndim == 0
        self.bytes = before + after + (array.nbytes if spread else array.itemsize)

    def untyped_storage(self):
        return self

    def data_ptr(self):
        return self.first

    def nbytes(self):
        return self.bytes

    def look(self, found):
        array = self.array
        size = max(1, array.ndim)
        self.shape = (c_int64 * size)(*array.shape)
        self.strides = (c_int64 * size)(*[s // array.itemsize for s in array.strides])
        code, bits = {"f": 2, "i": 0}[array.dtype.kind], 8 * array.itemsize
        place = array.ctypes.data, self.device, 0, array.ndim, code, bits, 1
        found[0] = DLTensor(*place, self.shape, self.strides, 0)
        return 0


@LOOK
def look(address, found):
    tensor = ctypes.cast(address, ctypes.py_object).value
    return tensor.look(found) if isinstance(tensor, Memory) else -1


def capsule(exchange, name=EXCHANGE):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ADDRESS, c_char_p, ADDRESS)
    return new(ctypes.addressof(exchange), name, None)


LOOKING = Exchange(1, 3, look=look)


class Libtorch:
    """Tensors are arrays that handles stand for."""

    def __init__(self, pieces=3):
        self.pieces = pieces
        self.tensors = {}
        self.kept = []
        self.operators = {}
        self.said = []
        self.device = CPU
        self.lost, self.nowhere = 0, False
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
            "aoti_torch_get_storage_offset": (ADDRESS, int64s),
            "aoti_torch_get_storage_size": (ADDRESS, int64s),
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
        found[0] = 0 if self.nowhere else self.tensors[tensor][0].ctypes.data
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

    def get_storage_offset(self, tensor, found):
        found[0] = 3
        return 0

    def get_storage_size(self, tensor, found):
        found[0] = 3 * 4 + self.tensors[tensor][0].nbytes - self.lost
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
        count = 2 if name == "gradient" else 1
        stack = (c_uint64 * len(arguments))()
        for i, argument in enumerate(arguments):
            stack[i] = self.add(argument)
        before = len(self.said)
        self.operators[name](stack, len(arguments), count)
        if len(self.said) > before:
            assert not self.tensors
            return None
        found = [self.tensors.pop(stack[i])[0] for i in range(count)]
        # The operator owned its arguments, and nothing else is left.
        assert not self.tensors
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
    extension.connect(stubs.addresses(extension.shims), c.kernels, capsule(LOOKING))
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


def expected(factor, mu, log_sigma2):
    factor, mu, log_sigma2 = np.broadcast_arrays(factor, mu, log_sigma2)
    value = c.value(mu, log_sigma2)
    slopes = [x.copy() for x in c.gradient(factor, mu, log_sigma2)]
    return value, slopes, math.fsum(value.tolist())


SIZES = [0, 1, 5, 1023, 1024, 1025, BLOCK, BLOCK + 1, 3 * BLOCK + 77]
by_size = pytest.mark.parametrize("n", SIZES)
by_number = pytest.mark.parametrize("number", [None, "factor", "mu", "log_sigma2"])


@by_size
@by_number
def test_operators(libtorch, n, number):
    factor, mu, log_sigma2 = arguments(n, number)
    value, slopes, total = expected(factor, mu, log_sigma2)
    (got,) = libtorch.call("value", mu, log_sigma2)
    np.testing.assert_array_equal(got, value)
    for a, b in zip(libtorch.call("gradient", factor, mu, log_sigma2), slopes, strict=True):
        np.testing.assert_array_equal(a, b)
    (got,) = libtorch.call("value_sum", mu, log_sigma2)
    assert got.shape == ()
    assert abs(got.item() - total) <= 2.0**-23 * abs(total)
    # Threads are asked for only where there is work for more than one.
    assert bool(libtorch.ranges) == (n > BLOCK)
    assert not libtorch.said


@by_size
@by_number
def test_functions_of_tensors(libtorch, extension, n, number):
    factor, mu, log_sigma2 = arguments(n, number)
    value, slopes, total = expected(factor, mu, log_sigma2)

    out, other, one = np.empty(n, np.float32), np.empty(n, np.float32), np.empty((), np.float32)
    for spread in (False, True):
        # A number is of no dimensions, or expanded.
        factor, mu, log_sigma2 = (
            Memory(np.broadcast_to(x, n) if spread and x.ndim == 0 else x)
            for x in arguments(n, number)
        )
        extension.value(mu, log_sigma2, Memory(out))
        np.testing.assert_array_equal(out, value)
        extension.value_sum(mu, log_sigma2, Memory(one))
        assert abs(one.item() - total) <= 2.0**-23 * abs(total)
        extension.gradient(factor, mu, log_sigma2, Memory(out), Memory(other))
        np.testing.assert_array_equal(out, slopes[0])
        np.testing.assert_array_equal(other, slopes[1])


@pytest.mark.parametrize("pieces", [1, 2, 5, 64])
def test_a_sum_does_not_depend_on_the_pieces(libtorch, pieces):
    _, mu, log_sigma2 = arguments(70 * BLOCK + 5, None)
    libtorch.pieces = 1
    (alone,) = libtorch.call("value_sum", mu, log_sigma2)
    libtorch.pieces = pieces
    (got,) = libtorch.call("value_sum", mu, log_sigma2)
    assert got == alone


def test_shapes(libtorch):
    _, mu, log_sigma2 = arguments(60, None)
    (got,) = libtorch.call("value", mu.reshape(3, 4, 5), log_sigma2.reshape(3, 4, 5))
    np.testing.assert_array_equal(got, c.value(mu, log_sigma2).reshape(3, 4, 5))
    (got,) = libtorch.call("value", mu[:1].reshape(()), log_sigma2[:1].reshape(()))
    assert got.shape == ()


TENSOR, SHAPE = "contiguous CPU tensors of float32", "of one shape"
WRONG = {
    "float64": (lambda x: x.astype(np.float64), TENSOR),
    "int32": (lambda x: x.astype(np.int32), TENSOR),
    "a slice": (lambda x: np.repeat(x, 2)[::2], TENSOR),
    "one element short": (lambda x: x[:-1], SHAPE),
    "one element": (lambda x: x[:1], SHAPE),
    "no element": (lambda x: x[:0], SHAPE),
    "another shape": (lambda x: x.reshape(10, 10), SHAPE),
    "many dimensions": (lambda x: x[:1].reshape((1,) * 32), SHAPE),
}
# Of the functions of tensors alone.
WRONG_TENSORS = {
    name: (lambda x, change=change: Memory(change(x)), TypeError if said == TENSOR else ValueError)
    for name, (change, said) in WRONG.items()
} | {
    "a number of another length": (lambda x: Memory(np.broadcast_to(x[:1], 99)), ValueError),
    "another device": (lambda x: Memory(x, device=2), TypeError),
    "no tensor": (lambda x: x, TypeError),
    "freed": (lambda x: Memory(x, first=0), RuntimeError),
    "a freed part": (lambda x: Memory(x, after=-x.nbytes), RuntimeError),
    "a short storage": (lambda x: Memory(x, after=-1), RuntimeError),
    "behind its storage": (lambda x: Memory(x, before=-4), RuntimeError),
    "beyond its storage": (lambda x: Memory(x, before=1000, after=-900), RuntimeError),
    "no size": (lambda x: Memory(x, after=-1000), OverflowError),
}
by_name = pytest.mark.parametrize("name", ["value", "value_sum", "gradient"])


@by_name
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_refused(libtorch, name, wrong):
    change, said = WRONG[wrong]
    given = arguments(100, None)[0 if name == "gradient" else 1 :]
    for i in range(len(given)):
        changed = [change(x) if i == j else x for j, x in enumerate(given)]
        assert libtorch.call(name, *changed) is None
        assert said in libtorch.said[-1]


@by_name
@pytest.mark.parametrize("wrong", WRONG_TENSORS)
def test_what_functions_of_tensors_refuse(libtorch, extension, name, wrong):
    """Every argument and every result is looked at, and nothing is written."""
    change, error = WRONG_TENSORS[wrong]
    inputs = arguments(100, None)[0 if name == "gradient" else 1 :]
    results = [np.zeros(() if name == "value_sum" else 100, np.float32) for _ in inputs[1:]]
    given = [*inputs, *results]
    for i in range(len(given)):
        if given[i].ndim == 0:
            continue
        changed = [change(x) if i == j else Memory(x) for j, x in enumerate(given)]
        with pytest.raises(error, match=r"logunif_kl: |negative"):
            getattr(extension, name)(*changed)
        assert not any(x.any() for x in results)


@by_name
def test_results_that_are_refused(libtorch, extension, name):
    """A sum of one dimension, and a result whose elements are one number in memory."""
    inputs = [Memory(x) for x in arguments(100, None)[0 if name == "gradient" else 1 :]]
    bad = np.zeros(1 if name == "value_sum" else (), np.float32)
    spread = np.broadcast_to(np.zeros((), np.float32), 1 if name == "value_sum" else 100)
    good = [Memory(np.zeros(100, np.float32)) for _ in inputs[2:]]
    for result in (bad, spread):
        for results in ([*good, Memory(result)], [Memory(result), *good]):
            with pytest.raises(ValueError, match=SHAPE):
                getattr(extension, name)(*inputs, *results)


@by_name
@pytest.mark.parametrize("lost", [0, 1])
def test_memory_that_was_freed(libtorch, name, lost):
    given = arguments(100, None)[0 if name == "gradient" else 1 :]
    libtorch.lost, libtorch.nowhere = lost, not lost
    assert libtorch.call(name, *given) is None
    assert "memory was freed" in libtorch.said[-1]


def test_another_device_is_refused(libtorch):
    libtorch.device = 1
    assert libtorch.call("value", *arguments(10, None)[1:]) is None
    assert "CPU" in libtorch.said[-1]


@pytest.mark.parametrize("name", ["value", "value_sum", "gradient"])
@pytest.mark.parametrize("memory", [0, 1])
def test_no_memory(libtorch, name, memory):
    libtorch.memory = memory
    given = arguments(100, None)[0 if name == "gradient" else 1 :]
    found = libtorch.call(name, *given)
    if memory < (2 if name == "gradient" else 1):
        assert found is None
        assert "no memory" in libtorch.said[-1]
    else:
        assert found is not None


def test_wrong_calls(extension, libtorch):
    with pytest.raises(TypeError, match="3 arguments are taken, and 0 were given"):
        extension.value()
    with pytest.raises(TypeError, match="5 arguments are taken, and 1 were given"):
        extension.gradient(1)
    with pytest.raises(TypeError, match=TENSOR):
        extension.value_sum("mu", False, 0)
    addresses, dlpack = libtorch.addresses(extension.shims), capsule(LOOKING)
    with pytest.raises(ValueError, match="an address for each name"):
        extension.connect((), c.kernels, dlpack)
    with pytest.raises(ValueError, match="was given 0 for aoti_torch_library_init_impl"):
        extension.connect((0,) * len(extension.shims), c.kernels, dlpack)
    with pytest.raises(ValueError, match="PyCapsule"):
        extension.connect(addresses, None, dlpack)
    with pytest.raises(ValueError, match="PyCapsule"):
        extension.connect(addresses, c.kernels, c.kernels)
    for other in (Exchange(2, 0, look=look), Exchange(1, 0)):
        with pytest.raises(ValueError, match="DLPack of version 1"):
            extension.connect(addresses, c.kernels, capsule(other))

"""The extension for PyTorch with stubs in place of libtorch's functions, so that it needs none.

`python -m validation.tools.sanitize` runs these tests too.
"""

import ctypes
import importlib.util
import math
import shutil
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_int32, c_int64, c_uint32, c_uint64
from functools import partial
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
        *(("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)),
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

    def __init__(self):
        self.pieces = 3
        self.tensors = {}
        self.operators = {}
        self.said = []
        self.device = CPU
        self.lost, self.nowhere = 0, False
        self.memory = math.inf
        self.ranges = []
        int64s, handles = POINTER(c_int64), POINTER(ADDRESS)
        types = {
            "library_init_impl": (c_char_p, c_char_p, c_char_p, c_uint32, handles),
            "library_impl": (ADDRESS, c_char_p, ADDRESS),
            "parallel_for": (c_int64, c_int64, c_int64, ADDRESS, ADDRESS),
            "empty_strided": (c_int64, int64s, int64s, c_int32, c_int32, c_int32, handles),
            "delete_tensor_object": (ADDRESS,),
            "check": (c_bool, c_char_p, c_char_p, c_uint32, c_char_p),
        }
        functions = {
            name: CFUNCTYPE(None if name == "check" else c_int32, *parameters)(getattr(self, name))
            for name, parameters in types.items()
        }
        # Of a tensor: the type of what is asked, and what is answered of its array and its sizes.
        questions = {
            "get_data_ptr": (ADDRESS, lambda a, sizes: 0 if self.nowhere else a.ctypes.data),
            "get_numel": (c_int64, lambda a, sizes: a.size),
            "get_dim": (c_int64, lambda a, sizes: a.ndim),
            "get_sizes": (int64s, lambda a, sizes: sizes),
            "get_storage_offset": (c_int64, lambda a, sizes: 3),
            "get_storage_size": (c_int64, lambda a, sizes: 3 * 4 + a.nbytes - self.lost),
            "get_dtype": (c_int32, lambda a, sizes: FLOAT32 if a.dtype == np.float32 else 7),
            "get_device_type": (c_int32, lambda a, sizes: self.device),
            "is_contiguous": (c_bool, lambda a, sizes: a.flags.c_contiguous),
        }
        for name, (kind, answer) in questions.items():
            functions[name] = CFUNCTYPE(c_int32, ADDRESS, POINTER(kind))(partial(self.ask, answer))
        functions["dtype_float32"] = CFUNCTYPE(c_int32)(lambda: FLOAT32)
        functions["device_type_cpu"] = CFUNCTYPE(c_int32)(lambda: CPU)
        self.functions = {
            f"{'torch_' if name == 'parallel_for' else 'aoti_torch_'}{name}": function
            for name, function in functions.items()
        }

    def addresses(self, names):
        assert set(names) == set(self.functions)
        return tuple(ctypes.cast(self.functions[name], ADDRESS).value for name in names)

    def ask(self, answer, tensor, found):
        found[0] = answer(*self.tensors[tensor])
        return 0

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
        assert not self.tensors  # the operator owned its arguments
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
    assert list(stubs.operators) == OPERATORS
    return stubs


OPERATORS = ["value", "value_sum", "gradient", "log_alpha_gradient"]


def arguments(n, number):
    """A factor, a mean and a variance, one of which may be a number."""
    factor, mu, log_sigma2 = np.random.default_rng(n).standard_normal((3, n))
    found = {"factor": factor, "mu": mu, "log_sigma2": 4.0 * log_sigma2 - 6.0}
    if number:
        found[number] = np.array(0.75)
    return [x.astype(np.float32) for x in found.values()]


def expected(given):
    factor, mu, log_sigma2 = np.broadcast_arrays(*given)
    value = c.value(mu, log_sigma2)
    slopes = [x.copy() for x in c.gradient(factor, mu, log_sigma2)]
    return value, slopes, math.fsum(value.tolist())


SIZES = [0, 1, 5, 1023, 1024, 1025, BLOCK, BLOCK + 1, 3 * BLOCK + 77]
by_operator = pytest.mark.parametrize("name", OPERATORS)
by_name = pytest.mark.parametrize("name", OPERATORS[:3])


def taken(name):
    """The arguments of one operator: no number, 100 elements."""
    every = arguments(100, None)
    return {"gradient": every, "log_alpha_gradient": every[::2]}.get(name, every[1:])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("number", [None, "factor", "mu", "log_sigma2"])
def test_results(libtorch, extension, n, number):
    """Of the operators and of the functions of tensors."""
    _, mu, log_sigma2 = given = arguments(n, number)
    value, slopes, total = expected(given)
    found = libtorch.call("value", mu, log_sigma2) + libtorch.call("gradient", *given)
    sums = libtorch.call("value_sum", mu, log_sigma2)
    if number != "log_sigma2":
        (got,) = libtorch.call("log_alpha_gradient", *given[::2])
        one = np.ones_like(log_sigma2)
        np.testing.assert_array_equal(got, expected([given[0], one, log_sigma2])[1][1])
    # Threads are asked for only where there is work for more than one.
    assert bool(libtorch.ranges) == (n > BLOCK)
    assert not libtorch.said
    for spread in (False, True):
        # A number is of no dimensions, or expanded.
        wide = [np.broadcast_to(x, n) if spread and x.ndim == 0 else x for x in given]
        factor, mu, log_sigma2 = map(Memory, wide)
        out, d_mu, d_log_sigma2 = (np.empty(n, np.float32) for _ in range(3))
        sums.append(np.empty((), np.float32))
        extension.value(mu, log_sigma2, Memory(out))
        extension.gradient(factor, mu, log_sigma2, Memory(d_mu), Memory(d_log_sigma2))
        extension.value_sum(mu, log_sigma2, Memory(sums[-1]))
        found += [out, d_mu, d_log_sigma2]
    for got, wanted in zip(found, 3 * [value, *slopes], strict=True):
        np.testing.assert_array_equal(got, wanted)
    for each in sums:
        assert each.shape == ()
        assert abs(each.item() - total) <= 2.0**-23 * abs(total)


def test_a_sum_does_not_depend_on_the_pieces(libtorch):
    given = arguments(70 * BLOCK + 5, None)[1:]
    found = []
    for libtorch.pieces in (1, 2, 5, 64):
        found += libtorch.call("value_sum", *given)
    assert len(set(map(float, found))) == 1


@pytest.mark.parametrize("shape", [(3, 4, 5), ()])
def test_shapes(libtorch, shape):
    given = [x.reshape(shape) for x in arguments(math.prod(shape), None)[1:]]
    (got,) = libtorch.call("value", *given)
    np.testing.assert_array_equal(got, c.value(*map(np.ravel, given)).reshape(shape))


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


@by_operator
def test_what_is_refused(libtorch, name):
    given = taken(name)
    for wrong, (change, said) in WRONG.items():
        for i in range(len(given)):
            changed = [change(x) if i == j else x for j, x in enumerate(given)]
            assert libtorch.call(name, *changed) is None, (wrong, i)
            assert said in libtorch.said[-1]


@by_name
@pytest.mark.parametrize("wrong", WRONG_TENSORS)
def test_what_functions_of_tensors_refuse(libtorch, extension, name, wrong):
    """Every argument and every result is looked at, and nothing is written."""
    change, error = WRONG_TENSORS[wrong]
    inputs = taken(name)
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
    inputs = list(map(Memory, taken(name)))
    bad = np.zeros(1 if name == "value_sum" else (), np.float32)
    spread = np.broadcast_to(np.zeros((), np.float32), 1 if name == "value_sum" else 100)
    good = [Memory(np.zeros(100, np.float32)) for _ in inputs[2:]]
    for result in (bad, spread):
        for results in ([*good, Memory(result)], [Memory(result), *good]):
            with pytest.raises(ValueError, match=SHAPE):
                getattr(extension, name)(*inputs, *results)


@by_operator
@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"lost": 1}, "memory was freed"),
        ({"nowhere": True}, "memory was freed"),
        ({"device": 1}, TENSOR),
        ({"memory": 0}, "no memory"),
        ({"memory": 1}, "no memory"),
    ],
)
def test_what_libtorch_lacks(libtorch, name, state, said):
    vars(libtorch).update(state)
    found = libtorch.call(name, *taken(name))
    if state == {"memory": 1} and name != "gradient":
        assert found is not None
    else:
        assert found is None
        assert said in libtorch.said[-1]


def test_wrong_calls(extension, libtorch):
    with pytest.raises(TypeError, match="3 arguments are taken, and 0 were given"):
        extension.value()
    with pytest.raises(TypeError, match="5 arguments are taken, and 1 were given"):
        extension.gradient(1)
    with pytest.raises(TypeError, match=TENSOR):
        extension.value_sum("mu", False, 0)
    addresses, dlpack = libtorch.addresses(extension.shims), capsule(LOOKING)
    later, blind = Exchange(2, 0, look=look), Exchange(1, 0)  # no capsule keeps them alive
    for given, words in (
        (((), c.kernels, dlpack), "an address for each name"),
        (((0,) * len(addresses), c.kernels, dlpack), "was given 0 for aoti_torch_library_init"),
        ((addresses, None, dlpack), "PyCapsule"),
        ((addresses, c.kernels, c.kernels), "PyCapsule"),
        ((addresses, c.kernels, capsule(later)), "DLPack of version 1"),
        ((addresses, c.kernels, capsule(blind)), "DLPack of version 1"),
    ):
        with pytest.raises(ValueError, match=words):
            extension.connect(*given)

"""The handlers of `logunif_kl.jax._ffi`, called as XLA calls them, without JAX.

The structs are those of `xla/ffi/api/c_api.h`; the pool of threads is Python's. It runs tasks at
once, in threads, late or never, as XLA's may.
"""

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._numpy import ufuncs

SPEC = PathFinder.find_spec("_ffi", [str(Path(lk.__file__).parent / "jax")])
pytestmark = pytest.mark.skipif(
    SPEC is None or ufuncs.kernel_name() == "python", reason="the C extension is not in use"
)


class Start(Structure):
    _fields_ = [("struct_size", c_size_t), ("extensions", c_void_p)]


def struct(base=Start, /, **fields):
    return type("Struct", (base,), {"_fields_": list(fields.items())})


Buffer = struct(dtype=c_int, data=c_void_p, rank=c_int64, dims=POINTER(c_int64))
Buffers = struct(size=c_int64, types=POINTER(c_int), values=POINTER(c_void_p))
Span = struct(Structure, text=c_char_p, length=c_size_t)
Scalar = struct(Structure, dtype=c_int, value=c_void_p)
Attributes = struct(
    size=c_int64, types=POINTER(c_int), names=POINTER(POINTER(Span)), values=POINTER(c_void_p)
)
Version = struct(major=c_int, minor=c_int)
Metadata = struct(Structure, struct_size=c_size_t, version=Version, traits=ctypes.c_uint32)
# An extension of metadata, where `extensions` above is its type.
Extension = struct(next=c_void_p, metadata=POINTER(Metadata))
Create = struct(message=c_char_p, code=c_int)
Destroy = struct(error=c_void_p)
Schedule = struct(context=c_void_p, task=c_void_p, data=c_void_p)
Threads = struct(context=c_void_p, found=POINTER(c_int64))

CREATE = CFUNCTYPE(c_void_p, POINTER(Create))
DESTROY = CFUNCTYPE(None, POINTER(Destroy))
SCHEDULE = CFUNCTYPE(c_void_p, POINTER(Schedule))
THREADS = CFUNCTYPE(c_void_p, POINTER(Threads))
TASK = CFUNCTYPE(None, c_void_p)

_ERRORS = {"create": CREATE, "message": c_void_p, "destroy": DESTROY}
_POOL = {"others": c_void_p * 8, "schedule": SCHEDULE, "threads": THREADS}
Api = struct(version=Version, internal=c_void_p, **_ERRORS, **_POOL)
_ARRAYS = {"arguments": Buffers, "results": Buffers, "attributes": Attributes}
Frame = struct(api=POINTER(Api), context=c_void_p, stage=c_int, **_ARRAYS)
F32, F64, EXECUTE, ERROR = 11, 12, 3, 0x5EED
RESULTS = {"value": 1, "gradient": 2, "value_and_gradient": 3}
RESULTS |= {f"log_alpha_{name}": max(1, number - 1) for name, number in RESULTS.items()}


@pytest.fixture(scope="module")
def extension():
    module = module_from_spec(SPEC)
    SPEC.loader.exec_module(module)
    return module


class Xla:
    """XLA's side: what it was told, and a pool in which a task runs as ``way`` says."""

    def __init__(self, threads=4, way="threads"):
        self.errors, self.destroyed, self.tasks, self.started = [], 0, [], []
        self.threads, self.way = threads, way
        # What C calls must live as long as it may be called.
        self.kept = {"create": CREATE(self.create), "destroy": DESTROY(self.destroy)}
        self.kept |= {"schedule": SCHEDULE(self.schedule), "threads": THREADS(self.count)}
        self.api = Api(**self.kept)

    def create(self, args):
        self.errors.append(args.contents.message.decode())
        return ERROR

    def destroy(self, args):
        assert args.contents.error == ERROR
        self.destroyed += 1

    def count(self, args):
        if self.way == "no pool":
            return ERROR
        args.contents.found[0] = self.threads
        return None

    def schedule(self, args):
        if self.way == "refuses":
            return ERROR
        task, data = TASK(args.contents.task), args.contents.data
        if self.way == "at once":
            task(data)
        elif self.way == "late":
            self.tasks.append(lambda: task(data))
        else:
            self.started.append(threading.Thread(target=task, args=(data,)))
            self.started[-1].start()
        return None

    def settle(self):
        for task in self.tasks:
            task()
        for thread in self.started:
            thread.join()


def handler(extension, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, (ctypes.py_object, c_char_p)
    return CFUNCTYPE(c_void_p, POINTER(Frame))(get(getattr(extension, name), None))


def buffers(arrays, dtype=F32, kind=1):
    kept = []
    for a in arrays:
        dims = (c_int64 * max(a.ndim, 1))(*a.shape)
        data = a.ctypes.data if a.size else None
        kept.append((Buffer(48, None, dtype, data, a.ndim, dims), dims))
    values = (c_void_p * len(kept))(*(ctypes.addressof(b) for b, _ in kept))
    made = Buffers(40, None, len(kept), (c_int * len(kept))(*[kind] * len(kept)), values)
    made.kept = kept
    return made


def attributes(sign, dtype=F32, name=b"sign", kind=3):
    value = (ctypes.c_float if dtype == F32 else ctypes.c_double)(sign)
    scalar, span = Scalar(dtype, ctypes.addressof(value)), Span(name, len(name))
    values = (c_void_p * 1)(ctypes.addressof(scalar))
    made = Attributes(48, None, 1, (c_int * 1)(kind), (POINTER(Span) * 1)(ctypes.pointer(span)))
    made.values = values
    made.kept = value, scalar, span, values
    return made


def call(xla, function, arguments, results, sign, stage=EXECUTE):
    frame = Frame(api=ctypes.pointer(xla.api), stage=stage)
    frame.struct_size = ctypes.sizeof(Frame)
    frame.arguments, frame.results, frame.attributes = arguments, results, sign
    return function(ctypes.byref(frame))


def given(shape, seed=0, name="value"):
    rng = np.random.default_rng(seed)
    both = [rng.normal(size=shape).astype("f4"), rng.uniform(-9, 3, shape).astype("f4")]
    return both[name.startswith("log_alpha") :]


def computed(extension, name, arrays, sign=1.0, **pool):
    xla, function = Xla(**pool), handler(extension, name)
    results = [np.full(arrays[0].shape, np.nan, "f4") for _ in range(RESULTS[name])]
    status = call(xla, function, buffers(arrays), buffers(results), attributes(sign))
    # The call has ended: what it wrote is there, whatever of its tasks has not run.
    kept = [r.copy() for r in results]
    for array in (*arrays, *results):
        array[...] = 0
    xla.settle()
    assert status is None
    assert not xla.errors
    return kept, xla


def expected(name, arrays):
    from logunif_kl._numpy import _float32

    *mu, log_sigma2 = arrays
    mu = mu[0] if mu else np.ones_like(log_sigma2)
    slopes = _float32.gradient(np.float32(1), mu, log_sigma2)
    results = _float32.value(mu, log_sigma2), *slopes[name.startswith("log_alpha") :]
    return results[name.endswith("gradient") - name.endswith("value_and_gradient") :][
        : RESULTS[name]
    ]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (7,), (16, 5, 3), (1003,)])
@pytest.mark.parametrize("name", RESULTS)
def test_results(extension, name, shape, sign):
    arrays = given(shape, name=name)
    truths = [np.float32(sign) * r for r in expected(name, arrays)]
    got, xla = computed(extension, name, arrays, sign)
    assert not xla.started
    for g, t in zip(got, truths, strict=True):
        np.testing.assert_array_equal(g, t)


@pytest.mark.parametrize("way", ["threads", "at once", "late", "refuses", "no pool"])
@pytest.mark.parametrize("threads", [1, 2, 64])
@pytest.mark.parametrize("rest", [-1, 0, 1])
@pytest.mark.parametrize("name", ["gradient", "log_alpha_gradient"])
def test_threads(extension, way, threads, rest, name):
    """The results do not depend on which thread computes what, nor on when tasks run."""
    arrays = given(5 * extension.chunk + rest, name=name)
    truths = expected(name, arrays)
    got, xla = computed(extension, name, arrays, threads=threads, way=way)
    for g, t in zip(got, truths, strict=True):
        np.testing.assert_array_equal(g, t)
    helpers = min(threads - 1, 5 if rest > 0 else 4)
    assert len(xla.started) + len(xla.tasks) == (helpers if way in ("threads", "late") else 0)
    assert xla.destroyed == (way == "no pool" or (way == "refuses" and threads > 1))


def test_many_calls_at_once(extension):
    arrays = given(3 * extension.chunk + 7)
    (truth,) = expected("value", arrays)

    def run(_):
        got, _ = computed(extension, "value", [a.copy() for a in arrays], threads=3)
        return np.array_equal(got[0], truth)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


@pytest.mark.parametrize("name", RESULTS)
def test_metadata(extension, name):
    """It is asked for without arrays, and without functions to call."""
    metadata = Metadata(traits=7, version=Version(major=-1, minor=-1))
    asked = Extension(next=None, metadata=ctypes.pointer(metadata))
    asked.extensions = 1  # the type
    other = Extension(next=ctypes.addressof(asked))
    other.extensions = 99
    frame = Frame(extensions=ctypes.addressof(other))
    assert handler(extension, name)(ctypes.byref(frame)) is None
    assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 1, 0)


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_other_stages_do_nothing(extension, stage):
    none = buffers([])
    assert call(Xla(), handler(extension, "value"), none, none, attributes(1.0), stage) is None


WRONG_ARRAYS = {
    "one element short": lambda a: buffers([a[:-1]]),
    "one element": lambda a: buffers([a[:1]]),
    "no element": lambda a: buffers([a[:0]]),
    "float64": lambda a: buffers([a], dtype=F64),
    "another device, which has no memory here": lambda a: _changed(a, "data", None),
    "a negative size": lambda a: _changed(a, "dims", (c_int64 * 1)(-1)),
    "no buffer": lambda a: buffers([a], kind=2),
}


def _changed(array, field, value):
    made = buffers([array])
    setattr(made.kept[0][0], field, value)
    return made


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("kind", WRONG_ARRAYS)
def test_every_array_is_looked_at(extension, name, kind):
    """Also if all arrays are wrong alike, of a size that is none or memory that is none."""
    inputs = given(100, name=name)
    arrays = [*inputs, *(np.zeros(100, "f4") for _ in range(RESULTS[name]))]
    every = [range(len(arrays))] if kind in list(WRONG_ARRAYS)[3:] else []
    for wrong in [[i] for i in range(len(arrays))] + every:
        made = [WRONG_ARRAYS[kind](a) if i in wrong else buffers([a]) for i, a in enumerate(arrays)]
        xla, function = Xla(), handler(extension, name)
        arguments, results = joined(made[: len(inputs)]), joined(made[len(inputs) :])
        assert call(xla, function, arguments, results, attributes(1.0)) == ERROR
        assert "must be arrays of float32 of one size" in xla.errors[0]
        assert not any(a.any() for a in arrays[len(inputs) :])


def joined(parts):
    """One list of the buffers of several."""
    values = (c_void_p * len(parts))(*(part.values[0] for part in parts))
    types = (c_int * len(parts))(*(part.types[0] for part in parts))
    made = Buffers(40, None, len(parts), types, values)
    made.kept = parts
    return made


WRONG_SIGNS = {
    "0": attributes(0.0),
    "float64": attributes(1.0, dtype=F64),
    "another name": attributes(1.0, name=b"sigh"),
    "a longer name": attributes(1.0, name=b"signs"),
    "not a scalar": attributes(1.0, kind=4),
    "no attribute": Attributes(size=0),
}


@pytest.mark.parametrize("kind", ["one argument", "no result", *WRONG_SIGNS])
def test_refusals(extension, kind):
    arguments, result = given((2, 3)), np.zeros((2, 3), "f4")
    made = [
        buffers(arguments[: 1 if kind == "one argument" else 2]),
        buffers([result][: 0 if kind == "no result" else 1]),
        WRONG_SIGNS.get(kind, attributes(1.0)),
    ]
    sentence = "mu and log_sigma2, or log_alpha, must be given"
    if kind in WRONG_SIGNS:
        sentence = "one attribute must be given, sign, of float32 and not 0"
    xla = Xla()
    assert call(xla, handler(extension, "value"), *made) == ERROR
    assert len(xla.errors) == 1
    assert xla.errors[0].startswith(f"logunif_kl: {sentence}")
    assert not result.any()

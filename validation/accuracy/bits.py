"""Compare today's kernels with those that a report measured, by their results for fixed inputs.

A row on a NumPy kernel, or on a C kernel that PyTorch takes, holds the ``bits``: a hash of the
results for 60,000 inputs, in which all NaNs count as the same. Those of a C kernel are the same on
every processor, those of ``python`` not. A row without bits is evaluated at its worst input.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from logunif_kl import accuracy
from logunif_kl._numpy import ufuncs
from logunif_kl.isotropic import ACCURACY
from validation.output import Record, cpu_name

from . import driver
from .claims import rounded_up
from .driver import Key, key
from .frameworks import c_kernel
from .functions import COMPILED, FRAMEWORKS, Function
from .implementations import implementation, ufunc

COUNT = 20_000
INTEGERS = {"float64": np.uint64, "float32": np.uint32, "float16": np.uint16}
# Other ufuncs of the same numbers, to which the claims also apply.
_ALSO = {"neg_kl": ("kl",), "neg_kl_normal": ("neg_kl_normal_value", "kl_normal")}


def integers(stream: int) -> NDArray[np.uint64]:
    """Return random integers by the generator SplitMix64, which no library can change."""
    x = (np.arange(COUNT, dtype=np.uint64) + np.uint64(stream * COUNT + 1)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _column(dtype: str, stream: int) -> list[NDArray]:
    """Return any bit patterns, numbers of ordinary magnitudes, and numbers from -40 to 40."""
    anything = integers(stream).astype(INTEGERS[dtype]).view(dtype)
    fraction = (integers(stream + 1) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    places = (integers(stream + 2) % np.uint64(40)).astype(np.int64) - 26
    return [
        anything,
        np.ldexp(1.0 + fraction, places).astype(dtype),
        (80.0 * fraction - 40.0).astype(dtype),
    ]


def arguments(nin: int, dtype: str) -> list[tuple[NDArray, ...]]:
    """Return the fixed inputs: all pairs are random, and the last argument is from -40 to 40."""
    if nin == 1:
        return [(x,) for x in _column(dtype, 0)]
    *means, last = (_column(dtype, 3 * place) for place in range(nin))
    return [(*(mean[at] for mean in means), last[2 if at else 0]) for at in range(3)]


def digest(results: Iterable[NDArray]) -> str:
    whole = hashlib.sha256()
    for result in results:
        found = result.view(INTEGERS[result.dtype.name])
        whole.update(np.where(np.isnan(result), ~found.dtype.type(0), found).tobytes())
    return whole.hexdigest()[:16]


def of(function: Function, kernel: str, dtype: str) -> str | None:
    """Hash the results of this process's kernel for the fixed inputs, if it should have bits."""
    dtype = "float32" if dtype == "bfloat16" else dtype
    if kernel in (*COMPILED, "python"):
        calls = [implementation(function, kernel, dtype)]
        calls += [ufunc(name, kernel) for name in _ALSO.get(function.name, ())]
    elif c_kernel(kernel, function.arithmetic, dtype):
        training = import_module("logunif_kl._numpy._float32")
        at = (function.output or 0) - 1
        slope = np.float32(0.75)
        calls = [training.value if at < 0 else lambda *p: training.gradient(slope, *p)[at]]
    else:
        return None
    points = arguments(function.nin, dtype)
    with np.errstate(all="ignore"):
        return digest(np.asarray(call(*point)) for call in calls for point in points)


def differences(record: Record) -> dict[Key, str]:
    """Say which rows of a report today's code contradicts; a missing kernel is left out."""
    alike = {row["kernel"]: _is_alike(record, row["kernel"]) for row in record["rows"]}
    jobs = [row | {"method": "again"} for row in record["rows"] if row["kernel"] in checked(alike)]
    found = {key(row): row for row in driver.answers(jobs)}
    pairs = ((row, found[key(row)]) for row in record["rows"] if key(row) in found)
    said = {key(row): _difference(row, now, alike[row["kernel"]]) for row, now in pairs}
    return {place: text for place, text in said.items() if text}


def checked(alike: dict[str, bool]) -> list[str]:
    """Name the kernels to try; inductor, slow to compile, only with the libraries of the record."""
    here = [kernel for kernel in alike if kernel in driver.kernels()]
    return [kernel for kernel in here if alike[kernel] or kernel != "inductor"]


def _is_alike(record: Record, kernel: str) -> bool:
    """Whether the libraries that give a kernel its exponential are those of the record."""
    if kernel in COMPILED:
        return True
    now = driver.versions(record["versions"])
    libraries = driver.LIBRARIES & record["versions"].keys()
    if any(record["versions"][name] != now.get(name) for name in libraries):
        return False
    avx512 = "avx512" in ufuncs.available_kernels()
    if kernel not in FRAMEWORKS:
        return avx512
    of_intel = "Intel" in record["machine"]["cpu"]
    return of_intel == ("Intel" in cpu_name()) and (avx512 or not of_intel)


def _difference(row: Record, now: Record, alike: bool) -> str:
    has_bits = "bits" in row and (alike or row["kernel"] != "python")
    if has_bits:
        return "" if now.get("bits") == row["bits"] else "other bits"
    if now["got"] == row.get("got"):
        return ""
    where = f"{now['got']} at {', '.join(row['inputs'])}"
    if alike and "got" in row:
        return f"{where}, not {row['got']}"
    claimed = {(c.function, c.dtype, c.kernel): c.ulp for c in (*accuracy.CLAIMS, *ACCURACY)}
    most = claimed.get((row["function"], row["dtype"], row["kernel"]), rounded_up(row["ulp"]))
    return "" if now["ulp"] <= most else f"{where}: {now['ulp']:.4f} ulp, more than {most}"


def complaints(record: Record, *, replay: bool = True) -> Iterator[str]:
    if not replay:
        return
    kernels = {row["kernel"]: _is_alike(record, row["kernel"]) for row in record["rows"]}
    if absent := sorted(kernels.keys() - checked(kernels)):
        print(f"{record['command']}: cannot be checked here: {', '.join(absent)}", file=sys.stderr)
    found = differences(record)
    for kernel in kernels:
        texts = [
            f"{row['function']} in {row['dtype']} gives {found[key(row)]}"
            for row in record["rows"]
            if row["kernel"] == kernel and key(row) in found
        ]
        if texts:
            yield f"{kernel}: {'; '.join(texts)}"

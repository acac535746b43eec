"""Checks and errors that several modules share.

Each error message says what was wrong, what was given and what to do. This module imports no other
module of the package.
"""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

NO_ARRAY = (type(None), bool, complex, str, bytes)
"""Types that are neither arrays nor real numbers."""

OF_COMPLEX = (
    "complex weights have a KL of their own, so pass their means to neg_kl_complex_normal, or "
    "parameters of real weights"
)
"""What to do instead of passing a complex argument."""

REDUCTIONS = ("none", "sum", "mean")


class Framework(NamedTuple):
    """A library whose arrays may carry a derivative. `framework` recognises the arrays."""

    adapter: str | None = None
    """The module of this package that computes with the arrays, or None if there is none."""
    to_numpy: str = "numpy.asarray({})"
    """The code that turns an array into numbers."""
    beside_numpy: bool = False
    """Whether the library's functions of several arguments also take NumPy arrays."""


# The key is the top-level module of the array's type.
FRAMEWORKS = {
    "torch": Framework("torch", "{}.detach().double().numpy()"),
    "jax": Framework("jax"),
    "tensorflow": Framework("tensorflow"),
    "mlx": Framework("_adapters.mlx", "numpy.array({}.astype(mlx.core.float32))"),
    "autograd": Framework("_adapters.autograd", "autograd.tracer.getval({})", beside_numpy=True),
    "paddle": Framework("_adapters.paddle", '{}.astype("float32").numpy()'),
    "tinygrad": Framework("_adapters.tinygrad", "{}.float().numpy()"),
    "pytensor": Framework("_adapters.pytensor", "{}.eval()", beside_numpy=True),
    "keras": Framework("_adapters.keras", "numbers instead of a symbol"),
    "casadi": Framework(None, "numpy.array(casadi.evalf({}))"),
}
FRAMEWORKS["jaxlib"] = FRAMEWORKS["jax"]
# The same code for libraries whose objects are not recognised as arrays of a framework.
_TO_NUMPY = {"uncertainties": "{}.nominal_value", "blosc2": "{}[:]"} | {
    name: framework.to_numpy for name, framework in FRAMEWORKS.items()
}


LONGEST = 100
"""The largest number of characters of a value that a message shows."""

_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxlong = LONGEST
_SHORT.maxstring = LONGEST // 2
_SHORT.maxlevel = 3


def shown(value: Any) -> str:
    """Format a value for a message, on one line of at most `LONGEST` characters."""
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST:
        # Python raises ValueError when it formats a very long integer.
        return f"an integer of {value.bit_length()} bits"
    text = " ".join(_SHORT.repr(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]}...{text[-17:]}"


def framework(kind: type) -> str | None:
    """Return the name of the framework that defines a type, or None."""
    for base in kind.__mro__:
        found = base.__module__.partition(".")[0]
        if found in FRAMEWORKS:
            return "jax" if found == "jaxlib" else found
    return "torch" if hasattr(kind, "__torch_function__") else None


def derives(kind: type, library: str, name: str) -> bool:
    """Whether a type derives from a library's class `name`. This does not import the library."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == library
        for base in kind.__mro__
    )


def type_name(value: Any) -> str:
    """Return the name of the type of a value, as in ``list`` or ``numpy.ndarray``."""
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    parts, name = kind.__module__.split("."), kind.__qualname__
    paths = [".".join(parts[:i]) for i in range(1, len(parts))]
    if parts[:2] == ["logunif_kl", "nn"]:
        paths.append(f"logunif_kl.{parts[2]}.nn")
    for path in paths:
        if vars(sys.modules.get(path, kind)).get(name) is kind:
            return f"{path}.{name}"
    return f"{parts[0]}.{name}"


def holds_real(dtype: np.dtype) -> bool:
    """Return whether a dtype of NumPy holds real numbers of at most 64 bits."""
    return dtype.kind != "b" and np.can_cast(dtype, np.float64)


def as_float(name: str, value: float) -> float:
    """Convert a number to float. Raise ValueError for an integer that is too large."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{name} is an integer of {value.bit_length()} bits, too large for a float: "  # type: ignore[attr-defined]
            "pass a smaller number, or math.inf"
        ) from None


def real_number(name: str, value: Any) -> float:
    """Convert an option to float. Raise TypeError or ValueError if it is not one real number."""
    if type(value) is not bool and isinstance(value, Real):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(
                f"{name} is too large for a float: pass a smaller number, or math.inf"
            ) from None
    given = type(value).__name__
    given += f" of shape {value.shape}" if isinstance(value, np.ndarray) else f" {shown(value)}"
    raise TypeError(f"{name} must be one real number, but {given} was given: pass a float")


def check_scalar(name: str, value: np.generic) -> None:
    """Raise TypeError for a NumPy scalar that is complex, boolean, a date or wider than 64 bits."""
    if not holds_real(value.dtype):
        raise not_real(name, value, value.dtype)


def check_reduction(reduction: Any) -> None:
    """Raise ValueError if the reduction is not one of `REDUCTIONS`."""
    if not (isinstance(reduction, str) and reduction in REDUCTIONS):
        raise ValueError(
            f"reduction must be 'none', 'sum' or 'mean', but {shown(reduction)} was given: pass "
            "one of these"
        )


def not_real(name: str, value: Any, dtype: Any) -> TypeError:
    """Make the error for an argument that does not hold real numbers."""
    # Look at the type, because reading the dtypes of a polars LazyFrame raises a warning.
    typed = hasattr(value, "dtype") or hasattr(type(value), "dtypes")
    if typed:
        given = f"{type_name(value)} of dtype {dtype}"
    else:
        given = f"{type_name(value)} {shown(value)}"
    if "complex" in str(dtype):
        remedy = OF_COMPLEX
    elif _is_sparse(value):
        given = f"{type_name(value)}, a sparse array,"
        remedy = "its zeros count, so pass its toarray()"
    elif (library := type_name(value).partition(".")[0]) in _TO_NUMPY:
        remedy = f"pass {_TO_NUMPY[library].format(name)}"
    elif typed or isinstance(value, (list, tuple)):
        remedy = "convert it to float64 if that is what is meant"
    else:
        remedy = "pass a float or an array of floats"
    return TypeError(
        f"{name} must hold real numbers of at most 64 bits, but {given} was given: {remedy}"
    )


def _is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse array, as in SciPy. NumPy would read it as one object."""
    return all(hasattr(type(value), name) for name in ("toarray", "nnz"))


def pure_number_of(type_: Any) -> str | None:
    """Return the code that reads the number in a pint, astropy or unyt quantity, else None."""
    if hasattr(type_, "magnitude") and hasattr(type_, "units"):
        return 'to("dimensionless").magnitude'
    if hasattr(type_, "quantity") and hasattr(type_, "unit"):  # a column of a table of astropy
        return 'quantity.to_value("")'
    if hasattr(type_, "to_value") and (hasattr(type_, "unit") or hasattr(type_, "in_units")):
        return 'to_value("")' if hasattr(type_, "unit") else 'to_value("dimensionless")'
    return None


def is_pure(value: Any) -> bool:
    """Return whether a column of astropy, whose type allows units, has none."""
    return getattr(value, "unit", value) is None


def has_unit(name: str, value: Any) -> TypeError:
    """Make the error for a quantity with a unit. NumPy would drop or refuse the unit."""
    return TypeError(
        f"{name} must be a pure number, but a {type_name(value)}, which has a unit, was given: "
        f"pass {name}.{pure_number_of(type(value))}"
    )


def no_broadcast(shapes: Mapping[str, Any]) -> str:
    """Write the message for arguments whose shapes do not broadcast."""
    given = " and ".join(f"{name} of shape {tuple(shape)}" for name, shape in shapes.items())
    return f"{given} do not broadcast: each pair of lengths must be equal or include a 1"


def check_shapes(arguments: Mapping[str, Any]) -> None:
    """Raise ValueError if the shapes of the arguments do not broadcast. Ignore unknown shapes."""
    shapes = {name: getattr(value, "shape", ()) for name, value in arguments.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except TypeError:  # Lazy arrays may have an unknown length.
        return
    except ValueError:
        raise ValueError(no_broadcast(shapes)) from None


def mixture(arguments: dict[str, Any]) -> TypeError:
    """Make the error for arguments from libraries that do not work together."""
    given = " and ".join(f"{n} of type {type_name(v)}" for n, v in arguments.items())
    return TypeError(
        f"{given} were given together: convert one, so that all come from the same library"
    )


def not_computed(arguments: dict[str, Any]) -> TypeError:
    """Make the error for arrays whose own library cannot compute the function."""
    arrays = {n: v for n, v in arguments.items() if not isinstance(v, (Real, np.generic))}
    if len({type(value).__module__.partition(".")[0] for value in arrays.values()}) > 1:
        return mixture(arguments)
    name, value = next(iter(arrays.items()))
    dtype = getattr(value, "dtype", None)
    given = type_name(value) + ("" if dtype is None else f" of dtype {dtype}")
    wide = "" if str(dtype).lower() == "float64" else "float64, or to "
    return TypeError(
        f"{name} is of type {given}, for which {given.partition('.')[0]} cannot compute this "
        f"function: convert it to {wide}an array of NumPy"
    )


def unsupported(name: str, value: Any) -> TypeError:
    """Make the error for a tensor of a framework that a function does not support."""
    library = framework(type(value))
    to_numpy = _TO_NUMPY.get(str(library), "numpy.asarray({})")
    if "complex" in str(getattr(value, "dtype", "")):  # A cast would drop the imaginary part.
        to_numpy = re.sub(r"\.(astype|double|float)\([^)]*\)", "", to_numpy)
    return TypeError(
        f"{name} is of type {type_name(value)}, and this function does not support "
        f"{library}: pass {to_numpy.format(name)}, for the value without its derivative"
    )


def no_closed_form(posterior: Any) -> NotImplementedError:
    """Make the error for a posterior whose KL has no closed form in this package."""
    return NotImplementedError(
        f"KL of {type(posterior).__name__} from ImproperLogUniform has no closed form here: use "
        "logunif_kl.neg_kl_posterior of the same distribution in scipy.stats, or samples of "
        "log_prob"
    )


def check_prior(posterior: Any, prior: Any) -> None:
    """Raise ValueError if the shapes of a prior do not fit those of a posterior."""
    events = tuple(posterior.event_shape), tuple(prior.event_shape)
    batches = tuple(posterior.batch_shape), tuple(prior.batch_shape)
    if events[0] != events[1] and (events[1] or batches[1]):
        raise ValueError(
            f"a posterior of event shape {events[0]} and an ImproperLogUniform of event shape "
            f"{events[1]} and batch shape {batches[1]} were given: pass ImproperLogUniform(), one "
            "prior for all weights, or an Independent of the posterior's event shape"
        )
    if any(m != n and 1 not in (m, n) for m, n in zip(*(b[::-1] for b in batches), strict=False)):
        raise ValueError(
            f"a posterior of batch shape {batches[0]} and an ImproperLogUniform of batch shape "
            f"{batches[1]} do not broadcast: pass ImproperLogUniform(), one prior for all weights"
        )


def holds_quantity(name: str, given: Any, quantity: Any) -> TypeError:
    """Make the error for a list or an object that holds a quantity with a unit."""
    return TypeError(
        f"{name} is a {type(given).__name__} that holds a {type_name(quantity)}, which has a unit: "
        f"replace each such element x by x.{pure_number_of(type(quantity))}"
    )


def holds_tensor(name: str, given: Any, tensor: Any) -> TypeError:
    """Make the error for a list or an object that holds a tensor."""
    remedy = "pass that tensor"
    if isinstance(given, (list, tuple)):
        remedy = "stack its elements into one tensor first"
    return TypeError(
        f"{name} is a {type(given).__name__} that holds a {type_name(tensor)}, whose derivative "
        f"would be lost without a warning: {remedy}"
    )

"""Symbolic tensors of Keras 3: an operation that calls the function of the backend."""

from __future__ import annotations

from functools import partial
from typing import Any

import keras

import logunif_kl

from .. import _errors
from .._convention import ZERO_AT_INFINITY, additive_constant

_package: Any = logunif_kl
_OPTIONS = ("zero_at", "log_c", "reduction")


@keras.saving.register_keras_serializable("logunif_kl")
class Call(keras.Operation):
    """A function of tensors with these names. Its other arguments are `before` and `options`."""

    def __init__(
        self, function: str, names: Any, before: Any = (), options: Any = None, name: Any = None
    ) -> None:
        super().__init__(name=name)
        self.function, self.names, self.before = function, tuple(names), tuple(before)
        self.options = options or {}

    def call(self, *tensors: Any) -> Any:
        given = dict(zip(self.names, tensors, strict=True))
        owner = _package
        if self.function in _package.log_alpha.__all__:
            owner = _package.log_alpha
        elif self.function == "of_log_alpha":
            owner = _package.isotropic._evaluation
        elif self.function.startswith("_"):
            owner = _package._dispatch.module_of(keras.backend.backend())
        return getattr(owner, self.function)(*self.before, **given, **self.options)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the class, with which Keras saves the operation."""
        if self.function == "_formula":
            raise NotImplementedError(
                "Keras cannot save a model that computes a formula of logunif_kl.methods or a Fit: "
                "call model.save_weights, make the model again, and call load_weights"
            )
        arguments = ("function", "names", "before", "options", "name")
        return {argument: getattr(self, argument) for argument in arguments}

    def compute_output_spec(self, *tensors: Any) -> Any:
        given = dict(zip(self.names, tensors, strict=True))
        dtypes = {n: x.dtype for n, x in given.items() if isinstance(x, keras.KerasTensor)}
        for name, dtype in dtypes.items():
            if dtype == "bool" or "complex" in dtype:
                raise _errors.not_real(name, given[name], dtype)
        shapes = {name: getattr(x, "shape", ()) for name, x in given.items()}
        shape = _broadcast(shapes) if self.options.get("reduction", "none") == "none" else ()
        return keras.KerasTensor(shape, keras.backend.result_type(*dtypes.values(), float))


def _broadcast(shapes: dict[str, Any]) -> tuple[int | None, ...]:
    """Broadcast shapes in which None is a length that is not known."""
    longest = max(map(len, shapes.values()))
    lengths = []
    for each in zip(*((1,) * (longest - len(s)) + tuple(s) for s in shapes.values()), strict=True):
        known = {n for n in each if n != 1}
        if len(known - {None}) > 1:
            raise ValueError(_errors.no_broadcast(shapes))
        lengths.append(max(known - {None}, default=None) if known else 1)
    return tuple(lengths)


class _Keras:
    """All functions of the other adapters. Each returns a symbolic tensor."""

    def __getattr__(self, function: str) -> Any:
        return partial(_called, function)

    def _converted(self, arithmetic: Any, **given: Any) -> Any:
        return _called(arithmetic.__name__.removeprefix("_"), **given)

    def of_log_alpha(self, log_alpha: Any, k: Any, order: int, *options: Any) -> Any:
        named = _without_defaults(dict(zip(_OPTIONS, options, strict=True)))
        return Call("of_log_alpha", ["log_alpha"], (), {"k": k, "order": order, **named})(log_alpha)


def _called(function: str, *before: Any, **given: Any) -> Any:
    options = {name: given.pop(name) for name in _OPTIONS if name in given}
    _errors.check_reduction(options.get("reduction", "none"))
    additive_constant(*(options[name] for name in _OPTIONS[:2] if name in options))
    return Call(function, list(given), before, _without_defaults(options))(*given.values())


def _without_defaults(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out defaults. In a saved model, that of `zero_at` would be a given infinity."""
    return {n: x for n, x in options.items() if x is not None and x is not ZERO_AT_INFINITY}


adapter = _Keras()

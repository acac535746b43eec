"""What all variational layers share: the options, the parameters, the noise and the KL."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn import Parameter

from ..._errors import OF_COMPLEX, shown
from . import _moments_rules, _penalty, _posterior
from ._hooks import refresh
from ._local import drawn, exponential
from ._moments import Moments
from ._noise import Drawing, normals

Tensor = torch.Tensor


class VariationalLayer(Drawing):
    """The base class of all variational layers.

    It tells them apart by `isinstance`, and has the methods that they share. It cannot be used by
    itself.

    Attributes
    ----------
    weight : Parameter
        The means of the weights.
    log_sigma2 or log_alpha : Parameter
        The logarithms of the variances, or of their ratio to the squares of the means.
    posterior, sharing, noise, estimator, initial, max_log_alpha, penalty, generator
        The options, as for `VariationalLinear`. The first three cannot be changed later. The others
        can, and are checked as when the layer is made.

    Raises
    ------
    TypeError
        If one is made of this class itself.
    """

    # Which dimension of the weight belongs to the units of the input and of the output.
    _units = {"output": 0, "input": 1}  # noqa: RUF012
    weight: Tensor
    bias: Tensor | None
    posterior: str = "additive"
    sharing: str
    noise: str
    estimator: str
    initial: float
    max_log_alpha: float | None
    penalty: Any
    generator: torch.Generator | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if type(self) is VariationalLayer:
            raise TypeError(
                "VariationalLayer is the base class of the layers: make a VariationalLinear, or "
                "another of its subclasses"
            )
        super().__init__(*args, **kwargs)

    def _become_variational(
        self,
        posterior: str,
        sharing: str,
        noise: str,
        estimator: str,
        initial: float | None,
        max_log_alpha: float | None,
        penalty: Any,
        generator: torch.Generator | None,
    ) -> None:
        """Check and keep the options, and make the second parameter."""
        given = {
            "posterior": posterior,
            "sharing": sharing,
            "noise": noise,
            "estimator": estimator,
            "max_log_alpha": max_log_alpha,
            "initial": initial,
            "generator": generator,
            "penalty": penalty,
        }
        checked: dict[str, Any] = {}
        for name, value in given.items():
            if name == "initial":
                _posterior.check(posterior, sharing, noise, checked["max_log_alpha"])
                value = _posterior.INITIAL[posterior] if value is None else value
            checked[name] = _posterior.option(name, value, posterior)
        # A layer may have other options already: a lazy one from torch's __init__.
        self.__dict__.update(checked)
        # A layer may have one already: a lazy one from torch's __init__, by the default options.
        for name in ("log_sigma2", "log_alpha"):
            self._parameters.pop(name, None)
        self._make_spread()

    def __setattr__(self, name: str, value: Any) -> None:
        """Check an option that is assigned later; those that shape the parameters are fixed."""
        if name in _posterior.OPTIONS:
            value = _posterior.option(name, value, self.posterior)
            if name in ("posterior", "sharing", "noise"):
                if value != getattr(self, name):
                    raise AttributeError(
                        f"{name} belongs to the parameters of the layer and cannot be changed: "
                        "make a new layer"
                    )
                return
            if name == "max_log_alpha":
                _posterior.check(self.posterior, self.sharing, self.noise, value)
        if name == "weight" and self.posterior == "additive":
            _posterior.refuse_fusion(sys._getframe(1), type(self))
        super().__setattr__(name, value)

    @property
    def _log_variance_name(self) -> str:
        return "log_sigma2" if self.posterior == "additive" else "log_alpha"

    @property
    def _log_variance(self) -> Tensor:
        return getattr(self, self._log_variance_name)

    def _make_spread(self) -> None:
        shape = _posterior.spread_shape(self.sharing, self.weight.shape, self._units)
        spread = self.weight.new_empty(shape)
        self.register_parameter(self._log_variance_name, Parameter(spread))
        self._reset_spread()

    def _reset_spread(self) -> None:
        with torch.no_grad():
            self._log_variance.fill_(self.initial)

    def reset_parameters(self) -> None:
        """Initialise the means and the bias as torch does, and the second parameter."""
        super().reset_parameters()  # type: ignore[misc]
        # torch's __init__ calls this before the second parameter is there.
        if self._log_variance_name in self._parameters:
            self._reset_spread()

    def forward(self, input: Any) -> Any:
        """Draw an output in training mode and under `sampling`; return the mean otherwise."""
        if isinstance(input, Moments):
            self._check_shape(input)
            return self._moments(input)
        _posterior.check_input(input)
        self._check_shape(input)
        if not self._draws:
            return super().forward(input)  # type: ignore[misc]
        if self.noise == "correlated":
            return super().forward(self._scaled(input))  # type: ignore[misc]
        if self.estimator == "local":
            spread, log = self._variances()
            return drawn(self, self._padded(input), self.weight, self.bias, spread, log, self._draw)
        if self.estimator == "per_batch" or not self._batched(input) or not input.shape[0]:
            weight = self._weights(self.weight.shape)
            return self._product(self._padded(input), weight, self.bias)
        return self._product_each(
            self._padded(input), self._weights((input.shape[0], *self.weight.shape))
        )

    def _moments(self, x: Moments) -> Moments:
        if self.noise == "correlated":
            raise ValueError(
                "moments need independent weights, but the layer has noise='correlated': make it "
                "with noise='independent'"
            )
        spread, log = self._variances()
        variances = exponential(spread) if log else spread
        padded = None if x._variance is None else self._padded(x._variance)
        x = x._like(self._padded(x.mean), padded)
        return _moments_rules.product(self._product, x, self.weight, self.bias, variances)

    def _normals(self, shape: Any, like: Tensor) -> Tensor:
        return normals(shape, like, self.generator)

    def _draw(self, mean: Tensor) -> Tensor:
        return self._normals(mean.shape, mean)

    def _bounded(self) -> Tensor:
        """The second parameter as it is used: below its bound, of a shape that fits the weight."""
        name, weight = self._log_variance_name, self.weight
        own = _posterior.spread_shape(self.sharing, weight.shape, self._units)
        scales = self.noise == "correlated"
        spread = _posterior.aligned(name, self._log_variance, weight, own, scales)
        if self.posterior == "additive":
            return spread if spread.shape == weight.shape else spread.expand_as(weight)
        return _posterior.bounded(spread, self.max_log_alpha)

    def _typed(self) -> Tensor:
        """The second parameter in the type of the weight, for products with inputs of this type."""
        return self._bounded().to(self.weight.dtype)

    def _deviations(self) -> Tensor:
        """The standard deviations of the weights."""
        deviations = _posterior.root(self._typed())
        return deviations if self.posterior == "additive" else self.weight * deviations

    def _weights(self, shape: Any) -> Tensor:
        """Samples of the weights, of the shape of the weights or with more dimensions before it."""
        deviations = self._deviations()
        return _posterior.in_range(self.weight + deviations * self._normals(shape, self.weight))

    def _variances(self) -> tuple[Tensor, bool]:
        """The variances of the weights, or their logarithms and True."""
        if self.posterior == "additive":
            return self._typed(), True
        return _posterior.multiplied(self.weight, self._typed()), False

    # What the layers define, each for its own kind of product.

    def _check_shape(self, input: Any) -> None:
        raise NotImplementedError

    def _padded(self, input: Tensor) -> Tensor:
        """Return the input with the padding that the product does not add."""
        return input

    def _product(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        raise NotImplementedError

    def _product_each(self, input: Tensor, weights: Tensor) -> Tensor:
        raise NotImplementedError

    def _product_backward(
        self,
        grad: Tensor,
        input: Tensor,
        weight: Tensor,
        wanted: tuple[bool, bool, bool],
        factor: float = 1.0,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        raise NotImplementedError

    def _batched(self, input: Tensor) -> bool:
        raise NotImplementedError

    def _scaled(self, input: Tensor) -> Tensor:
        raise NotImplementedError

    def _scales(self) -> int:
        """How many scales there are: one for each input unit."""
        raise NotImplementedError

    # The KL.

    def _penalty_terms(self, whole: bool = False) -> list[tuple[Any, ...]]:
        """What the KL is the sum of; of all rows of a table if `whole`.

        ("normal", mu, log_sigma2, 1), or ("alpha", log_alpha, weights or scales an element). With a
        mask of `torch.nn.utils.prune` the last is a tensor that counts those that are kept. The
        exact KL of the normal ones needs none, as it is 0 where `prune` put a mean of 0 and a
        variance of 0. Half types are converted to float32, in which a sum over many weights fits.
        """
        if self.weight.is_complex():
            raise TypeError(f"the weights of a layer are of {self.weight.dtype}: {OF_COMPLEX}")
        mask = self._mask(whole)
        if self.posterior == "additive":
            kept = 1 if mask is None or self.penalty == _penalty.EXACT else mask
            mean, spread = _posterior.single(self.weight), _posterior.single(self._bounded())
            if mean.dtype != spread.dtype:
                mean, spread = mean.double(), spread.double()
            return [("normal", mean, spread, kept)]
        log_alpha = _posterior.single(self._bounded())
        scales = self._scales() if self.noise == "correlated" else None
        if mask is not None:
            kept = _posterior.kept(mask, self._units, scales).sum_to_size(log_alpha.shape)
            return [("alpha", log_alpha, kept)]
        counted = self.weight.numel() if scales is None else scales
        return [("alpha", log_alpha, counted // max(log_alpha.numel(), 1))]

    def _mask(self, whole: bool) -> Tensor | None:
        """The mask of `torch.nn.utils.prune` on the weights, 1 where they are kept."""
        return self._buffers.get("weight_mask")

    def neg_kl(self, of: str | None = None) -> Tensor:
        """-KL(q || p), summed over the weights or the scales: *maximise* it (ELBO sign).

        The prior p is log-uniform, and -KL vanishes as alpha -> inf (Molchanov et al. 2017, Eq. 14;
        see `logunif_kl.torch.neg_kl`). Kingma et al. (2015), Eq. 12, subtract KL from the expected
        log-likelihood of *all* data.

        Parameters
        ----------
        of : {"weights", "scales"}, optional
            Of what: the weights under independent noise, and the scales s_i under correlated noise
            (Kingma et al. 2015, section 3.2), which is what is taken by default.

        Returns
        -------
        Tensor
            Of no dimensions; in float32 for parameters of half types.

        Raises
        ------
        ValueError
            If `of` is none of these, or is asked for under the other noise. The KL of the weights
            under correlated noise is infinite (Hron et al. 2017, section 3).

        Examples
        --------
        >>> import torch
        >>> from logunif_kl.torch import nn
        >>> layer = nn.VariationalLinear(3, 2, posterior="multiplicative", sharing="layer")
        >>> layer.neg_kl().detach()
        tensor(-12.6479)
        """
        _posterior.check_of(of, self.noise)
        refresh(self)
        return _penalty.total([(self.penalty, self._penalty_terms())])

    def kl(self, of: str | None = None) -> Tensor:
        """KL(q || p), to be *added to a loss*: ``-layer.neg_kl(of)``.

        Added to the negative log-likelihood of a whole data set of N examples, and to the *mean* of
        that of a minibatch after division by N.
        """
        return -self.neg_kl(of)

    def log_alpha_of_weights(self) -> Tensor:
        """Compute log alpha of every weight, for pruning and display.

        Returns
        -------
        Tensor
            Of the shape of `weight`: log sigma^2 - 2 log|mu|, which is inf where mu = 0, or
            `log_alpha` as the layer uses it. It is -inf in the row of a `padding_idx`, which has no
            noise.
        """
        refresh(self)
        if self.posterior == "additive":
            return self._bounded() - 2.0 * self.weight.abs().log()
        return self._bounded().expand(self.weight.shape)

    def extra_repr(self) -> str:
        """What torch's layer shows, and the options that are not the default ones."""
        shown_options = [super().extra_repr(), f"posterior={self.posterior!r}"]
        for name, default in (
            ("sharing", "weight"),
            ("noise", "independent"),
            ("estimator", "local"),
            ("max_log_alpha", None),
            ("penalty", "exact"),
        ):
            value = getattr(self, name)
            if value != default:
                shown_options.append(f"{name}={shown(value)}")
        return ", ".join(shown_options)

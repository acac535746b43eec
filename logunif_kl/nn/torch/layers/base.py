"""The base of all variational layers: options, parameters, noise and KL."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import sys
from typing import Any, Unpack

import torch
from torch.nn import Parameter

from ...._errors import shown
from ...options import REPLACED
from ...penalty import check_of
from ...posteriors import Additive
from ..arguments import refuse_fusion
from ..hooks import means_assigned, own_parameter, refresh
from ..moments import rules
from ..moments.moments import Moments, check_input
from ..noise.local import sample_output, variances_of
from ..noise.undrawn import unwrapped
from ..options import DEFAULTS, VariationalOptions, checked, option
from ..priors.penalty import total
from ..weights.of_layers import GaussianWeights

Tensor = torch.Tensor


class VariationalLayer(GaussianWeights):
    """The base class of all variational layers.

    Use it in `isinstance` checks, and to look up the methods that all layers share.

    Attributes
    ----------
    weight : Parameter
        The means of the weights. A module that computes with the weight of a layer instead of
        calling the layer gets RuntimeError while noise is drawn: see the notes of `to_variational`.
    log_sigma2 or log_alpha : Parameter
        The logarithms of the variances sigma^2, or of alpha = sigma^2/mean^2.
    scale, scale_log_sigma2 : Parameter
        With the posterior `Scaled`: the means of the scales, and the logarithms of their variances.
    posterior, estimator, penalty, generator
        The options, as for `VariationalLinear`. You may assign them, which are then checked as in
        the constructor. The class of the posterior and its `sharing` are fixed, so change a copy:
        ``layer.posterior = dataclasses.replace(layer.posterior, max_log_alpha=0.0)``.

    Raises
    ------
    TypeError
        If this class itself is instantiated.
    """

    _lk_own = tuple(DEFAULTS)
    bias: Tensor | None
    estimator: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if type(self) is VariationalLayer:
            raise TypeError(
                "VariationalLayer is the base class of the layers: make a VariationalLinear, or "
                "another of its subclasses"
            )
        super().__init__(*args, **kwargs)

    def _become_variational(self, **options: Unpack[VariationalOptions]) -> None:
        """Check and store the options, and create `log_sigma2` or `log_alpha`."""
        # __setattr__ would refuse to change the fixed options.
        found = checked(options)
        self._register_penalty(found.pop("penalty"))
        self.__dict__.update(found)
        # The __init__ of a lazy layer has already made a parameter for the default options.
        self._parameters.pop("log_sigma2", None)
        self._make_log_variance()

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a value that is assigned to an option, and refuse to change the fixed options."""
        if name in DEFAULTS:
            value = option(name, value, self.posterior)
            if name == "penalty":
                self._register_penalty(value)
                return
            if name == "posterior":
                _check_changed(self.posterior, value)
        elif name in REPLACED and not hasattr(self, name):
            raise AttributeError(
                f"{name} belongs to the posterior of a layer: change it as in layer.posterior = "
                "dataclasses.replace(layer.posterior, max_log_alpha=0.0)"
            )
        if name == "weight" and not self.posterior.relative:
            refuse_fusion(self, sys._getframe(1))
        super().__setattr__(name, unwrapped(value))

    def __delattr__(self, name: str) -> None:
        if name == "posterior":
            raise AttributeError("a layer needs its posterior: assign another one instead")
        super().__delattr__(name)

    def _lk_become_plain(self) -> None:
        super()._lk_become_plain()
        self._modules.pop("penalty", None)

    def _register_penalty(self, penalty: Any) -> None:
        """Store the penalty, as a submodule if it is a module, whose parameters are trained."""
        held, other = self.__dict__, self._modules
        if isinstance(penalty, torch.nn.Module):
            held, other = other, held
        other.pop("penalty", None)
        held["penalty"] = penalty

    def _make_log_variance(self) -> None:
        for name, shape in self._shapes(self._lk_stored.shape).items():
            self.register_parameter(name, Parameter(self._lk_stored.new_empty(shape)))
        self._lk_reset_variances()

    def _lk_initial_values(self) -> dict[str, float]:
        names = self._shapes(())
        return {name: 1.0 if name == "scale" else self.posterior.initial for name in names}

    def reset_parameters(self) -> None:
        """Set the means and the bias as torch does, and log sigma^2 or log alpha to `initial`."""
        with means_assigned(self, ["weight"]):
            super().reset_parameters()  # type: ignore[misc]
        # torch's __init__ calls this before the second parameter exists.
        if own_parameter(self, self._log_variance_name) is not None:
            self._lk_reset_variances()

    def forward(self, input: Any) -> Any:
        """Draw an output in training mode and within `sampling`; return the mean otherwise."""
        if isinstance(input, Moments):
            self._check_shape(input)
            return self._moments(input)
        check_input(input)
        self._check_shape(input)
        if not self._lk_draws:
            if "scale" not in self.posterior.parameters and self._lk_mask() is None:
                return super().forward(input)  # type: ignore[misc]
            return self._product(self._padded(input), self._means(), self.bias)
        if self.posterior.scaled:
            self._lk_mask()  # raises before the scales are drawn
            input = self._scaled(input)
        padded = self._padded(input)
        if not self.posterior.independent:
            return self._product(padded, self._masked(), self.bias)
        if self._lk_estimator == "local":
            return sample_output(
                self, padded, self._masked(), self.bias, self._typed(), self._form(), self._draw
            )
        if self._lk_estimator == "per_batch" or not self._batched(input) or not input.shape[0]:
            return self._product(padded, self._weights(self._lk_stored.shape), self.bias)
        return self._product_each(padded, self._weights((input.shape[0], *self._lk_stored.shape)))

    def _moments(self, x: Moments) -> Moments:
        if self.posterior.scaled:
            raise ValueError(
                "moments need independent weights, but the layer has "
                f"posterior={self.posterior!r}: make it with posterior=nn.Additive() or "
                "nn.Multiplicative()"
            )
        mean = self._masked()
        variances = variances_of(mean, self._typed(), self._form())
        padded = None if x._variance is None else self._padded(x._variance)
        x = x._like(self._padded(x.mean), padded)
        return rules.product(self._product, x, mean, self.bias, variances)

    @property
    def _lk_estimator(self) -> str:
        """How the noise is drawn: `estimator`, except within `sampled`."""
        return self.estimator if self._lk_kept is None else "per_batch"

    def _draw(self, mean: Tensor) -> Tensor:
        return self._lk_normals(mean.shape, mean)

    # Each subclass defines the methods below that it needs, with these arguments and results.
    _check_shape: Any  # (input): raise if the shape of the input does not fit
    _product: Any  # (input, weight, bias): the output
    _product_backward: Any  # as in `_local.Product`
    _product_each: Any  # (input, weights): the output, with separate weights for each example
    _batched: Any  # (input): whether the input has a batch dimension
    _scaled: Any  # (input): the input times random scales

    def _padded(self, input: Tensor) -> Tensor:
        """Return the input with the padding that `_product` does not add itself."""
        return input

    def neg_kl(self, of: str | None = None) -> Tensor:
        """Compute -KL(q || p), summed over the weights or the scales: *maximise* it (ELBO sign).

        Unless `penalty` is another prior, p is log-uniform, and -KL vanishes as alpha -> inf
        (Molchanov et al. 2017, Eq. 14; see `logunif_kl.torch.neg_kl`). Kingma et al. (2015), Eq.
        12, subtract KL from the expected log-likelihood of *all* data.

        Parameters
        ----------
        of : {"weights", "scales"}, optional
            Which KL to return: of the weights or, for the posterior `Correlated`, of the scales s_i
            (Kingma et al. 2015, section 3.2). The default depends on the posterior.

        Returns
        -------
        Tensor
            A 0-d tensor, in float32 for parameters of half types.

        Raises
        ------
        ValueError
            If `of` is unknown, or does not match the posterior. The KL of the weights under
            `Correlated` is infinite (Hron et al. 2017, section 3).

        Examples
        --------
        >>> import torch
        >>> from logunif_kl.torch import nn
        >>> layer = nn.VariationalLinear(3, 2, posterior=nn.Multiplicative("layer"))
        >>> layer.neg_kl().detach()
        tensor(-12.6479)
        """
        check_of(of, self.posterior)
        refresh(self)
        return total([(each.penalty, each.terms()) for each in self._lk_weights()])

    def kl(self, of: str | None = None) -> Tensor:
        """Compute KL(q || p), to be *added to a loss*: ``-layer.neg_kl(of)``.

        Add it to the negative log-likelihood of the whole data set. If the loss is a *mean* over a
        minibatch, divide the KL by the number of examples in the data set first.
        """
        return -self.neg_kl(of)

    def log_alpha_of_weights(self) -> Tensor:
        """Compute log alpha of every weight.

        Returns
        -------
        Tensor
            Of the shape of `weight`: log sigma^2 - 2 log|mu|, which is inf where mu = 0. For the
            posteriors `Multiplicative` and `Correlated`: min(`log_alpha`, `max_log_alpha`). For
            `Scaled`: log alpha of the scale, the same for all weights of an input. For the groups
            of k weights of `Grouped`: log(k sigma^2/|mu|^2). A row at `padding_idx` has no noise,
            so log alpha is -inf there.
        """
        refresh(self)
        return self._lk_log_alpha()

    def extra_repr(self) -> str:
        """Show the arguments of torch's layer, the posterior, and options that are not defaults."""
        found = [super().extra_repr()]
        for name in ("posterior", "estimator", "penalty"):
            value = getattr(self, name)
            if value != DEFAULTS[name] and name not in self._modules:  # type: ignore[literal-required]
                found.append(f"{name}={shown(value)}")
        return ", ".join(found)


def _check_changed(posterior: Additive, value: Additive) -> None:
    """Raise if a layer cannot exchange its posterior, because the parameters would not fit."""
    if (type(value), value.sharing) != (type(posterior), posterior.sharing):
        raise AttributeError(
            f"posterior={value!r} was assigned to a layer with {posterior!r}, whose class and "
            "sharing cannot be changed after the layer is made: make a new layer"
        )

"""The variational linear layer."""

# mypy: allow-untyped-calls, no-warn-return-any, disable-error-code="misc"
from __future__ import annotations

from typing import Any, Unpack

import torch
from torch.nn import functional as F

from ...checks import check_flag
from ..arguments import check_dtype, check_features
from ..options import VariationalOptions, list_options
from .base import VariationalLayer

Tensor = torch.Tensor


class VariationalLinear(VariationalLayer, torch.nn.Linear):
    r"""`torch.nn.Linear` with a Gaussian posterior over its weights.

    The weight w_ij from input i to output j has the mean mu_ij and the variance sigma_ij^2, which
    `posterior` sets. The ``"local"`` estimator ([1]_, Eq. 6) draws each output b_j from its own
    Gaussian, given the inputs a_i:

    .. math::

        b_j = \sum_i a_i \mu_{ij} + \mathrm{bias}_j
        + \sqrt{\sum_i a_i^2 \sigma_{ij}^2}\; \zeta_j, \qquad \zeta_j \sim \mathcal N(0, 1)

    The layer draws noise in training mode and within `logunif_kl.torch.nn.sampling`. Otherwise it
    computes `torch.nn.Linear` with the means as weights. The bias has no variance. As the loss, use
    the negative log-likelihood of all data plus `kl` (see `logunif_kl.torch.nn.ELBO`).

    Parameters
    ----------
    in_features, out_features, bias, device, dtype
        As for `torch.nn.Linear`.
    posterior : Additive, Grouped, Multiplicative, Correlated or Scaled, optional
        The posterior of the weights, by default ``Additive()`` ([2]_). Its parameters have the
        shape of `weight`, ``(out_features, 1)`` if the weights of an output unit share them,
        ``(1, in_features)`` for input units and for their scales, or ``(1, 1)`` for the layer.
    estimator : {"local", "per_example", "per_batch"}
        What to draw: the outputs, weights for each example (along the first dimension), or weights
        once for the minibatch. ``"per_example"`` takes much memory. All three give the same
        expected loss, but gradients of different variance ([1]_, section 2). With
        `Correlated` and `Scaled`, ``"local"`` draws scales for each row of the input. Given these
        scales, the estimator acts on the weights that they multiply.
    penalty : str, Fit or Prior, optional
        How to compute `neg_kl`: ``"exact"`` (the default), the name of a method with a gradient in
        `logunif_kl.methods.METHODS`, or a `logunif_kl.fitting.Fit`. For `Scaled`, the KL of the
        scales is computed so. A `Prior`, such as a `StudentTPrior`, replaces the log-uniform prior
        of `Additive` and `Grouped`. A prior that is a `torch.nn.Module` becomes a submodule of the
        layer, so its parameters are trained and saved. ``"kingma"`` is fitted for alpha <= 1 only,
        and ``"lower_bound"`` holds for alpha <= 2.42. For larger alpha their KL falls without bound
        (to -inf where mu = 0), and training diverges: use them with
        ``Multiplicative(max_log_alpha=0.0)``.
    generator : torch.Generator, optional
        Draws all noise of the layer, in place of torch's global generator. It is not part of the
        ``state_dict``. A copy or a pickle of the layer has its own generator in the same state. For
        `torch.utils.checkpoint.checkpoint` use `logunif_kl.torch.nn.checkpoint_contexts`, without
        which the backward pass raises RuntimeError. In a compiled graph, the compiler chooses the
        order in which layers draw, and no error tells of a checkpoint.

    Attributes
    ----------
    weight, bias : Parameter
        As in `torch.nn.Linear`, with the same initial values from the same seed.
    log_sigma2 or log_alpha : Parameter
        The parameter that sets the variances. You may assign another parameter that broadcasts to
        `weight` or, for `Correlated` and `Grouped`, to the original parameter.
    scale, scale_log_sigma2 : Parameter
        For `Scaled`, of shape ``(1, in_features)``: the means of the scales, 1 at first, and the
        logarithms of their variances. `weight` and `log_sigma2` are then those of v.

    Raises
    ------
    ValueError
        If `estimator` or `penalty` is not one of its choices, or the posterior cannot have the
        penalty; if the last dimension of an input is not `in_features`; if you have assigned a
        `weight`, `log_sigma2` or `log_alpha` of a wrong shape.
    TypeError
        If an option or `bias` is of a wrong type, such as a string for `posterior`, or if a `dtype`
        or an input is not real.
    RuntimeError
        If the generator is on another device than the layer.

    See Also
    --------
    logunif_kl.torch.nn.to_variational : make the layers of a network variational.
    logunif_kl.torch.nn.neg_kl, logunif_kl.torch.nn.kl : the KL of all layers of a model.

    Notes
    -----
    For a single input vector, the outputs of ``"local"`` have the same distribution as with sampled
    weights. If the input has more than two dimensions, ``"local"`` draws each row independently,
    although the rows of one example share their weights.

    With the posterior `Scaled`, `logunif_kl.torch.nn.to_sparse` removes an input unit from the
    layer before, too.

    The options are not part of the ``state_dict``. A layer that loads it needs the same
    `posterior`, `penalty` and `estimator`, which change what the parameters mean.

    An optimizer with weight decay (`torch.optim.AdamW`) pulls `log_sigma2` and `log_alpha` towards
    0, which is a large variance: put them into a group of parameters with ``weight_decay=0``.

    No epsilon is added under the square root. Where the variance is 0, the output is its mean, and
    gradients are finite. For the outputs, `log_sigma2` and `log_alpha` are clipped to at most 60
    (600 in float64, 18 in float16). With float16 parameters, and under autocast to float16, squares
    and variances are multiplied in bfloat16, which has a larger range.

    References
    ----------
    .. [1] Kingma et al., "Variational Dropout and the Local Reparameterization Trick" (2015).
    .. [2] Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 2, posterior=nn.Additive(initial=-4.0))
    >>> x = torch.ones(5, 3)
    >>> bool((layer(x)[0] == layer(x)[1]).any())
    False
    >>> layer.eval()(x).equal(torch.nn.functional.linear(x, layer.weight, layer.bias))
    True
    >>> loss = layer(x).square().sum() + layer.kl()
    >>> loss.backward()
    >>> layer.log_sigma2.grad.shape
    torch.Size([2, 3])
    """

    _lk_plain = torch.nn.Linear

    @list_options
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[VariationalOptions],
    ) -> None:
        check_dtype(dtype)
        check_flag("bias", bias)
        super().__init__(in_features, out_features, bias, device, dtype)
        self._become_variational(**options)

    def _check_shape(self, input: Any) -> None:
        check_features(input, self._lk_stored.shape[-1])

    def _product(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear(input, weight, bias)

    def _product_backward(
        self,
        grad: Tensor,
        input: Tensor,
        weight: Tensor,
        wanted: tuple[bool, bool, bool],
        factor: float = 1.0,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        rows, inputs = grad, input
        if grad.ndim != 2:
            rows = grad.reshape(grad.shape[:-1].numel(), grad.shape[-1])
            inputs = input.reshape(len(rows), input.shape[-1])
        d_weight = None
        if wanted[1]:
            # Let addmm multiply by `factor`, because this takes no extra time.
            d_weight = torch.addmm(grad.new_empty(()), rows.mT, inputs, beta=0, alpha=factor)
        return grad @ weight if wanted[0] else None, d_weight, rows.sum(0) if wanted[2] else None

    def _product_each(self, input: Tensor, weights: Tensor) -> Tensor:
        rows = input.reshape(input.shape[0], input.shape[1:-1].numel(), input.shape[-1])
        outputs = torch.matmul(rows, weights.mT).reshape(*input.shape[:-1], weights.shape[-2])
        return outputs if self.bias is None else outputs + self.bias.to(outputs.dtype)

    def _batched(self, input: Tensor) -> bool:
        return input.ndim > 1

    def _scaled(self, input: Tensor) -> Tensor:
        shape: Any = input.shape
        if self._lk_estimator == "per_batch":
            shape = shape[-1:]
        elif self._lk_estimator == "per_example" and input.ndim > 1:
            shape = (shape[0], *[1] * (input.ndim - 2), shape[-1])
        mean, deviation = self._scale_moments(input.dtype)
        return input * (mean + deviation * self._lk_normals(shape, input))

    def _drawn_scales(self) -> Tensor:
        mean, deviation = self._scale_moments(self._lk_stored.dtype)
        return mean + deviation * self._lk_normals(self._lk_stored.shape[-1:], self._lk_stored)

"""The linear layer."""

# mypy: allow-untyped-calls, no-warn-return-any, disable-error-code="misc"
from __future__ import annotations

from typing import Any, Unpack

import torch
from torch.nn import functional as F

from ..._layers import check_flag
from ._arguments import check_dtype, check_features
from ._layer import VariationalLayer
from ._options import VariationalOptions, list_options

Tensor = torch.Tensor


class VariationalLinear(VariationalLayer, torch.nn.Linear):
    """`torch.nn.Linear` with a Gaussian posterior over its weights.

    A weight w from input i to output j is N(mu, sigma^2) or, with the ``"multiplicative"``
    posterior, N(theta, alpha theta^2). The ``"local"`` estimator ([1]_, Eq. 6) draws each output
    from its own Gaussian, given the inputs a::

        b_j = sum_i a_i mu_ij + bias_j + sqrt(sum_i a_i^2 sigma_ij^2) zeta_j,    zeta_j ~ N(0, 1)

    The layer draws in training mode and within `logunif_kl.torch.nn.sampling`. In evaluation mode
    the output is as for `torch.nn.Linear` with the means. The bias has no variance. The
    loss is the negative log-likelihood of all data plus `kl` (see `logunif_kl.torch.nn.ELBO`).

    Parameters
    ----------
    in_features, out_features, bias, device, dtype
        As for `torch.nn.Linear`.
    posterior : {"additive", "multiplicative"}
        The second parameter, next to the means `weight`: `log_sigma2` ([2]_), or `log_alpha`, the
        logarithms of alpha = sigma^2/theta^2, a ratio of *variances* ([1]_, section 3.1).
    sharing : {"weight", "output", "input", "layer"}
        Which weights share an alpha. `log_alpha` has the shape of `weight`, ``(out_features, 1)``,
        ``(1, in_features)`` or ``(1, 1)``. The KL counts a shared alpha once for each weight that
        has it. With the additive posterior each weight has its own sigma.
    noise : {"independent", "correlated"}
        Independent weights (type B, [1]_, section 3.1), or one scale for all weights of an input
        (type A, section 3.2): w_ij = s_i theta_ij with s_i ~ N(1, alpha_i). Correlated noise needs
        the multiplicative posterior with `sharing` ``"input"`` or ``"layer"``. `kl` is then the KL
        of the scales, because the KL of the weights is infinite ([3]_, section 3).
    estimator : {"local", "per_example", "per_batch"}
        What to draw: the outputs, weights for each example (the first dimension of the input), or
        weights once for the minibatch. Weights for each example take much memory. All have the same
        expected loss, and gradients of different variance ([1]_, section 2). Under correlated noise
        ``"local"`` draws scales for each row of inputs.
    initial : float, optional
        The initial `log_sigma2` (-10 by default) or `log_alpha` (-3 by default).
    max_log_alpha : float, optional
        The largest log alpha, for the multiplicative posterior: 0.0 for alpha <= 1 as in [1]_,
        section 3.4. The layer uses ``min(log_alpha, max_log_alpha)``. At the bound or above, only a
        gradient that decreases log alpha passes. This holds separately for the gradients of the
        likelihood and of `neg_kl`. Where they disagree, the parameter stays within two optimizer
        steps of the bound.
    penalty : str, Fit or NormalPrior, optional
        What `neg_kl` computes: ``"exact"`` (the default), the name of a method of
        `logunif_kl.methods.METHODS` that has a gradient, or a `logunif_kl.fitting.Fit`; or -KL from
        a `NormalPrior` in place of the log-uniform one.
        ``"kingma"`` is fitted for alpha <= 1 only, and ``"lower_bound"`` holds for alpha <= 2.42.
        For larger alpha, their KL falls without bound (to -inf where mu = 0), and training
        diverges: use them with the multiplicative posterior and ``max_log_alpha=0.0``.
    generator : torch.Generator, optional
        Draws all noise of the layer, in place of torch's global generator. The generator is not in
        the ``state_dict``. A copy or a pickle of the layer has its own generator in the same state.
        Under `torch.utils.checkpoint.checkpoint` pass `logunif_kl.torch.nn.checkpoint_contexts`. In
        a compiled graph, the compiler chooses the order in which layers draw.

    Attributes
    ----------
    weight, bias : Parameter
        As in `torch.nn.Linear`, with the same initial values from the same seed.
    log_sigma2 or log_alpha : Parameter
        The second parameter of the posterior. You may assign another one that broadcasts to the
        shape of `weight`, or under correlated noise to the shape of the original parameter.

    Raises
    ------
    ValueError
        If an option is not one of its choices, or does not go with another; if a number is not
        finite; if the last length of an input is not `in_features`; if `weight`, `log_sigma2` or
        `log_alpha` was replaced by one whose shape does not fit.
    TypeError
        If an option or `bias` is of a wrong type, or if a `dtype` or an input is not real.
    RuntimeError
        If the generator is on another device than the layer.

    See Also
    --------
    logunif_kl.torch.nn.to_variational : make the layers of a network variational.
    logunif_kl.torch.nn.neg_kl, logunif_kl.torch.nn.kl : of all layers of a model.

    Notes
    -----
    For one vector of inputs, the outputs have the distribution that samples of the weights would
    give. If the input has more than two dimensions, ``"local"`` draws each row independently, and
    ignores that the rows of one example share their weights.

    The options are not part of the ``state_dict``. Pass `max_log_alpha`, `penalty`, `noise` and
    `estimator` again, because they change what the same parameters mean.

    An optimizer with weight decay (`torch.optim.AdamW`) pulls `log_sigma2` and `log_alpha` towards
    0, a large variance: put them into a group of parameters with ``weight_decay=0``.

    The square root has no epsilon: where the variance is 0, the output is its mean, and gradients
    are finite. Outputs are computed with `log_sigma2` and `log_alpha` of at most 60 (600 in
    float64, 18 in float16). Under autocast to float16, and with float16 parameters, bfloat16, which
    has the range, is used for the product of squares and variances.

    References
    ----------
    .. [1] Kingma et al., "Variational Dropout and the Local Reparameterization Trick" (2015).
    .. [2] Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).
    .. [3] Hron, Matthews, Ghahramani, "Variational Gaussian Dropout is not Bayesian" (2017).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import nn
    >>> layer = nn.VariationalLinear(3, 2, initial=-4.0)
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

    @list_options
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        **options: Unpack[VariationalOptions],
    ) -> None:
        check_dtype(dtype)
        check_flag("bias", bias)
        super().__init__(in_features, out_features, bias, device, dtype)
        self._become_variational(**options)

    def _check_shape(self, input: Any) -> None:
        check_features(input, self.weight.shape[-1])

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
        rows = grad.reshape(grad.shape[:-1].numel(), grad.shape[-1])
        d_weight = None
        if wanted[1]:
            # Multiply by the factor inside the product, which takes no extra time.
            inputs = input.reshape(len(rows), input.shape[-1])
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
        if self.estimator == "per_batch":
            shape = shape[-1:]
        elif self.estimator == "per_example" and input.ndim > 1:
            shape = (shape[0], *[1] * (input.ndim - 2), shape[-1])
        deviation = self._root()[0].to(input.dtype)
        return input * (1.0 + deviation * self._normals(shape, input))

    def _scales(self) -> int:
        # Do not use in_features, which is 0 in a lazy layer that was loaded.
        return self.weight.shape[-1]

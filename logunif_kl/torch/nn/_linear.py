"""The variational linear layer."""

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
    r"""`torch.nn.Linear` with a Gaussian posterior over its weights.

    The posterior of a weight w_ij from input i to output j is N(mu_ij, sigma_ij^2) or, with
    ``posterior="multiplicative"``, N(theta_ij, alpha_ij theta_ij^2). The ``"local"`` estimator
    ([1]_, Eq. 6) draws each output b_j from its own Gaussian, given the inputs a_i:

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
    posterior : {"additive", "multiplicative", "scaled"}
        Selects the parameter that sets the variances: `log_sigma2` ([2]_), or
        `log_alpha` with alpha = sigma^2/theta^2, a ratio of *variances* ([1]_, section 3.1).
        ``"scaled"`` gives each input unit a scale of its own, and removes whole units (see Notes).
    sharing : {"weight", "output", "input", "layer"}
        Which weights share an alpha: `log_alpha` has the shape of `weight`, ``(out_features, 1)``,
        ``(1, in_features)`` or ``(1, 1)``, respectively. The KL counts a shared alpha once for each
        of its weights. With the additive posterior, the weights of an ``"output"`` or ``"input"``
        share a variance, and the prior is that of groups (see Notes).
    noise : {"independent", "correlated"}
        ``"independent"``: each weight has its own noise (type B, [1]_, section 3.1).
        ``"correlated"``: all weights of an input share a scale, w_ij = s_i theta_ij with
        s_i ~ N(1, alpha_i) (type A, section 3.2). This needs the multiplicative posterior with
        `sharing` ``"input"`` or ``"layer"``. `kl` is then the KL of the scales, because the KL of
        the weights is infinite ([3]_, section 3).
    estimator : {"local", "per_example", "per_batch"}
        What to draw: the outputs, weights for each example (along the first dimension), or weights
        once for the minibatch. ``"per_example"`` takes much memory. All three give the same
        expected loss, but gradients of different variance ([1]_, section 2). With correlated noise,
        ``"local"`` draws scales for each row of the input.
    initial : float, optional
        The initial value of `log_sigma2` and `scale_log_sigma2` (-10 by default) or `log_alpha` (-3
        by default).
    max_log_alpha : float, optional
        An upper bound of log alpha, for the multiplicative posterior; 0.0 gives alpha <= 1 as in
        [1]_, section 3.4. The layer uses ``min(log_alpha, max_log_alpha)``. At or above the bound,
        a gradient passes only if a descent step would decrease log alpha. The gradients of the
        likelihood and of `neg_kl` are tested separately: if one of them decreases log alpha, but
        their sum increases it, log alpha stays within two optimizer steps of the bound.
    penalty : str, Fit or Prior, optional
        How to compute `neg_kl`: ``"exact"`` (the default), the name of a method with a gradient in
        `logunif_kl.methods.METHODS`, or a `logunif_kl.fitting.Fit`. With ``posterior="scaled"``,
        the KL of the scales is computed so. A `Prior`, such as a `StudentTPrior`, replaces the
        log-uniform prior of the additive posterior. A prior that is a `torch.nn.Module` becomes a
        submodule of the layer, so its parameters are trained and saved. ``"kingma"`` is fitted for
        alpha <= 1 only, and ``"lower_bound"`` holds for alpha <= 2.42. For larger alpha their KL
        falls without bound (to -inf where mu = 0), and training diverges: use them with the
        multiplicative posterior and ``max_log_alpha=0.0``.
    generator : torch.Generator, optional
        Draws all noise of the layer, in place of torch's global generator. It is not part of the
        ``state_dict``. A copy or a pickle of the layer has its own generator in the same state. For
        `torch.utils.checkpoint.checkpoint` use `logunif_kl.torch.nn.checkpoint_contexts`. In a
        compiled graph, the compiler chooses the order in which layers draw.

    Attributes
    ----------
    weight, bias : Parameter
        As in `torch.nn.Linear`, with the same initial values from the same seed.
    log_sigma2 or log_alpha : Parameter
        The parameter that sets the variances. You may assign another parameter that broadcasts to
        `weight` or, with correlated noise and for groups, to the original parameter.
    scale, scale_log_sigma2 : Parameter
        With ``posterior="scaled"``, of shape ``(1, in_features)``: the means of the scales, 1 at
        first, and the logarithms of their variances. `weight` and `log_sigma2` are then those of v.

    Raises
    ------
    ValueError
        If an option is not one of its choices, or cannot be combined with another option; if a
        number is not finite; if the last dimension of an input is not `in_features`; if you have
        assigned a `weight`, `log_sigma2` or `log_alpha` of a wrong shape.
    TypeError
        If an option or `bias` is of a wrong type, or if a `dtype` or an input is not real.
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

    With ``posterior="scaled"``, a weight is the product w_ij = z_i v_ij of a scale and a weight, as
    in BC-GNJ ([4]_, Eqs. 6 and 8):

    .. math::

        q(z_i) &= \mathcal N(\mathrm{scale}_i, s_i^2), \qquad
        q(v_{ij}) = \mathcal N(\mu_{ij}, \sigma_{ij}^2) \\
        p(z_i) &= C / \lvert z_i \rvert, \qquad p(v_{ij}) = \mathcal N(0, 1) \\
        \mathrm{KL} &= \sum_i \mathrm{KL}\left(q(z_i) \,\Vert\, p(z)\right)
        + \sum_{ij} \tfrac12 \left[\mu_{ij}^2 + \sigma_{ij}^2 - 1 - \log \sigma_{ij}^2\right]

    The first term is exact; [4]_ approximates it (``penalty="molchanov"``). The mean of w_ij is
    scale_i mu_ij. Given a sample of z_i, the estimator acts on v. As with correlated noise,
    ``"local"`` draws scales for each row of the input. log alpha of all weights of an input is that
    of its scale, log s_i^2 - 2 log|scale_i|, so that a threshold removes the input unit.
    `logunif_kl.torch.nn.to_sparse` removes it from the layer before, too. The authors' code uses
    thresholds from -5 to -2.8, not 3: find one by `logunif_kl.torch.nn.threshold_curve`.

    With the additive posterior and ``sharing="input"`` or ``"output"``, the k weights of a unit are
    one group w with q(w) = N(mu, sigma^2 I) and the prior C/|w|^k. The KL is exact, that of
    `logunif_kl.neg_kl_vector` with alpha = sigma^2/|mu|^2, for k up to 10000. log alpha of all
    weights of the group is log(k sigma^2/|mu|^2), so that a threshold means the same for every k.

    The options are not part of the ``state_dict``. A layer that loads it needs the same
    `max_log_alpha`, `penalty`, `noise` and `estimator`, which change what the parameters mean.

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
    .. [3] Hron, Matthews, Ghahramani, "Variational Gaussian Dropout is not Bayesian" (2017).
    .. [4] Louizos, Ullrich, Welling, "Bayesian Compression for Deep Learning" (2017); the authors'
       code is https://github.com/KarenUllrich/Tutorial_BayesianCompressionForDL.

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
    >>> layer = nn.VariationalLinear(3, 2, posterior="scaled")
    >>> layer.scale_log_sigma2.data[0, 1] = 5.0  # the scale of the second input is noise
    >>> nn.to_deterministic(layer, threshold=3.0).weight[:, 1].detach()
    tensor([0., 0.])
    """

    _lk_plain = torch.nn.Linear

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
        rows = grad.reshape(grad.shape[:-1].numel(), grad.shape[-1])
        d_weight = None
        if wanted[1]:
            # Let addmm multiply by `factor`, because this takes no extra time.
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
        if self._lk_estimator == "per_batch":
            shape = shape[-1:]
        elif self._lk_estimator == "per_example" and input.ndim > 1:
            shape = (shape[0], *[1] * (input.ndim - 2), shape[-1])
        mean, deviation = self._scale_moments(input.dtype)
        return input * (mean + deviation * self._lk_normals(shape, input))

    def _drawn_scales(self) -> Tensor:
        mean, deviation = self._scale_moments(self._lk_stored.dtype)
        return mean + deviation * self._lk_normals(self._lk_stored.shape[-1:], self._lk_stored)

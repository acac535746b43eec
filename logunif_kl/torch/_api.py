"""The public functions for torch tensors."""

from __future__ import annotations

import torch

from .._convention import ZERO_AT_INFINITY
from . import _evaluation

Tensor = torch.Tensor


def neg_kl(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """-KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|: *maximise* it (ELBO sign).

    With alpha = sigma^2/mu^2 and u = 1/(2 alpha) = exp(-log_alpha)/2, in nats ([1]_, Eq. 1)::

        -KL = constant - F(u),    F(u) = u 2F2(1, 1; 3/2, 2; -u)

    The log-uniform prior p is improper, so the constant is a choice. By default -KL vanishes as
    alpha -> inf and is negative elsewhere, as in [2]_, Eq. 14.

    Parameters
    ----------
    log_alpha : Tensor
        The logarithm of alpha, a ratio of *variances*, of any shape: float16, bfloat16, float32 or
        float64, on any device. Integers are promoted to `torch.get_default_dtype`, as by
        `torch.exp`.
    zero_at : float, optional
        The alpha at which -KL is to vanish: ``inf`` by default; ``1.0`` for [3]_, Figure 2.
    log_c : float, optional
        The logarithm of the prior's C, in place of `zero_at`. The constant is then
        (1 + log(pi) - psi(1/2))/2 + log(C), as in [1]_, Eq. 1.
    reduction : {"none", "sum", "mean"}, optional
        What to return: the elements, their sum or their mean. The constant counts once for each
        element. A result of a half type is rounded after the reduction.

    Returns
    -------
    Tensor
        Of the shape, type and device of `log_alpha`, or of no dimensions. Under `torch.autocast`
        half types are returned in float32. The limit is the constant at ``log_alpha=inf`` and -inf
        at ``log_alpha=-inf``. NaN is returned only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` is no dense tensor of real numbers (complex, boolean, sparse, nested, a NumPy
        array, a number, ...), or if `zero_at` or `log_c` is not a real number.
    ValueError
        If `zero_at` is not positive, if `log_c` is not finite, if both are given, if `reduction` is
        none of the three, or if a number is too large for a float.

    See Also
    --------
    kl : the same with the other sign, to be added to a loss.
    neg_kl_normal : from the mean and the variance.
    neg_kl_grad, neg_kl_hess : the first two derivatives.

    Notes
    -----
    Nothing is clipped or sampled. Without a constant the relative error is bounded:
    `logunif_kl.accuracy` lists the worst error found for each type. A constant has an absolute
    error of its own, about a unit in its last place. To a half type it is added in float32, before
    the result is rounded.

    The half types are computed in float32 and rounded at the end. The function can be
    differentiated any number of times, in every transform of `torch.func` and under
    `torch.compile`. Each derivative has a formula of its own. A plain CPU tensor is computed by the
    functions of C on its memory, over `torch.get_num_threads` threads. A reduction then takes no
    memory of the size of the tensor, except for the gradient. The result does not depend on the
    number of threads.

    References
    ----------
    .. [1] Hron, Matthews, Ghahramani, "Variational Gaussian Dropout is not Bayesian" (2017).
    .. [2] Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).
    .. [3] Kingma et al., "Variational Dropout and the Local Reparameterization Trick" (2015).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl
    >>> log_alpha = torch.tensor([-8.0, 0.0, 2.0], requires_grad=True)
    >>> neg_kl(log_alpha, reduction="sum").backward()
    >>> log_alpha.grad
    tensor([0.5002, 0.3624, 0.0647])
    """
    return _evaluation.of_log_alpha(log_alpha, zero_at, log_c, reduction)


def neg_kl_grad(log_alpha: Tensor) -> Tensor:
    """Compute the derivative of -KL(q || p) in log alpha.

    With u = exp(-log_alpha)/2 and D Dawson's function (Hron et al. 2017, Eq. 3; see `neg_kl`)::

        d(-KL)/d log_alpha = u F'(u) = sqrt(u) D(sqrt(u))

    The derivative does not depend on the constant of -KL. It is positive, since -KL increases from
    no noise to pure noise. It tends to 1/2 from above as log_alpha -> -inf, has its maximum 0.6424
    near log_alpha = -1.507, and vanishes like exp(-log_alpha)/2 as log_alpha -> inf.
    `logunif_kl.accuracy` lists the worst error found for each type. It can itself be differentiated
    any number of times.

    Parameters
    ----------
    log_alpha : Tensor
        Of any shape and type that `neg_kl` takes.

    Returns
    -------
    Tensor
        Of the shape, type and device of `log_alpha`. Under `torch.autocast` half types are returned
        in float32. It is 1/2 at -inf and 0 at inf. NaN is returned only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` is no dense tensor of real numbers (complex, boolean, sparse, nested, a NumPy
        array, a number, ...).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_grad
    >>> neg_kl_grad(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([0.5002, 0.3624, 0.0647])
    """
    return _evaluation.derivative(log_alpha, 1)


def neg_kl_hess(log_alpha: Tensor) -> Tensor:
    """Compute the second derivative of -KL(q || p) in log alpha.

    With u and F' as in `neg_kl_grad`, by differentiating Eq. 3 of Hron et al. (2017)::

        d^2(-KL)/d log_alpha^2 = -u (F'(u) + u F''(u)) = -(u/2) (1 + F'(u) - 2 u F'(u))

    The two forms are equal by the differential equation of Dawson's function. Both lose digits by
    cancellation, so the result is computed from neither. It does not depend on the constant of -KL.
    It is positive below log_alpha = -1.507 or so, where the first derivative has its maximum,
    negative above, and vanishes at both ends. `logunif_kl.accuracy` lists the worst error found for
    each type. It can itself be differentiated any number of times.

    Parameters
    ----------
    log_alpha : Tensor
        Of any shape and type that `neg_kl` takes.

    Returns
    -------
    Tensor
        Of the shape, type and device of `log_alpha`. Under `torch.autocast` half types are returned
        in float32. It is 0 at both infinities. NaN is returned only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` is no dense tensor of real numbers (complex, boolean, sparse, nested, a NumPy
        array, a number, ...).

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_hess
    >>> neg_kl_hess(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([ 1.6807e-04, -2.5000e-01, -6.1804e-02])
    """
    return _evaluation.derivative(log_alpha, 2)


def neg_kl_normal(
    mu: Tensor | float,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """-KL(q || p) of N(mu, sigma^2), from mu and log sigma^2: *maximise* it (ELBO sign).

    With F and the constant as for `neg_kl` (Hron et al. 2017, Eq. 1)::

        -KL = constant - F(u),    u = mu^2/(2 sigma^2)

    This is the additive parametrisation of Molchanov et al. (2017), without the epsilon and the
    clipping that their Eq. 14 needs: u is formed without a logarithm. -KL depends on
    log_alpha = log_sigma2 - 2 log|mu| alone, so the sign of mu and the common scale of mu and sigma
    do not matter. Value and derivatives are exact at mu = 0, where both first derivatives are 0.
    `kl_normal` has the other sign, to be added to a loss.

    `logunif_kl.accuracy` lists the worst error found for each type. It is differentiable as
    `neg_kl` is. In float64, gradients that are wanted are computed with the value and kept for the
    backward pass. In float32 and the half types, where kernels serve the tensors, only the
    arguments are kept.

    Parameters
    ----------
    mu, log_sigma2 : Tensor or float
        Means, of either sign, and logarithms of the variances. They are of any type that `neg_kl`
        takes, and are broadcast against each other. They are promoted as by `torch.result_type`.
        One of them may be a number of Python or NumPy, which takes the type of the other.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted type, or of no dimensions. Under `torch.autocast`
        half types are returned in float32. At mu = 0 or log_sigma2 = inf the limit is the constant;
        at infinite mu or log_sigma2 = -inf it is -inf. NaN is returned where both limits meet
        (mu = 0 with log_sigma2 = -inf, infinite mu with log_sigma2 = inf), and where NaN was given.

    Raises
    ------
    TypeError
        As for `neg_kl`, if neither argument is a tensor, if a tensor is given with a list or with
        an array of another library, and if a DTensor is given with a plain tensor.
    ValueError
        As for `neg_kl`.
    RuntimeError
        If the tensors are on different devices (a CPU tensor of no dimensions may be beside any),
        or if their shapes do not broadcast.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import neg_kl_normal
    >>> mu = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
    >>> neg_kl_normal(mu, 0.0, reduction="sum").backward()
    >>> mu.grad
    tensor([-0.0000, -0.7248,  0.7248])
    """
    return _evaluation.of_normal(mu, log_sigma2, zero_at, log_c, reduction)


def kl(
    log_alpha: Tensor,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """KL(q || p), to be *added to a loss*: ``-neg_kl(log_alpha, ...)``.

    KL = F(u) - constant, with F and u as for `neg_kl` (Hron et al. 2017, Eq. 1). All but the sign
    is as documented for `neg_kl`, the accuracy included.

    Parameters
    ----------
    log_alpha : Tensor
        The logarithm of alpha = sigma^2/mu^2, of any shape and type that `neg_kl` takes.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: KL vanishes at alpha = `zero_at`, by default as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    Tensor
        Of the shape, type and device of `log_alpha`, or of no dimensions.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import kl
    >>> kl(torch.tensor([0.0, 0.0]), reduction="sum")
    tensor(0.8534)
    """
    return _evaluation.of_log_alpha(log_alpha, zero_at, log_c, reduction, negated=True)


def kl_normal(
    mu: Tensor | float,
    log_sigma2: Tensor | float,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Tensor:
    """KL(q || p) of N(mu, sigma^2), to be *added to a loss*: ``-neg_kl_normal(...)``.

    KL = F(u) - constant, with F and u as for `neg_kl_normal` (Hron et al. 2017, Eq. 1). All but the
    sign is as documented for `neg_kl_normal`, the accuracy included.

    Parameters
    ----------
    mu, log_sigma2 : Tensor or float
        Means, of either sign, and logarithms of the variances, of any type that `neg_kl` takes.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: by default KL vanishes as alpha -> inf.
    reduction : {"none", "sum", "mean"}, optional
        What to return, as for `neg_kl`.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted type, or of no dimensions.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As for `neg_kl_normal`.

    Examples
    --------
    >>> import torch
    >>> from logunif_kl.torch import kl_normal
    >>> kl_normal(torch.tensor([0.0, 1.0]), 0.0)
    tensor([0.0000, 0.4267])
    """
    return _evaluation.of_normal(mu, log_sigma2, zero_at, log_c, reduction, negated=True)

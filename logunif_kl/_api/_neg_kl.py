"""The public functions that compute -KL of real weights, to be maximised, and derivatives."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from .._convention import ZERO_AT_INFINITY


def neg_kl(
    log_alpha: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    r"""-KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|: *maximise* it (ELBO sign).

    With alpha = sigma^2/mu^2 and u = 1/(2 alpha) = exp(-log_alpha)/2, in nats ([1]_, Eq. 1):

    .. math::

        -\mathrm{KL} = \mathrm{constant} - F(u), \qquad
        F(u) = u\, {}_2F_2\left(1, 1; \tfrac32, 2; -u\right)

    The log-uniform prior p is improper, so the constant is a choice. By default -KL tends to 0 as
    alpha -> inf and is negative elsewhere, as in [2]_, Eq. 14.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha, a ratio of *variances*, of any shape. It may be a Python number, an
        array of NumPy, dask, xarray, pandas, polars or an array-API namespace, or a tensor of
        PyTorch, JAX, TensorFlow, Keras, MLX, autograd, PaddlePaddle, PyTensor or tinygrad. The
        types are float16, float32, float64 and, for tensors, bfloat16. The result for a tensor can
        be differentiated any number of times. NumPy, PyTorch and JAX convert integers to the type
        that their own `exp` returns. An array-API namespace converts integers to its default real
        type. The other frameworks refuse integers.
    zero_at : float, optional
        The alpha at which -KL is zero: ``inf`` by default; ``1.0`` for [3]_, Figure 2. It must be a
        Python number, not a value that a framework traces.
    log_c : float, optional
        The logarithm of the prior's C, instead of `zero_at`. The constant is then
        (1 + log(pi) - psi(1/2))/2 + log(C), as in [1]_, Eq. 1.
    reduction : {"none", "sum", "mean"}, optional
        What to return: the elements, their sum or their mean. The constant is added to each element
        before the reduction. A float16 or bfloat16 result is rounded after the reduction.

    Returns
    -------
    array or scalar
        An array of the shape, type and library of `log_alpha`, on the same device. A sum or a mean
        has no dimensions. The result is the constant at ``log_alpha=inf``, -inf at
        ``log_alpha=-inf``, and NaN only where `log_alpha` is NaN.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers of at most 64 bits (complex, boolean, object,
        ...), if it is a list of tensors or a tensor of a framework that the library does not
        support, or if `zero_at` or `log_c` is not a real number.
    ValueError
        If `zero_at` is not positive, if `log_c` is not finite, if both are given, if `reduction` is
        not one of the three, if a list cannot be read as one array, or if a number is too large for
        a float.

    See Also
    --------
    kl : KL, the negative of this function, to be added to a loss.
    neg_kl_normal : -KL from the mean and the variance.
    neg_kl_grad, neg_kl_hess : the first two derivatives.
    logunif_kl.log_alpha : log alpha from a dropout rate and other parameters.

    Notes
    -----
    Nothing is clipped or sampled. `logunif_kl.accuracy` lists the worst error found for each type,
    before a constant is added. The constant is accurate to about one unit in its last place. It is
    added in float32 or float64, before a result of a half type is rounded.

    With the constant 0, types below float64 are computed in float64 and rounded once, or in float32
    if the array's namespace has no float64 on its device. A tensor is passed to the function of the
    same name in `logunif_kl.torch`, `logunif_kl.jax` or `logunif_kl.tensorflow`. The pages of these
    modules list differences from this description.

    Sums and means of NumPy, dask, xarray, pandas and polars arrays are computed in float64 and then
    rounded. Masked elements are left out, NaN is not skipped, and a missing value counts as NaN.

    References
    ----------
    .. [1] Hron, Matthews, Ghahramani, "Variational Gaussian Dropout is not Bayesian" (2017).
    .. [2] Molchanov, Ashukha, Vetrov, "Variational Dropout Sparsifies Deep Neural Networks" (2017).
    .. [3] Kingma et al., "Variational Dropout and the Local Reparameterization Trick" (2015).

    Examples
    --------
    >>> import numpy as np
    >>> import logunif_kl as lk
    >>> float(lk.neg_kl(0.0))
    -0.4266856042960448
    >>> lk.neg_kl(np.array([-np.inf, -8.0, 0.0, 2.0]))
    array([       -inf, -4.63501361, -0.4266856 , -0.06616849])
    >>> lk.neg_kl([0.0, np.inf], zero_at=1.0)
    array([0.       , 0.4266856])
    >>> round(float(lk.neg_kl([0.0, 2.0], reduction="sum")), 4)
    -0.4929
    """
    return _dispatch.value("neg_kl", zero_at, log_c, reduction, log_alpha=log_alpha)


def neg_kl_grad(log_alpha: Any) -> Any:
    r"""Compute the derivative of -KL(q || p) in log alpha.

    With u = exp(-log_alpha)/2 and D Dawson's function (Hron et al. 2017, Eq. 3; see `neg_kl`):

    .. math::

        \frac{d(-\mathrm{KL})}{d \log\alpha} = u F'(u) = \sqrt{u}\, D(\sqrt{u})

    The derivative does not depend on the constant of -KL. The derivative is positive, so -KL
    increases with alpha. It tends to 1/2 from above as log_alpha -> -inf, has its maximum 0.6424
    near log_alpha = -1.507, and decays like exp(-log_alpha)/2 as log_alpha -> inf.
    `logunif_kl.accuracy` lists the worst error found for each type. The result for a tensor can
    itself be differentiated any number of times.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha, of any shape and type that `neg_kl` takes.

    Returns
    -------
    array or scalar
        An array of the shape, type and library of `log_alpha`, on its device. The derivative is 1/2
        at -inf and 0 at inf, and NaN only where `log_alpha` is NaN.

    Raises
    ------
    TypeError, ValueError
        The same as `neg_kl` raises for `log_alpha`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.neg_kl_grad(0.0)), 12)
    0.362389229504
    >>> float(lk.neg_kl_grad(float("-inf")))
    0.5
    """
    return _dispatch.derivative("neg_kl_grad", log_alpha)


def neg_kl_hess(log_alpha: Any) -> Any:
    r"""Compute the second derivative of -KL(q || p) in log alpha.

    With u and F' as in `neg_kl_grad`, differentiating Eq. 3 of Hron et al. (2017) gives:

    .. math::

        \frac{d^2(-\mathrm{KL})}{d (\log\alpha)^2} = -u \left(F'(u) + u F''(u)\right)
        = -\frac{u}{2} \left(1 + F'(u) - 2 u F'(u)\right)

    The two forms are equal by the differential equation of Dawson's function. Both lose digits by
    cancellation, so this function uses neither. The result does not depend on the constant of -KL.
    The first derivative has its maximum near log_alpha = -1.507. The second derivative is positive
    below that point, negative above, and tends to 0 at both ends. `logunif_kl.accuracy` lists the
    worst error found for each type. The result for a tensor can be differentiated any number of
    times.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha, of any shape and type that `neg_kl` takes.

    Returns
    -------
    array or scalar
        An array of the shape, type and library of `log_alpha`, on its device. The derivative is 0
        at both infinities, and NaN only where `log_alpha` is NaN.

    Raises
    ------
    TypeError, ValueError
        The same as `neg_kl` raises for `log_alpha`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.neg_kl_hess(0.0)), 12)
    -0.25
    """
    return _dispatch.derivative("neg_kl_hess", log_alpha)


def neg_kl_normal(
    mu: Any,
    log_sigma2: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    reduction: str = "none",
) -> Any:
    r"""-KL(q || p) of N(mu, sigma^2), from mu and log sigma^2: *maximise* it (ELBO sign).

    With F and the constant of `neg_kl` (Hron et al. 2017, Eq. 1):

    .. math::

        -\mathrm{KL} = \mathrm{constant} - F(u), \qquad u = \frac{\mu^2}{2 \sigma^2}

    This is the additive parametrisation of Molchanov et al. (2017). It needs neither the epsilon
    nor the clipping of their Eq. 14, because u is formed without a logarithm. -KL depends only on
    log_alpha = log_sigma2 - 2 log|mu|, so the sign of mu and a common factor of mu and sigma do
    not matter. Value and derivatives are exact at mu = 0, where the first derivatives in mu and
    log_sigma2 are 0. `kl_normal` has the other sign, to be added to a loss.

    `logunif_kl.accuracy` lists the worst error found for each type. As in `neg_kl`, types below
    float64 are computed in float64 and rounded once.

    Parameters
    ----------
    mu, log_sigma2 : array_like or array
        Means, of either sign, and logarithms of the variances, of any type that `neg_kl` takes.
        They are broadcast against each other. Both must come from one library and be on one device,
        unless one of them is a number.
    zero_at, log_c, reduction : optional
        See `neg_kl`.

    Returns
    -------
    array or scalar
        An array of the broadcast shape, and of the type and library of the arguments. The result is
        the constant where mu = 0 or log_sigma2 = inf, and -inf where mu = inf, mu = -inf or
        log_sigma2 = -inf. It is NaN for mu = 0 with log_sigma2 = -inf, for infinite mu with
        log_sigma2 = inf, and where an argument is NaN.

    Raises
    ------
    TypeError
        For the reasons in `neg_kl`, and if the arguments come from libraries that do not work
        together: tensors of two frameworks, or a tensor and a NumPy array.
    ValueError
        For the reasons in `neg_kl`, if the shapes do not broadcast, and if arrays of JAX or of an
        array-API namespace are on different devices.
    RuntimeError
        If PyTorch tensors are on different devices, or if their shapes do not broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> import logunif_kl as lk
    >>> lk.neg_kl_normal(np.array([-1.0, 1.0]), 0.0)
    array([-0.4266856, -0.4266856])
    >>> lk.neg_kl_normal(0.0, -10.0) == 0.0
    np.True_
    """
    arguments = {"mu": mu, "log_sigma2": log_sigma2}
    return _dispatch.value("neg_kl_normal", zero_at, log_c, reduction, **arguments)

"""The public functions of -KL: compute for the type of the argument, then apply the convention."""

from __future__ import annotations

from typing import Any

from ._adapters import adapter
from ._arithmetic import functions
from ._convention import ZERO_AT_INFINITY, additive_constant
from ._dispatch import Operation, evaluate
from ._numpy import ufuncs


def _normal_value(xp: Any, mu: Any, log_sigma2: Any) -> Any:
    return functions.neg_kl_normal(xp, mu, log_sigma2)[0]


_NEG_KL = Operation(ufuncs.neg_kl, functions.neg_kl)
_NEG_KL_GRAD = Operation(ufuncs.neg_kl_grad, functions.neg_kl_grad)
_NEG_KL_HESS = Operation(ufuncs.neg_kl_hess, functions.neg_kl_hess)
_NEG_KL_NORMAL = Operation(ufuncs.neg_kl_normal_value, _normal_value)


def neg_kl(log_alpha: Any, *, zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None) -> Any:
    """-KL(q || p) for q(w) = N(mu, sigma^2), p(w) = C/|w|: *maximise* it (ELBO sign).

    With alpha = sigma^2/mu^2, u = 1/(2 alpha) = exp(-log_alpha)/2 and
    F(u) = u 2F2(1, 1; 3/2, 2; -u), [1]_ Eq. 1::

        -KL = constant - F(u)

    The log-uniform prior p is improper, so the constant is a choice. By default -KL vanishes as
    alpha -> inf and is negative elsewhere, which is the choice of [2]_.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha, a ratio of *variances*: of any shape; a Python number, a NumPy,
        dask, xarray, pandas or array-API array of float16, float32 or float64, or a tensor of
        PyTorch, JAX or TensorFlow, of bfloat16 as well, which keeps its derivatives of any order
        and its device. Integers are promoted as by `numpy.exp`; those of another array-API
        namespace, to its default real type; those of a framework, as its own exponential does.
    zero_at : float, optional
        The alpha at which -KL is to vanish: ``inf`` by default; ``1.0`` for [3]_, Figure 2.
    log_c : float, optional
        The logarithm of the prior's C instead. Then, as in [1]_, Eq. 1,
        -KL = 1/2 log(pi e) - 1/2 psi(1/2) + log C - F(u).

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`, on its device. The limit is the constant at
        ``log_alpha=inf`` and -inf at ``log_alpha=-inf``; NaN only where NaN was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers of at most 64 bits (complex, boolean, object,
        ...), if it is a list of tensors, or a tensor of a framework without an adapter here, or if
        `zero_at` or `log_c` is not a real number.
    ValueError
        If `zero_at` and `log_c` are both given, if `zero_at` is not positive, or if `log_c` is not
        finite.

    See Also
    --------
    kl : the same with the other sign, to be added to a loss.
    neg_kl_normal : from the mean and the variance.
    logunif_kl.log_alpha : from a dropout rate, and others.

    Notes
    -----
    Nothing is clipped or sampled. The types below float64 are computed in float64 and rounded once;
    arrays of a namespace without float64 on their device, and tensors of a framework, in float32.
    Without a constant the relative error is bounded: `logunif_kl.accuracy` lists the worst found
    for each type. A constant has an absolute error of its own, about a unit in its last place; to
    float16 it is added in float32, before the result is rounded.

    A tensor is computed by `logunif_kl.torch`, `logunif_kl.jax` or `logunif_kl.tensorflow`, where
    the functions of the same names have ``reduction="none" | "sum" | "mean"`` besides.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).
    .. [2] D. Molchanov, A. Ashukha, D. Vetrov, "Variational Dropout Sparsifies Deep Neural
       Networks" (2017), Eq. 14.
    .. [3] D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local
       Reparameterization Trick" (2015).

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
    """
    module = adapter(log_alpha=log_alpha)
    if module is not None:
        return module.neg_kl(log_alpha, zero_at=zero_at, log_c=log_c)
    constant = additive_constant(zero_at, log_c)
    return evaluate(_NEG_KL, constant, log_alpha=log_alpha)


def neg_kl_grad(log_alpha: Any) -> Any:
    """Compute the derivative of -KL(q || p) in log alpha.

    With u = exp(-log_alpha)/2 and D Dawson's function ([1]_, Eq. 3)::

        d(-KL)/d log_alpha = u F'(u) = sqrt(u) D(sqrt(u))

    No convention enters: a constant has no derivative. It is positive: -KL increases from no noise
    to pure noise. It tends to 1/2 from above as log_alpha -> -inf, has its maximum 0.6424 near
    log_alpha = -1.507, and vanishes like exp(-log_alpha)/2 as log_alpha -> inf.

    Parameters
    ----------
    log_alpha : array_like or array
        As for `neg_kl`: tensors of PyTorch, JAX and TensorFlow too, which remain differentiable.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`; 1/2 at -inf, 0 at inf, NaN only where NaN
        was given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers of at most 64 bits, or as for `neg_kl`.

    Notes
    -----
    `logunif_kl.accuracy` lists the worst relative error found for each type.

    References
    ----------
    .. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
       Bayesian" (2017).

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.neg_kl_grad(0.0)), 12)
    0.362389229504
    >>> float(lk.neg_kl_grad(float("-inf")))
    0.5
    """
    module = adapter(log_alpha=log_alpha)
    if module is not None:
        return module.neg_kl_grad(log_alpha)
    return evaluate(_NEG_KL_GRAD, log_alpha=log_alpha)


def neg_kl_hess(log_alpha: Any) -> Any:
    """Compute the second derivative of -KL(q || p) in log alpha.

    With u = exp(-log_alpha)/2 and F' as in `neg_kl_grad`::

        d^2(-KL)/d log_alpha^2 = -(u/2) (1 + F'(u) - 2 u F'(u))

    by the differential equation of Dawson's function. It is positive below log_alpha = -1.507 or
    so, where the first derivative has its maximum, negative above, and vanishes at both ends.

    Parameters
    ----------
    log_alpha : array_like or array
        As for `neg_kl`: tensors of PyTorch, JAX and TensorFlow too, which remain differentiable.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`; 0 at both infinities, NaN only where NaN was
        given.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers of at most 64 bits, or as for `neg_kl`.

    Notes
    -----
    `logunif_kl.accuracy` lists the worst relative error found for each type.

    References
    ----------
    .. [1] The derivative of Eq. 3 of J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational
       Gaussian Dropout is not Bayesian" (2017).

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.neg_kl_hess(0.0)), 12)
    -0.25
    """
    module = adapter(log_alpha=log_alpha)
    if module is not None:
        return module.neg_kl_hess(log_alpha)
    return evaluate(_NEG_KL_HESS, log_alpha=log_alpha)


def neg_kl_normal(
    mu: Any, log_sigma2: Any, *, zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None
) -> Any:
    """-KL(q || p) of N(mu, sigma^2), from mu and log sigma^2: *maximise* it (ELBO sign).

    The additive parametrisation of Molchanov et al. (2017), with neither the epsilon nor the
    clipping that their formula needs: u = mu^2/(2 sigma^2) is formed without a logarithm, and
    mu = 0 is exact. Formula and constant are those of `neg_kl`; the sign of mu and the common
    scale of mu and sigma do not matter.

    Parameters
    ----------
    mu : array_like or array
        Means, of either sign: any type that `neg_kl` takes, tensors of PyTorch, JAX and TensorFlow
        included.
    log_sigma2 : array_like or array
        Logarithms of the variances, of the same library and on the same device as `mu`, or a
        number; broadcast against `mu`.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.

    Returns
    -------
    array or scalar
        Of the broadcast shape. At mu = 0 or log_sigma2 = inf the limit is the constant; at
        infinite mu or log_sigma2 = -inf it is -inf. NaN where both limits meet (mu = 0 with
        log_sigma2 = -inf, both infinite), and where NaN was given.

    Raises
    ------
    TypeError
        As for `neg_kl`, and if the arguments come from libraries that do not work together: tensors
        of two frameworks, or a tensor and a NumPy array.
    ValueError
        As for `neg_kl`, if the shapes do not broadcast, and if JAX's arrays are committed to
        different devices.
    RuntimeError
        In place of the two that PyTorch has: if tensors are on different devices, or their shapes
        do not broadcast.

    See Also
    --------
    kl_normal : the same with the other sign, to be added to a loss.
    logunif_kl.torch, logunif_kl.jax, logunif_kl.tensorflow : the same with ``reduction=``.

    Examples
    --------
    >>> import numpy as np
    >>> import logunif_kl as lk
    >>> lk.neg_kl_normal(np.array([-1.0, 1.0]), 0.0)
    array([-0.4266856, -0.4266856])
    >>> lk.neg_kl_normal(0.0, -10.0) == 0.0
    np.True_
    """
    module = adapter(mu=mu, log_sigma2=log_sigma2)
    if module is not None:
        return module.neg_kl_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c)
    constant = additive_constant(zero_at, log_c)
    return evaluate(_NEG_KL_NORMAL, constant, mu=mu, log_sigma2=log_sigma2)


def kl(log_alpha: Any, *, zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None) -> Any:
    """KL(q || p), to be *added to a loss*: ``-neg_kl(log_alpha, ...)``.

    The documentation of `neg_kl` holds for all but the sign; ``reduction=`` is an argument of the
    functions of this name in `logunif_kl.torch`, `logunif_kl.jax` and `logunif_kl.tensorflow`.

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha = sigma^2/mu^2, a ratio of variances: any type that `neg_kl` takes,
        tensors of PyTorch, JAX and TensorFlow included.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`: KL vanishes at alpha = `zero_at`, by default as alpha -> inf.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`.

    Raises
    ------
    TypeError, ValueError
        As for `neg_kl`.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.kl(0.0)), 13)
    0.426685604296
    """
    module = adapter(log_alpha=log_alpha)
    if module is not None:
        return module.kl(log_alpha, zero_at=zero_at, log_c=log_c)
    return _negated(neg_kl(log_alpha, zero_at=zero_at, log_c=log_c))


def kl_normal(
    mu: Any, log_sigma2: Any, *, zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None
) -> Any:
    """KL(q || p) of N(mu, sigma^2), to be *added to a loss*: ``-neg_kl_normal(...)``.

    The documentation of `neg_kl_normal` holds for all but the sign; ``reduction=`` is an argument
    of the functions of this name in `logunif_kl.torch`, `logunif_kl.jax` and
    `logunif_kl.tensorflow`.

    Parameters
    ----------
    mu : array_like or array
        Means, of either sign: any type that `neg_kl` takes, tensors of PyTorch, JAX and TensorFlow
        included.
    log_sigma2 : array_like or array
        Logarithms of the variances, of the same library and on the same device as `mu`, or a
        number; broadcast against `mu`.
    zero_at, log_c : float, optional
        The constant, as for `neg_kl`.

    Returns
    -------
    array or scalar
        Of the broadcast shape.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As for `neg_kl_normal`: tensors of two frameworks, or on two devices, among others.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> round(float(lk.kl_normal(1.0, 0.0)), 13)
    0.426685604296
    """
    module = adapter(mu=mu, log_sigma2=log_sigma2)
    if module is not None:
        return module.kl_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c)
    return _negated(neg_kl_normal(mu, log_sigma2, zero_at=zero_at, log_c=log_c))


# The result is fresh, so this works in place where the array allows it.


def _negated(result: Any) -> Any:
    result *= -1.0
    return result

"""Docstrings of the ufuncs of the C extension, and of their replacements in Python.

NumPy or `BlockedUFunc` puts the call signature above each docstring.
"""

_EXTRA = """out : ndarray, tuple of ndarray or None, optional
    Where to store the result; by default a new array.
where : array_like of bool, optional
    Which elements to compute; the others keep their value in `out`.
**kwargs
    ``dtype``, ``casting``, ``order``, ``subok``, ``signature``: as for every `numpy.ufunc`.
"""

_DTYPES = """float16, float32 and float64 give a result of the same type. Integers and booleans are
promoted as in `numpy.exp`. Complex numbers, long doubles and objects raise `TypeError`. No input
raises a floating-point warning. `logunif_kl.accuracy` lists the worst errors found, in units in
the last place."""

_CONVERTED = """Arrays and tensors of other libraries become NumPy arrays, and their
derivative is lost without an error. For tensors call `logunif_kl.neg_kl`."""

_TEXTS = {
    "kl_gap": f"""
The gap of the log-uniform prior, F(u) = KL(q || p) - min KL.

For q(w) = N(mu, sigma^2), p(w) = C/|w| and u = mu^2/(2 sigma^2) = 1/(2 alpha)::

    F(u) = u 2F2(1, 1; 3/2, 2; -u)
         = integral from 0 to u of D(sqrt t)/sqrt t dt,     D = Dawson's function

F increases from F(0) = 0. F is close to u for small u, and to (log(4 u) + gamma)/2 for large u,
where gamma is Euler's constant.

Parameters
----------
u : array_like
    The argument, positional only: mu^2/(2 sigma^2) >= 0, of any shape.
{_EXTRA}
Returns
-------
ndarray or scalar
    F(u), with the shape of `u`. F(+-0) = 0 and F(inf) = inf. NaN where u < 0 or u is NaN.

See Also
--------
kl_gap_grad, kl_gap_hess : the derivatives of F.
logunif_kl.neg_kl : -F(u) plus a constant, as a function of log alpha.

Notes
-----
{_DTYPES}

{_CONVERTED}

References
----------
.. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
   Bayesian" (2017), Eq. 1 and 2.

Examples
--------
>>> from logunif_kl.special import kl_gap
>>> kl_gap([0.0, 0.5, 1.0, 10.0])
array([0.        , 0.4266856 , 0.73944163, 2.10571516])
""",
    "kl_gap_grad": f"""
The first derivative of the gap, F'(u).

::

    F'(u) = D(sqrt u)/sqrt u = M(1; 3/2; -u)

where D is Dawson's function and M is Kummer's function. F' decreases from F'(0) = 1. F' is close to
1/(2 u) for large u, and greater than 1/(1 + 2 u) for every u > 0.

Parameters
----------
u : array_like
    The argument, positional only: mu^2/(2 sigma^2) >= 0, of any shape.
{_EXTRA}
Returns
-------
ndarray or scalar
    F'(u), with the shape of `u`. F'(+-0) = 1 and F'(inf) = 0. NaN where u < 0 or u is NaN.

See Also
--------
kl_gap, kl_gap_hess
logunif_kl.neg_kl_grad : u F'(u), the derivative of -KL in log alpha.

Notes
-----
{_DTYPES}

{_CONVERTED}

References
----------
.. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
   Bayesian" (2017), Eq. 3.

Examples
--------
>>> from logunif_kl.special import kl_gap_grad
>>> kl_gap_grad([0.0, 0.5, float("inf")])
array([1.        , 0.72477846, 0.        ])
""",
    "kl_gap_hess": f"""
The second derivative of the gap, F''(u).

::

    2 u F''(u) = 1 - (1 + 2 u) F'(u)

The right-hand side loses digits by cancellation, so F'' is computed from its own approximation.
F'' increases from F''(0) = -2/3 to 0, and is close to -1/(2 u^2) for large u.

Parameters
----------
u : array_like
    The argument, positional only: mu^2/(2 sigma^2) >= 0, of any shape.
{_EXTRA}
Returns
-------
ndarray or scalar
    F''(u), with the shape of `u`. F''(+-0) = -2/3 and F''(inf) = 0. NaN where u < 0 or u is NaN.

See Also
--------
kl_gap, kl_gap_grad
logunif_kl.neg_kl_hess : the second derivative of -KL in log alpha.

Notes
-----
{_DTYPES}

{_CONVERTED}

References
----------
.. [1] The derivative of Eq. 3 of J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational
   Gaussian Dropout is not Bayesian" (2017), by the differential equation D'(z) = 1 - 2 z D(z).

Examples
--------
>>> from logunif_kl.special import kl_gap_hess
>>> kl_gap_hess([0.0, 0.5, 1.0])
array([-0.66666667, -0.44955692, -0.30711926])
""",
    "neg_kl": """
-KL(q || p) = -F(exp(-x)/2) for x = log alpha, which is zero at alpha = inf.

`logunif_kl.neg_kl` calls this ufunc, and documents F.
""",
    "neg_kl_grad": """
The derivative of -KL in x = log alpha: u F'(u) at u = exp(-x)/2.

`logunif_kl.neg_kl_grad` calls this ufunc, and documents it.
""",
    "neg_kl_hess": """
The second derivative of -KL in x = log alpha: -(u/2)(1 + F'(u) - 2 u F'(u)) at u = exp(-x)/2.

`logunif_kl.neg_kl_hess` calls this ufunc, and documents it.
""",
    "kl": """
KL(q || p) = F(exp(-x)/2) for x = log alpha, which is zero at alpha = inf.

`logunif_kl.kl` calls this ufunc, and documents it.
""",
    "neg_kl_normal_value": """
-KL(q || p) of q(w) = N(mu, sigma^2): the first result of `neg_kl_normal_and_grad`, in less time.

`logunif_kl.neg_kl_normal` calls this ufunc, and documents it.
""",
    "kl_normal": """
KL(q || p) of q(w) = N(mu, sigma^2) from mu and log sigma^2, which is zero at alpha = inf.

`logunif_kl.kl_normal` calls this ufunc, and documents it.
""",
    "neg_kl_normal_and_grad": f"""
-KL(q || p) of q(w) = N(mu, sigma^2) and both its derivatives, in one pass.

With u = mu^2 exp(-log_sigma2)/2 and F as in `kl_gap`::

    value         -F(u)
    d_mu          -F'(u) mu exp(-log_sigma2)
    d_log_sigma2  u F'(u)

The constant of -KL is chosen so that -KL tends to 0 as alpha -> inf (``zero_at=inf``). The
derivatives do not depend on the constant.

Parameters
----------
mu : array_like
    The mean.
log_sigma2 : array_like
    The logarithm of the variance, which is broadcast with `mu`.
{_EXTRA}
Returns
-------
value, d_mu, d_log_sigma2 : ndarray or scalar
    At mu = 0 the three results are 0, 0, 0 for every log_sigma2 > -inf. At log_sigma2 = -inf they
    are -inf, -1/mu, 1/2 for every mu != 0. All three are NaN at mu = 0 with log_sigma2 = -inf, and
    where mu is infinite and log_sigma2 = inf.

Notes
-----
Squares and exponentials overflow or underflow only if u does, and no epsilon is added.
{_DTYPES}

For dask arrays, without options such as ``out=``, the three results are lazy arrays that are
computed in one pass over the blocks. For arrays of xarray that hold dask arrays, call::

    xarray.apply_ufunc(
        neg_kl_normal_and_grad, mu, log_sigma2, dask="allowed", output_core_dims=[[], [], []]
    )

References
----------
.. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
   Bayesian" (2017), Eq. 1 and 3.

Examples
--------
>>> from logunif_kl.special import neg_kl_normal_and_grad
>>> value, d_mu, d_log_sigma2 = neg_kl_normal_and_grad([0.0, 0.5], -2.0)
>>> value
array([-0.        , -0.69743669])
>>> d_mu
array([-0.        , -2.07712935])
>>> d_log_sigma2
array([0.        , 0.51928234])
""",
}

DOCS = {name: text.strip() for name, text in _TEXTS.items()}

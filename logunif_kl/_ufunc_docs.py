"""Docstrings of the ufuncs, for the C extension and for the Python fallback alike.

NumPy writes the call signature above each of them.
"""

_EXTRA = """out : ndarray, tuple of ndarray or None, optional
    Where to write; a fresh array by default.
where : array_like of bool, optional
    Elements to compute; the others keep what `out` holds.
**kwargs
    ``dtype``, ``casting``, ``order``, ``subok``, ``signature``: as for every `numpy.ufunc`.
"""

_DTYPES = """float16, float32 and float64 have loops of their own and give results of their own
type; integers and booleans are promoted as by `numpy.exp`; complex numbers, long doubles and
objects are refused with a `TypeError`. No floating-point warning is raised for any input. The
worst errors found, in units in the last place, are rows of `logunif_kl._claims`."""

KL_GAP = f"""
The gap of the log-uniform prior, F(u) = KL(q || p) - min KL.

For q(w) = N(mu, sigma^2), p(w) = C/|w| and u = mu^2/(2 sigma^2) = 1/(2 alpha)::

    F(u) = u 2F2(1, 1; 3/2, 2; -u)
         = integral from 0 to u of D(sqrt t)/sqrt t dt,     D = Dawson's function

F increases from F(0) = 0, as u at first and as (log(4 u) + gamma)/2 in the end.

Parameters
----------
u : array_like
    The argument, positional only: mu^2/(2 sigma^2) >= 0, of any shape.
{_EXTRA}
Returns
-------
ndarray or scalar
    F(u), of the shape of `u`. F(+-0) = 0, F(inf) = inf, and NaN for u < 0 and for NaN.

See Also
--------
kl_gap_grad, kl_gap_hess : its derivatives.
logunif_kl.neg_kl : -F(u) and a constant, in the natural variable log alpha.

Notes
-----
{_DTYPES}

References
----------
.. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
   Bayesian" (2017), Eq. 1 and 2.

Examples
--------
>>> from logunif_kl.special import kl_gap
>>> kl_gap([0.0, 0.5, 1.0, 10.0])
array([0.        , 0.4266856 , 0.73944163, 2.10571516])
"""

KL_GAP_GRAD = f"""
The first derivative of the gap, F'(u).

::

    F'(u) = D(sqrt u)/sqrt u = M(1; 3/2; -u)

with D Dawson's function and M Kummer's. F' decreases from F'(0) = 1, as 1/(2 u) in the end, and
stays above 1/(1 + 2 u).

Parameters
----------
u : array_like
    The argument, positional only: mu^2/(2 sigma^2) >= 0, of any shape.
{_EXTRA}
Returns
-------
ndarray or scalar
    F'(u), of the shape of `u`. F'(+-0) = 1, F'(inf) = 0, and NaN for u < 0 and for NaN.

See Also
--------
kl_gap, kl_gap_hess
logunif_kl.neg_kl_grad : u F'(u), the derivative of -KL in log alpha.

Notes
-----
{_DTYPES}

References
----------
.. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
   Bayesian" (2017), Eq. 3.

Examples
--------
>>> from logunif_kl.special import kl_gap_grad
>>> kl_gap_grad([0.0, 0.5, float("inf")])
array([1.        , 0.72477846, 0.        ])
"""

KL_GAP_HESS = f"""
The second derivative of the gap, F''(u).

::

    2 u F''(u) = 1 - (1 + 2 u) F'(u)

which cancels wherever it is evaluated as it stands; this function has an approximant of its own.
F'' rises from F''(0) = -2/3 to 0, as -1/(2 u^2) in the end.

Parameters
----------
u : array_like
    The argument, positional only: mu^2/(2 sigma^2) >= 0, of any shape.
{_EXTRA}
Returns
-------
ndarray or scalar
    F''(u), of the shape of `u`. F''(+-0) = -2/3, F''(inf) = 0, and NaN for u < 0 and for NaN.

See Also
--------
kl_gap, kl_gap_grad
logunif_kl.neg_kl_hess : the second derivative of -KL in log alpha.

Notes
-----
{_DTYPES}

References
----------
.. [1] The derivative of Eq. 3 of J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational
   Gaussian Dropout is not Bayesian" (2017), by the differential equation D'(z) = 1 - 2 z D(z).

Examples
--------
>>> from logunif_kl.special import kl_gap_hess
>>> kl_gap_hess([0.0, 0.5, 1.0])
array([-0.66666667, -0.44955692, -0.30711926])
"""

NEG_KL = """
-F(exp(-x)/2): -KL(q || p) in x = log alpha, with the constant that makes it vanish at alpha = inf.

Behind `logunif_kl.neg_kl`, which documents it.
"""

NEG_KL_GRAD = """
u F'(u) at u = exp(-x)/2: the derivative of -KL in x = log alpha.

Behind `logunif_kl.neg_kl_grad`, which documents it.
"""

NEG_KL_HESS = """
-(u/2)(1 + F'(u) - 2 u F'(u)) at u = exp(-x)/2: the second derivative of -KL in x = log alpha.

Behind `logunif_kl.neg_kl_hess`, which documents it.
"""

NEG_KL_NORMAL = """
-F(u), its derivative in mu and its derivative in log sigma^2, at u = mu^2 exp(-log_sigma2)/2, in
one pass.

Behind `logunif_kl.neg_kl_normal`, which documents the value. The derivatives are -F'(u)
mu/sigma^2 and u F'(u).
"""

DOCS = {
    "kl_gap": KL_GAP.strip(),
    "kl_gap_grad": KL_GAP_GRAD.strip(),
    "kl_gap_hess": KL_GAP_HESS.strip(),
    "neg_kl": NEG_KL.strip(),
    "neg_kl_grad": NEG_KL_GRAD.strip(),
    "neg_kl_hess": NEG_KL_HESS.strip(),
    "neg_kl_normal": NEG_KL_NORMAL.strip(),
}

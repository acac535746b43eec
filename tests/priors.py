"""The divergence from Student's t, in many digits, and points to compare it at."""

import itertools

import mpmath

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
DFS = (0.01, 1.0, 3.0, 30.0, 100.0)

# mu, log sigma^2, df, scale. Among them are the worst of some hundred random points.
STUDENT = [
    (0.0, 0.0, 1.0, 1.0),
    (0.5, -10.0, 0.01, 1.0),
    (1e-6, -3.0, 3.0, 1e-3),
    (2.5e3, 15.07, 30.0, 469.5),
    (2.6, 15.07, 30.0, 469.5),
    (0.0, -9.323278324640363, 100.0, 0.0012226127491504575),
    (0.0, 12.035926112336888, 100.0, 277.28258999914146),
    (42.0, 9.436167556775658, 3.0, 8.120033787316688),
    (1e4, -20.0, 0.5, 1e-2),
    (-0.03, -40.0, 1.0, 0.1),
    (0.0, 60.0, 1.0, 1.0),
]


def normal_ratios():
    """Ratios mu/sigma, with log sigma^2, df and scale."""
    ratios = (0.0, 1e-6, 0.01, 0.5, 1.0, 3.0, 30.0, 1e6)
    return itertools.product(ratios, (-30.0, -10.0, -3.0, -1.0, 0.0, 2.0, 8.0), DFS, (1e-3, 1.0))


def student(mu, log_sigma2, df, scale):
    """-KL by quadrature in 50 digits."""
    with mpmath.workdps(50):
        mu, log_sigma2, df, scale = map(mpmath.mpf, (mu, log_sigma2, df, scale))
        sigma, a = mpmath.exp(log_sigma2 / 2), scale * mpmath.sqrt(df)
        centre, width = -mu / sigma, a / sigma
        near = [centre + sign * width * mpmath.mpf(4) ** k for sign in (-1, 1) for k in range(13)]
        points = sorted({*range(-18, 19, 2), *(x for x in [centre, *near] if -18 < x < 18)})
        mean = mpmath.quad(
            lambda x: mpmath.npdf(x) * mpmath.log1p(((mu + sigma * x) / a) ** 2), points
        )
        constant = mpmath.loggamma((df + 1) / 2) - mpmath.loggamma(df / 2)
        constant -= mpmath.log(df * mpmath.pi) / 2 + mpmath.log(scale)
        entropy = (mpmath.log(2 * mpmath.pi) + 1 + log_sigma2) / 2
        return entropy + constant - (df + 1) / 2 * mean


def student_slopes(mu, log_sigma2, df, scale):
    """Its derivatives, by w(z) = exp(-z^2) erfc(-i z), in enough digits that nothing cancels."""
    with mpmath.workdps(80):
        mu, log_sigma2, df, scale = map(mpmath.mpf, (mu, log_sigma2, df, scale))
        sigma, a = mpmath.exp(log_sigma2 / 2), scale * mpmath.sqrt(df)
        z = mpmath.mpc(mu, a) / (sigma * mpmath.sqrt(2))
        w = _faddeeva(z)
        slope = 2j / mpmath.sqrt(mpmath.pi) - 2 * z * w
        half = (df + 1) / 2
        d_mu = half * mpmath.sqrt(2 * mpmath.pi) / sigma * w.imag
        d_log_sigma2 = half * mpmath.sqrt(mpmath.pi) / 2 * slope.imag
        return -d_mu, mpmath.mpf(1) / 2 - d_log_sigma2


def _faddeeva(z):
    if abs(z) < 1e4:
        # exp(-z^2) and erfc(-iz) cancel in as many digits as exp(z^2) has.
        with mpmath.extradps(min(60, int(abs(z) ** 2))):
            return mpmath.exp(-z * z) * mpmath.erfc(-1j * z)
    total = term = mpmath.mpc(1)
    for k in range(1, 30):
        term *= (2 * k - 1) / (2 * z * z)
        total += term
    return 1j * total / (mpmath.sqrt(mpmath.pi) * z)

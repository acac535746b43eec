"""The divergences from Student's t and the horseshoe, in many digits, and points to compare at."""

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


# mu, log sigma^2, scale; -KL and its derivatives in mu and log sigma^2, by `horseshoe`.
HORSESHOE = [
    ((0.0, 0.0, 1.0), (-0.2912895182201847, 0.0, 0.02232432022078035)),
    ((0.5, -2.0, 0.125), (-1.5069644180511588, -3.173492570073782, 0.461027728305263)),
    ((-0.03125, -6.0, 0.5), (-1.280408662188838, 4.0862066025747055, 0.37174811764630794)),
    ((1.0, -8.0, 0.0625), (-6.731566327203814, -1.985371131034599, 0.5003282072610036)),
    ((2.5, 2.0, 0.0009765625), (-7.352235120883381, -0.5143926293357125, 0.1433032216177551)),
    ((1e-06, -12.0, 0.125), (-2.3682385191560695, -0.03694515957680934, 0.38650055794381366)),
    ((0.0, -20.0, 1.0), (-7.58695524383083, 0.0, 0.4527897588821795)),
    ((64.0, 8.0, 0.5), (-4.496067392486555, -0.027499775542868404, 0.3860911904415277)),
    ((0.25, -30.0, 2.0), (-14.875501493717193, -1.7909818828303932, 0.5000000000002033)),
    ((0.5, -5.75, 1.0), (-2.9074358891649466, -1.6829945517096863, 0.5027945089357917)),
]


def horseshoe(mu, log_sigma2, scale):
    """-KL and its derivatives by quadrature in 50 digits, over v = abs(w)/sigma: seconds."""
    with mpmath.workdps(50):
        mu, log_sigma2, scale = map(mpmath.mpf, (mu, log_sigma2, scale))
        sigma = mpmath.exp(log_sigma2 / 2)
        r, least = abs(mu) / sigma, max(mpmath.mpf(0), abs(mu) / sigma - 16)
        inside = [least + 4 * i for i in range(1, 8)]
        inside += [mpmath.mpf(10) ** -k for k in (0, 1, 3, 6, 12, 25, 50)]
        inside += [scale / sigma * mpmath.mpf(8) ** k for k in (-2, -1, 0, 1, 2)]
        points = sorted({least, r + 16, *(v for v in inside if least < v < r + 16)})

        def s_and_b(v):
            x = (sigma * v / scale) ** 2 / 2
            if x < 2000:
                s = mpmath.exp(x) * mpmath.e1(x)
            else:
                s = sum((-1) ** k * mpmath.factorial(k) / x ** (k + 1) for k in range(20))
            return s, 1 / s - x

        def mean(f):
            return mpmath.quad(f, points)

        def both(v, sign):
            return mpmath.npdf(v - r) + sign * mpmath.npdf(v + r)

        entropy = (mpmath.log(2 * mpmath.pi * mpmath.e) + log_sigma2) / 2
        constant = -mpmath.log(scale) - mpmath.log(2 * mpmath.pi**3) / 2
        value = entropy + constant + mean(lambda v: mpmath.log(s_and_b(v)[0]) * both(v, 1))
        d_mu = -2 / sigma * mean(lambda v: s_and_b(v)[1] / v * both(v, -1)) * mpmath.sign(mu)
        # mu times the derivative in mu, and 2 times that in log sigma^2, add up to -2 E B.
        d_log_sigma2 = (1 - mu * d_mu) / 2 - mean(lambda v: s_and_b(v)[1] * both(v, 1))
        return value, d_mu, d_log_sigma2

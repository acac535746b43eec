"""Expected log-likelihoods against samples of the outputs; the normal prior against torch's KL."""

import math

import mpmath
import pytest

torch = pytest.importorskip("torch")

from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import finite, generator  # noqa: E402

SIGMAS = 5.0
MARGINS = torch.tensor([-6.0, -2.0, -0.5, 0.0, 0.5, 2.0, 6.0], dtype=torch.float64)
VARIANCES = torch.tensor([1e-3, 0.1, 1.0, 10.0], dtype=torch.float64)
LOGITS = torch.tensor(
    [[0.0, 0.0, 0.0], [3.0, 0.0, -1.0], [8.0, -8.0, 0.0], [1.0, 1.2, -4.0]], dtype=torch.float64
)
RATIOS = torch.tensor([1.0, 0.3, 2.0], dtype=torch.float64)
every_form = pytest.mark.parametrize("form", ["tilted", "quadratic", "taylor"])


def drawn(output, n, seed=1):
    noise = torch.randn((n, *output.shape), generator=generator(seed), dtype=output.mean.dtype)
    return output.mean + output.variance.sqrt() * noise


def averaged(each):
    """The mean of samples, and its standard error."""
    return each.mean(0), each.std(0) / len(each) ** 0.5


class TestNormal:
    def test_by_the_expected_square(self):
        mean, variance = torch.tensor([0.5, -1.0]), torch.tensor([0.3, 2.0])
        target = torch.tensor([1.0, 1.0])
        for log_sigma2 in (0.0, -1.0, torch.tensor([0.5, -0.5])):
            found = nn.expected_normal_log_likelihood(
                nn.Moments(mean, variance), target, log_sigma2
            )
            log_sigma2 = torch.as_tensor(log_sigma2)
            square = ((target - mean) ** 2 + variance) / log_sigma2.exp()
            torch.testing.assert_close(found, -0.5 * (math.log(2 * math.pi) + log_sigma2 + square))


class TestBernoulli:
    @pytest.mark.parametrize("link", ["probit", "logit"])
    @pytest.mark.parametrize("target", [0.0, 1.0, 0.3])
    def test_a_bound(self, link, target):
        mean, variance = (t.flatten() for t in torch.meshgrid(MARGINS, VARIANCES, indexing="ij"))
        output = nn.Moments(mean, variance)
        f = drawn(output, 200_000)
        log_p = torch.special.log_ndtr if link == "probit" else torch.nn.functional.logsigmoid
        exact, error = averaged(target * log_p(f) + (1 - target) * log_p(-f))
        found = nn.expected_bernoulli_log_likelihood(output, torch.full_like(mean, target), link)
        assert (found <= exact + SIGMAS * error).all()
        # Both are above -1/4 or -1 by some part, and so no second derivative is the bound's own.
        larger = nn.Moments(mean, variance / 4.0)
        broken = nn.expected_bernoulli_log_likelihood(larger, torch.full_like(mean, target), link)
        assert (broken > exact + SIGMAS * error).any()

    def test_no_variance(self):
        m = MARGINS
        output, target = nn.Moments(m), (m > 0).double()
        found = nn.expected_bernoulli_log_likelihood(output, target, "logit")
        torch.testing.assert_close(found, nn.bernoulli_log_likelihood(m, target))

    @pytest.mark.parametrize(("dtype", "rel"), [(torch.float32, 1e-6), (torch.float64, 5e-15)])
    def test_far_margins(self, dtype, rel):
        far = [-1e5, -1e4, -3e3, -300.0, -13.0, -5.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 3.0, 9.0, 1e5]
        m = torch.tensor(far, dtype=dtype, requires_grad=True)
        certain = torch.zeros_like(m)
        value = nn.expected_bernoulli_log_likelihood(nn.Moments(m, certain), certain + 1.0)
        (slope,) = torch.autograd.grad(value.sum(), m)
        tiny = torch.finfo(dtype).tiny
        for margin, v, s in zip(m.tolist(), value.tolist(), slope.tolist(), strict=True):
            with mpmath.workdps(40):
                below = mpmath.ncdf(-margin)
                log_p = mpmath.log1p(-below) if margin > 0 else mpmath.log(mpmath.ncdf(margin))
                exact = mpmath.npdf(margin) / mpmath.ncdf(margin)
            # Rounding of the margin alone changes exp(-margin^2/2) by so much.
            allowed = rel * (1.0 + max(margin, 0.0) ** 2 / 2.0)
            assert v == pytest.approx(float(log_p), rel=allowed, abs=tiny)
            assert s == pytest.approx(float(exact), rel=allowed, abs=tiny)
        other = nn.expected_bernoulli_log_likelihood(nn.Moments(-m, certain), certain)
        assert torch.equal(other, value)

    def test_gradcheck_of_the_probit(self):
        m = MARGINS.clone().requires_grad_()
        v, target = torch.ones_like(m).requires_grad_(), torch.full_like(m, 0.3)

        def bound(m, v):
            return nn.expected_bernoulli_log_likelihood(nn.Moments(m, v), target)

        assert torch.autograd.gradcheck(bound, (m, v))
        assert torch.autograd.gradgradcheck(bound, (m, v))

    @pytest.mark.parametrize("link", ["probit", "logit"])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_types(self, dtype, link):
        m = torch.tensor([-20.0, -1.0, 0.5, 6.0], dtype=dtype, requires_grad=True)
        output = nn.Moments(m, torch.full_like(m, 0.25))
        wide = nn.Moments(m.detach().float(), torch.full((4,), 0.25))
        target = torch.tensor([1, 0, 1, 0])
        found = nn.expected_bernoulli_log_likelihood(output, target, link)
        expected = nn.expected_bernoulli_log_likelihood(wide, target, link)
        torch.testing.assert_close(found.float(), expected, rtol=0.02, atol=0.0)
        found.sum().backward()
        assert m.grad.isfinite().all()


class TestCategorical:
    @pytest.mark.parametrize("form", ["tilted", "quadratic"])
    @pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0])
    def test_a_bound(self, form, scale):
        variance = scale * RATIOS.expand(4, 3)
        output = nn.Moments(LOGITS, variance)
        f = drawn(output, 200_000)
        for y in range(3):
            target = torch.full((4,), y)
            exact, error = averaged(torch.log_softmax(f, -1)[..., y])
            found = nn.expected_categorical_log_likelihood(output, target, form)
            assert (found <= exact + SIGMAS * error).all()

    @every_form
    def test_right_to_first_order(self, form):
        """The difference to the exact value falls as the square of the variance, or more slowly."""
        target = torch.zeros(4, dtype=torch.int64)
        nodes, weights = normal_nodes()
        for scale in (1e-2, 1e-3):
            variance = scale * RATIOS.expand(4, 3)
            output = nn.Moments(LOGITS, variance)
            found = nn.expected_categorical_log_likelihood(output, target, form)
            f = LOGITS[:, None] + variance.sqrt()[:, None] * nodes
            exact = (torch.log_softmax(f, -1)[..., 0] * weights).sum(1)
            near = (found - exact).abs() < 0.2 * scale**2
            assert not near.any() if form == "quadratic" else near.all()

    def test_two_classes_are_the_logit(self):
        output = nn.Moments(torch.tensor([[0.3, 1.1]]), torch.tensor([[0.4, 0.7]]))
        target = torch.ones(1)
        found = nn.expected_categorical_log_likelihood(output, target.long(), "quadratic")
        margin = nn.Moments(torch.tensor([0.8]), torch.tensor([1.1]))
        expected = nn.expected_bernoulli_log_likelihood(margin, target, "logit")
        torch.testing.assert_close(found, expected)

    @every_form
    def test_targets(self, form):
        """Probabilities, further dimensions, and the class that counts for nothing."""
        torch.manual_seed(2)
        output = nn.Moments(torch.randn(2, 3, 4), torch.rand(2, 3, 4))
        y = torch.tensor([[0, 1, 2, 0], [2, 2, -100, 1]])
        found = nn.expected_categorical_log_likelihood(output, y, form)
        assert found.shape == (2, 4)
        assert found[1, 2] == 0.0
        p = torch.nn.functional.one_hot(y.clamp(min=0), 3).movedim(-1, 1) * (y != -100).unsqueeze(1)
        of_probabilities = nn.expected_categorical_log_likelihood(
            output, p.float(), form, class_dim=1
        )
        torch.testing.assert_close(found, of_probabilities)

    @every_form
    def test_no_variance(self, form):
        target = torch.tensor([0, 1, 2, 0])
        found = nn.expected_categorical_log_likelihood(nn.Moments(LOGITS), target, form)
        torch.testing.assert_close(found, nn.categorical_log_likelihood(LOGITS, target))

    def test_far_logits(self):
        m = torch.tensor([[1e4, 0.0, -1e4]], requires_grad=True)
        v = torch.tensor([[50.0, 1e3, 0.0]], requires_grad=True)
        found = nn.expected_categorical_log_likelihood(nn.Moments(m, v), torch.tensor([0]))
        slopes = torch.autograd.grad(found.sum(), (m, v))
        assert -1e-3 < found.item() <= 0.0
        assert finite(*slopes)

    @every_form
    def test_gradcheck(self, form):
        m = LOGITS.clone().requires_grad_()
        v = (0.1 + 0.2 * LOGITS.abs()).requires_grad_()
        target = torch.tensor([0, 1, 2, 0])

        def function(m, v):
            return nn.expected_categorical_log_likelihood(nn.Moments(m, v), target, form)

        torch.autograd.gradcheck(function, (m, v), check_forward_ad=True)
        torch.autograd.gradgradcheck(function, (m, v))


def normal_nodes(n=12):
    """Nodes and weights of a product of Gauss-Hermite rules in three dimensions."""
    from numpy.polynomial.hermite_e import hermegauss

    x, w = (torch.from_numpy(a) for a in hermegauss(n))
    grid = torch.cartesian_prod(x, x, x)
    weights = torch.cartesian_prod(w, w, w).prod(1)
    return grid, weights / weights.sum()


class TestNormalPrior:
    @pytest.mark.parametrize("variance", [0.1, 1.0, 30.0])
    def test_against_torch(self, variance):
        torch.manual_seed(3)
        options = {"dtype": torch.float64, "penalty": nn.NormalPrior(variance)}
        layer = nn.VariationalLinear(5, 4, posterior=nn.Additive(initial=-2.0), **options)
        with torch.no_grad():
            layer.log_sigma2.add_(torch.randn(4, 5))
        q = torch.distributions.Normal(layer.weight, (0.5 * layer.log_sigma2).exp())
        p = torch.distributions.Normal(torch.tensor(0.0).double(), variance**0.5)
        expected = torch.distributions.kl_divergence(q, p).sum()
        torch.testing.assert_close(layer.kl(), expected, rtol=1e-14, atol=0.0)
        assert f"penalty=NormalPrior(variance={variance})" in repr(layer)
        parameters = layer.weight, layer.log_sigma2
        ours = torch.autograd.grad(layer.kl(), parameters)
        theirs = torch.autograd.grad(expected, parameters)
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)

    def test_near_the_prior_in_float32(self):
        """The KL of t = 1e-3 is t^2/4, of which exp(t) - 1 - t would keep no digit."""
        prior, t = nn.NormalPrior(1.0), torch.tensor(1e-3)
        assert -prior.neg_kl(torch.tensor(0.0), t).item() == pytest.approx(2.5e-7, rel=1e-3)

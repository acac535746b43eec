"""The public functions for tensors: values, limits, types, shapes, reductions, errors."""

import inspect
import itertools
import math
import textwrap
import warnings
from functools import partial

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl import reference
from logunif_kl._convention import additive_constant

torch = pytest.importorskip("torch")

import logunif_kl.torch as lt  # noqa: E402
from logunif_kl.torch import _cpu, _cpu_parallel, _rules  # noqa: E402
from tests.functions import Functions  # noqa: E402
from tests.torch.cases import CASES, by_name, main, weights  # noqa: E402
from tests.torch.test_transforms import compare  # noqa: E402

INF, NAN = math.inf, math.nan
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
by_library = pytest.mark.parametrize("library", [lk, lt], ids=["logunif_kl", "logunif_kl.torch"])
both_kernels = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
half_types = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


@pytest.fixture(params=["kernels", "composite"])
def backend(request, monkeypatch):
    """By the kernels of C, and by the composite."""
    if request.param == "composite":
        monkeypatch.setattr(_cpu, "takes", lambda *tensors: False)
    return request.param


def value_and_slopes(function, *arguments):
    leaves = [a.detach().requires_grad_() for a in arguments]
    value = function(*leaves)
    return value.detach(), *torch.autograd.grad(value.sum(), leaves)


class TestGradcheck:
    def check(self, function, case, **options):
        arguments = case.arguments(grad=True)
        first = {"check_forward_ad": True, "check_batched_grad": True, **options}
        assert torch.autograd.gradcheck(function, arguments, **first)
        second = {"check_fwd_over_rev": True, "check_batched_grad": True}
        assert torch.autograd.gradgradcheck(function, arguments, **second)

    @by_name
    def test_every_function(self, case, backend, capability):
        capability(case.name, "gradcheck, forward mode, batched gradients")
        capability(case.name, "gradgradcheck")
        self.check(case.function, case, check_batched_forward_grad=True)

    @main
    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_reductions(self, case, reduction, backend, capability):
        capability(case.name, f"gradcheck, reduction={reduction}")
        self.check(partial(case.function, reduction=reduction), case)

    @pytest.mark.parametrize("added", [False, True])
    def test_rules_that_recompute(self, added, backend):
        def function(*x):
            return _rules.Derivatives.apply(_rules._of_normal(None, added), _rules.VALUE, *x)[0]

        self.check(function, CASES[4])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
class TestBatchedGradients:
    """A batch of gradients at once, in the types that `gradcheck` cannot judge."""

    def check(self, case, found, dtype):
        """Against the truth; of a half type, which is rounded once, more strictly than others."""
        diagonals = {orders: jacobian.diagonal() for orders, jacobian in found.items()}
        compare(case, diagonals, dtype)
        for orders, jacobian in found.items():
            assert torch.equal(jacobian != 0, torch.eye(len(jacobian)).bool())
            if dtype is torch.bfloat16:
                error = np.abs(diagonals[orders].detach().double().numpy() / case.truth(orders) - 1)
                assert (error <= torch.finfo(dtype).eps * (1 + 2**-6)).all()

    def by_orders(self, case, found, unit=None):
        """Name the derivatives of a value, or of a derivative of order ``unit``."""
        units = case.units if unit is None else [tuple(np.add(unit, u)) for u in case.units]
        return dict(zip(units, found, strict=True))

    @by_name
    def test_every_function(self, case, dtype, backend, capability):
        capability(case.name, f"batched gradients in {str(dtype).removeprefix('torch.')}")
        leaves = case.arguments(dtype, grad=True)
        eye = torch.eye(len(leaves[0]), dtype=dtype)
        options = {"is_grads_batched": True, "retain_graph": True}
        value = case.function(*leaves)
        plain = torch.autograd.grad(value, leaves, eye, **options)
        graphed = torch.autograd.grad(value, leaves, eye, create_graph=True, **options)
        for found in (plain, graphed):
            self.check(case, self.by_orders(case, found), dtype)
        for unit, first in zip(case.units, graphed, strict=True):
            assert first.requires_grad
            second = torch.autograd.grad(first.diagonal().sum(), leaves, retain_graph=True)
            compare(case, self.by_orders(case, second, unit), dtype)
        slopes = torch.autograd.grad(value.sum(), leaves, create_graph=True)
        for unit, slope in zip(case.units, slopes, strict=True):
            second = torch.autograd.grad(slope, leaves, eye, **options)
            self.check(case, self.by_orders(case, second, unit), dtype)

    @main
    def test_reductions(self, case, dtype, backend):
        leaves = case.arguments(dtype, grad=True)
        mean = case.function(*leaves, reduction="mean")
        total = case.function(*leaves, reduction="sum")
        single = torch.autograd.grad(total, leaves, retain_graph=True)
        for value, count in ((total, 1), (mean, 7)):
            factors = torch.tensor([1.0, -2.0], dtype=dtype)
            batch = torch.autograd.grad(value, leaves, count * factors, is_grads_batched=True)
            for rows, row in zip(batch, single, strict=True):
                assert torch.equal(rows, factors[:, None] * row)


class TestTypes:
    @by_name
    @dtypes
    def test_every_type(self, case, dtype, backend, capability):
        capability(case.name, str(dtype).removeprefix("torch."))
        arguments = case.arguments(dtype)
        found = value_and_slopes(case.function, *arguments)
        orders = [(0,) * len(arguments), *case.units]
        compare(case, dict(zip(orders, found, strict=True)), dtype)
        assert case.function(*arguments).dtype == dtype

    @half_types
    @pytest.mark.parametrize("options", [{"log_c": 0.0}, {"zero_at": 1.0}], ids=str)
    @main
    def test_half_types_are_rounded_with_their_constant(self, case, dtype, options, backend):
        if case.both:
            arguments = weights(20_000, dtype, 5)
        else:
            every = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
            arguments = [every[torch.isfinite(every)]]
        wide = [a.double().numpy() for a in arguments]
        terms = np.abs(getattr(lk, case.name)(*wide)) + abs(additive_constant(**options))
        exact = getattr(lk, case.name)(*wide, **options)
        got = case.function(*arguments, **options)
        assert got.dtype == dtype
        info = torch.finfo(dtype)
        ulp = info.eps * np.exp2(np.frexp(np.maximum(np.abs(exact), info.smallest_normal))[1] - 1)
        error = np.abs(got.double().numpy() - exact)
        inside = np.abs(exact) < info.max
        # Where the two cancel, what is left of float32 shows.
        assert (error <= 0.5 * ulp + 4 * 2.0**-23 * terms)[inside].all()
        clear = inside & (np.abs(exact) > terms / 16)
        assert (error <= 0.51 * ulp)[clear].all()
        assert clear.mean() > 0.5

        shifted = value_and_slopes(partial(case.function, **options), *arguments)
        assert all(map(torch.equal, shifted[1:], value_and_slopes(case.function, *arguments)[1:]))

    @by_name
    @half_types
    def test_half_types_are_computed_in_float32(self, case, dtype, backend):
        """What comes from above, a tangent or a factor, is multiplied before the rounding."""
        given = weights(3000, dtype, 6)[0 if case.both else 1 :]
        generator = torch.Generator().manual_seed(7)
        factors = [torch.randn(3000, generator=generator).to(dtype) for _ in range(4)]

        def derivatives(kind):
            leaves = [x.to(kind).requires_grad_() for x in given]
            above, *further = [x.to(kind) for x in factors]
            value = case.function(*leaves)
            first = torch.autograd.grad(value, leaves, above, create_graph=True)
            second = torch.autograd.grad(first, leaves, further[: len(leaves)])
            pushed = torch.func.jvp(
                case.function, tuple(x.detach() for x in leaves), tuple(further[: len(leaves)])
            )[1]
            found = [*first, *second, pushed, *value_and_slopes(case.function, *leaves)]
            if not case.order:
                mean = case.function(*leaves, reduction="mean")
                found += torch.autograd.grad(mean, leaves)
            return found

        for half, single in zip(derivatives(dtype), derivatives(torch.float32), strict=True):
            assert half.dtype == dtype
            assert torch.equal(half, single.to(dtype))

    def test_sums_of_half_types_do_not_overflow(self, backend):
        x = torch.full((100_000,), -8.0, dtype=torch.float16)
        normal = lt.neg_kl_normal(torch.ones_like(x), x, reduction="mean")
        for mean in (lt.neg_kl(x, reduction="mean"), normal):
            assert mean.item() == pytest.approx(lk.neg_kl(-8.0), rel=2**-11)

    @pytest.mark.parametrize("ndims", [(0, 0), (0, 1), (1, 0), (1, 2)])
    def test_promotion_is_that_of_torch(self, ndims):
        kinds = (*DTYPES, torch.uint8, torch.int16, torch.int64)
        for pair in itertools.product(kinds, repeat=2):
            given = [torch.ones((1,) * n, dtype=d) for n, d in zip(ndims, pair, strict=True)]
            wanted = torch.result_type(*given)
            wanted = wanted if wanted.is_floating_point else torch.float32
            assert lt.kl_normal(*given).dtype == wanted, pair

    def test_integers_are_promoted_as_by_exp(self):
        x = torch.ones(3, dtype=torch.int8)
        for got in (lt.neg_kl(x), lt.neg_kl_grad(x), lt.kl_normal(x, 1)):
            assert got.dtype == torch.exp(x).dtype == torch.float32
        assert torch.equal(lt.neg_kl(x), lt.neg_kl(x.float()))

    @main
    def test_autocast(self, case, capability):
        capability(case.name, "autocast")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for dtype in (torch.bfloat16, torch.float32, torch.float64):
                arguments = case.arguments(dtype, grad=True)
                got = case.function(*arguments)
                wide = torch.float64 if dtype == torch.float64 else torch.float32
                assert got.dtype == wide
                assert torch.equal(got, case.function(*(a.to(wide) for a in arguments)))
                slopes = torch.autograd.grad(got.sum(), arguments)
                assert all(slope.dtype == dtype for slope in slopes)


class TestShapes:
    @main
    @pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (3, 1, 5)])
    def test_every_shape(self, case, shape, backend, capability):
        capability(case.name, "0-d and empty")
        arguments = [torch.full(shape, 0.5) for _ in case.points]
        for got in value_and_slopes(case.function, *arguments):
            assert got.shape == shape
            assert torch.isfinite(got).all()

    @main
    def test_not_contiguous(self, case, backend, capability):
        capability(case.name, "non-contiguous")
        base = torch.linspace(-4, 3, 120, dtype=torch.float64).reshape(4, 5, 6)
        permuted = base.permute(2, 0, 1)
        for view in (base.mT, base[:, ::2], permuted, base[1:3, 2], base[:, 1:, 2:]):
            arguments = [view, view.flip(0).contiguous()] if case.both else [view]
            got = value_and_slopes(case.function, *arguments)
            expected = value_and_slopes(case.function, *(a.contiguous() for a in arguments))
            assert all(map(torch.equal, got, expected))

    @main
    def test_expanded(self, case, backend, capability):
        capability(case.name, "expanded")
        row, column = torch.linspace(-1, 1, 5), torch.linspace(-9, 2, 4)[:, None]
        wide = [row.expand(4, 5), column.expand(4, 5)][: len(case.points)]
        full = value_and_slopes(case.function, *(x.clone() for x in wide))
        assert all(map(torch.equal, value_and_slopes(case.function, *wide), full))
        if case.both:
            got = value_and_slopes(case.function, row, column)
            assert torch.equal(got[0], full[0])
            torch.testing.assert_close(got[1], full[1].sum(0))
            torch.testing.assert_close(got[2], full[2].sum(1, keepdim=True))
            number = value_and_slopes(lambda mu: case.function(mu, -9.0), row)
            again = value_and_slopes(case.function, row, torch.full((5,), -9.0))
            assert all(map(torch.equal, number, again[:2]))
            number = value_and_slopes(lambda s: case.function(0.25, s), column)
            again = value_and_slopes(case.function, torch.full((4, 1), 0.25), column)
            assert all(map(torch.equal, number, again[::2]))

    @main
    def test_meta_and_fake(self, case, capability):
        capability(case.name, "meta and fake tensors")
        from torch._subclasses.fake_tensor import FakeTensorMode

        meta = [torch.empty(3, 4, device="meta", requires_grad=True) for _ in case.points]
        value = case.function(*meta)
        slopes = torch.autograd.grad(value.sum(), meta)
        assert all(t.is_meta and t.shape == (3, 4) for t in (value, *slopes))
        with FakeTensorMode() as mode:
            fakes = [mode.from_tensor(torch.ones(3, 4)) for _ in case.points]
            got = case.function(*fakes, zero_at=1.0)
            assert type(got).__name__ == "FakeTensor"
            assert got.shape == (3, 4)

    @by_name
    @dtypes
    def test_another_default_device(self, case, dtype, backend):
        arguments = case.arguments(dtype)

        def everything():
            found = list(value_and_slopes(case.function, *arguments))
            for reduction in () if case.order else ("sum", "mean"):
                function = partial(case.function, reduction=reduction, zero_at=1.0)
                found += [*value_and_slopes(function, *arguments), function(*arguments)]
            return found

        expected = everything()
        with torch.device("meta"):
            got = everything()
        assert all(tensor.is_cpu for tensor in got)
        assert all(map(torch.equal, got, expected))

    def test_layout_of_a_dense_argument_is_kept(self):
        mu, log_sigma2 = (x.reshape(50, 60).mT for x in weights(3000))
        got = value_and_slopes(lt.neg_kl_normal, mu, log_sigma2)
        assert all(t.stride() == mu.stride() for t in got)


class TestValues:
    @both_kernels
    def test_against_the_ufunc(self, dtype, backend):
        mu, log_sigma2 = weights(20_000, dtype, 3)
        exact = lk.special.neg_kl_normal_and_grad(mu.double().numpy(), log_sigma2.double().numpy())
        got = value_and_slopes(lt.neg_kl_normal, mu, log_sigma2)
        for tensor, truth in zip(got, exact, strict=True):
            error = np.abs(tensor.double().numpy() - truth) / np.abs(truth)
            assert error.max() < 4 * torch.finfo(dtype).eps

    @pytest.mark.parametrize("mu", [0.0, -0.0])
    @pytest.mark.parametrize("log_sigma2", [-80.0, -8.0, 0.0, 80.0])
    @both_kernels
    def test_mu_zero(self, mu, log_sigma2, dtype, backend):
        mu, s = torch.tensor([mu], dtype=dtype), torch.tensor([log_sigma2], dtype=dtype)
        assert [t.item() for t in value_and_slopes(lt.neg_kl_normal, mu, s)] == [0.0, 0.0, 0.0]
        mu, s = mu.requires_grad_(), s.requires_grad_()
        (d_mu,) = torch.autograd.grad(lt.neg_kl_normal(mu, s).sum(), mu, create_graph=True)
        second = torch.autograd.grad(d_mu.sum(), (mu, s))
        expected = -math.exp(-log_sigma2)
        assert second[0].item() == pytest.approx(expected, rel=4 * torch.finfo(dtype).eps)
        assert second[1].item() == 0.0

    @pytest.mark.parametrize(
        ("mu", "log_sigma2"),
        [
            (1.0, -80.0),
            (1.0, 80.0),
            (1e-30, -80.0),
            (1e30, 60.0),
            (1e-15, -60.0),
            (-3.0, -700.0),
            (2.0, 700.0),
            (1e-200, -700.0),
            (1e150, -1400.0),
            (1e-39, -180.0),
            (3e-45, -191.05801),  # in float32 d/dmu is 2.6e38, three quarters of the largest
        ],
    )
    def test_sigma_tiny_and_huge(self, mu, log_sigma2, backend):
        for dtype in (torch.float64, torch.float32):
            arguments = [torch.tensor([a], dtype=dtype) for a in (mu, log_sigma2)]
            m, s = (a.item() for a in arguments)
            value, d_mu, d_s = (t.item() for t in value_and_slopes(lt.neg_kl_normal, *arguments))
            if m in (0.0, INF):  # of float32
                assert [value, d_mu, d_s] == ([0.0] * 3 if m == 0.0 else [-INF, 0.0, 0.5])
                continue
            bound = 4 * torch.finfo(dtype).eps
            tiny = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
            truth = float(reference.neg_kl_normal(m, s))
            slope = float(reference.neg_kl_grad(s - 2 * math.log(abs(m))))
            assert abs(value - truth) <= bound * abs(truth) + tiny
            # The logarithm rounds.
            loose = bound + 4 * np.spacing(abs(s) + 2 * abs(math.log(abs(m))))
            assert abs(d_s - slope) <= loose * abs(slope) + tiny
            steep = -2 * slope / m
            if abs(steep) > torch.finfo(dtype).max:
                assert d_mu == math.copysign(INF, steep)
            else:
                assert abs(d_mu - steep) <= loose * abs(steep) + tiny

    def test_limits(self, backend):
        x = torch.tensor([-INF, -1e308, 1e308, INF, NAN], dtype=torch.float64)
        value, slope = value_and_slopes(lt.neg_kl, x)
        np.testing.assert_array_equal(value, [-INF, -5e307, 0.0, 0.0, NAN])
        np.testing.assert_array_equal(slope, [0.5, 0.5, 0.0, 0.0, NAN])

    @main
    @pytest.mark.parametrize("options", [{}, {"zero_at": 1.0}, {"log_c": -2.0}])
    def test_reductions(self, case, options, backend):
        for grad in (False, True):
            arguments = case.arguments(grad=grad)
            full, total, mean = (
                case.function(*arguments, reduction=reduction, **options)
                for reduction in ("none", "sum", "mean")
            )
            assert total.shape == mean.shape == ()
            torch.testing.assert_close(total, full.sum(), rtol=1e-14, atol=0)
            torch.testing.assert_close(mean, full.mean(), rtol=1e-14, atol=0)

    @pytest.mark.parametrize("name", ["kl", "kl_normal"])
    @pytest.mark.parametrize("n", [7, 5000])
    @dtypes
    def test_kl_is_the_negative(self, name, n, dtype, backend):
        """Bit for bit, with its derivatives; and 0.0 where the other is 0.0 or -0.0."""
        mu, log_sigma2 = weights(n, dtype, 9)
        mu[:2], log_sigma2[2] = 0.0, INF
        arguments = [mu, log_sigma2] if name == "kl_normal" else [log_sigma2]

        def everything(function, factor):
            leaves = [x.clone().requires_grad_() for x in arguments]
            tangents = tuple(torch.ones_like(x) for x in arguments)
            found = []
            for reduction in ("none", "sum", "mean"):
                f = partial(function, reduction=reduction)
                value = f(*leaves)
                above = torch.linspace(-1, 2, value.numel()).to(dtype).reshape(value.shape)
                for grad in (torch.ones((), dtype=dtype).expand(value.shape), above):
                    for create_graph in (False, True):
                        found += torch.autograd.grad(
                            value, leaves, grad, retain_graph=True, create_graph=create_graph
                        )
                found += [value, f(*arguments), torch.func.jvp(f, tuple(arguments), tangents)[1]]
            return [factor * x.detach() for x in found]

        got = everything(getattr(lt, name), 1.0)
        wanted = everything(getattr(lt, f"neg_{name}"), -1.0)
        assert all(map(torch.equal, got, wanted))
        zero = getattr(lt, name)(*arguments)[2].item()
        assert (zero, math.copysign(1.0, zero)) == (0.0, 1.0)


class TestAutograd:
    def test_one_argument_only(self, backend):
        both = value_and_slopes(lt.neg_kl_normal, *weights(7))
        for reduction in ("none", "sum"):
            for i in range(2):
                given = weights(7)
                given[i].requires_grad_()
                lt.neg_kl_normal(*given, reduction=reduction).sum().backward()
                assert torch.equal(given[i].grad, both[1 + i])
                assert given[1 - i].grad is None

    @main
    @both_kernels
    def test_retain_graph(self, case, dtype, backend):
        leaves = case.arguments(dtype, grad=True)
        value = case.function(*leaves).sum()
        value.backward(retain_graph=True)
        first = [leaf.grad.clone() for leaf in leaves]
        value.backward()
        assert all(torch.equal(leaf.grad, 2 * a) for leaf, a in zip(leaves, first, strict=True))
        with pytest.raises(RuntimeError, match="second time"):
            value.backward()
        assert all(map(torch.equal, leaves, case.arguments(dtype)))  # as they were

    @main
    @both_kernels
    def test_a_change_in_place_is_noticed(self, case, dtype, backend):
        leaves = case.arguments(dtype, grad=True)
        changed = [leaf * 1.0 for leaf in leaves]
        value = case.function(*changed, reduction="sum")
        changed[0].add_(1.0)
        with pytest.raises(RuntimeError, match="inplace"):
            value.backward()

    @main
    def test_inference_mode(self, case, capability, backend):
        capability(case.name, "inference mode")
        for dtype in DTYPES:
            expected = case.function(*case.arguments(dtype))
            with torch.inference_mode():
                got = case.function(*case.arguments(dtype, grad=True))
                total = case.function(*case.arguments(dtype), reduction="sum")
            assert got.is_inference()
            assert not got.requires_grad
            assert torch.equal(got, expected)
            eps = torch.finfo(dtype).eps
            torch.testing.assert_close(
                total.double(), expected.double().sum(), rtol=4 * eps, atol=0
            )

    @main
    @both_kernels
    def test_deterministic(self, case, dtype, capability, backend, set_threads):
        capability(case.name, "deterministic")
        arguments = weights(5 * _cpu_parallel._BLOCK + 13, dtype, 8)[0 if case.both else 1 :]

        def everything():
            found = value_and_slopes(case.function, *arguments)
            return *found, case.function(*arguments, reduction="sum")

        set_threads(3)
        once = everything()
        torch.use_deterministic_algorithms(True)
        try:
            again = everything()
        finally:
            torch.use_deterministic_algorithms(False)
        assert all(map(torch.equal, once, again))


def nested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch's: nested tensors are a prototype
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


class TestFunctions(Functions):
    module = lt
    compiled = staticmethod(lambda function: function)
    unbroadcastable = RuntimeError
    missing = {  # noqa: RUF012
        "torch": ("logunif_kl.torch", "PyTorch", "'logunif_kl[torch]'"),
        "pyro": ("logunif_kl.torch.pyro", "Pyro", "pyro-ppl"),
    }
    other = torch.ones(2)
    refused = [  # noqa: RUF012
        (
            lambda: torch.ones(2, dtype=torch.complex64),
            r"must hold real .* torch.complex64 .* of real weights$",
        ),
        (lambda: torch.ones(2).bool(), r"must hold real .* torch.bool .* \.float\(\)"),
        (lambda: torch.eye(2).to_sparse(), r"must be a dense tensor.*\.to_dense\(\)$"),
        (nested, r"must be one dense tensor.*\.unbind\(\)"),
    ]

    def array(self, x, dtype="float32"):
        return torch.as_tensor(x).to(getattr(torch, dtype))

    @by_library
    def test_refusals(self, library):
        for make, message in self.refused:
            for name, call in self.calls(library):
                with pytest.raises(TypeError, match=f"^{name} {message}"):
                    call(make())
        neither = "must be a torch.Tensor or a real number, but"
        for value, message in (
            (np.complex64(1), "must hold real .* but numpy.complex64 of dtype complex64 was given"),
            (np.bool_(True), "must hold real .* but numpy.bool of dtype bool was given"),
            (None, f"{neither} None was given: pass a tensor or a float$"),
            (True, rf"{neither} True was given: pass 1\.0 if that is meant$"),
        ):
            for name, call in self.calls(library)[4:]:
                with pytest.raises(TypeError, match=f"^{name} {message}"):
                    call(value)

    def test_no_tensor(self):
        array = ": convert it with torch.as_tensor, or call the function of the same name"
        for value, remedy in (
            (np.ones(2), array),
            ([1.0], ""),
            (0.5, ""),
            (torch.nn.Linear(2, 2), ": pass a tensor"),
            (None, ": pass a tensor"),
        ):
            message = f"must be a torch.Tensor, but .* was given{remedy}"
            for name, function in self.calls(lt)[:4]:
                with pytest.raises(TypeError, match=f"^{name} {message}"):
                    function(value)
            with pytest.raises(TypeError, match=f"^mu {message}"):
                lt.neg_kl_normal(value, value)

    def test_a_module(self):
        with pytest.raises(TypeError, match=r"but torch.nn.Linear was given: pass a tensor$"):
            lk.neg_kl(torch.nn.Linear(2, 2))

    @by_library
    def test_devices(self, library):
        meta = torch.ones(2, device="meta")
        with pytest.raises(RuntimeError, match=r"^mu is on cpu and log_sigma2 on meta: move one"):
            library.neg_kl_normal(torch.ones(2), meta)
        # One number on the CPU goes where the other tensor is, as in torch's own functions.
        assert library.neg_kl_normal(meta, torch.tensor(-8.0)).is_meta
        assert library.neg_kl_normal(torch.tensor(1.0), meta).is_meta
        with pytest.raises(RuntimeError, match=r"^mu is on meta and log_sigma2 on cpu: move one"):
            library.neg_kl_normal(meta[0], torch.ones(2))


def test_names():
    assert dir(lt) == sorted(lt.__all__)
    with pytest.raises(AttributeError, match="no attribute 'neg'"):
        lt.neg  # noqa: B018


def test_the_example_of_kl_normal_runs():
    """Its page needs no other: it has a step of training, and says what every argument is."""
    page = inspect.getdoc(lk.kl_normal)
    assert "See `" not in page
    code = textwrap.dedent(page.rpartition("::\n\n")[2])
    names = {"lk": lk}
    exec(code, names)
    assert names["mu"].grad.isfinite().all()
    assert names["log_sigma2"].grad.abs().sum() > 0

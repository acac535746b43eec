"""Sparse networks for inference: what they compute, drop, hold, load and refuse."""

import contextlib
import copy
import io
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

from torch.nn.utils import prune as torch_prune  # noqa: E402

from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import generator  # noqa: E402

BACKENDS = ["torch", "scipy"]


def pruned(layer, share=0.95, seed=0):
    """Set a share of the weights of every layer to 0."""
    draws = generator(seed)
    with torch.no_grad():
        for module in layer.modules():
            if getattr(module, "weight", None) is not None and module.weight.ndim > 1:
                gone = torch.rand(module.weight.shape, generator=draws) < share
                module.weight.masked_fill_(gone, 0.0)
    return layer


def check(model, sparse, x):
    """The outputs agree but for the order of sums: within a few steps of the sums of magnitudes."""
    if any(isinstance(module, nn.VariationalLayer) for module in model.modules()):
        model = nn.to_deterministic(model, 3.0)
    expected = copy.deepcopy(model).eval()
    found, exact = sparse(x), expected.double()(x.double() if x.is_floating_point() else x)
    assert found.shape == exact.shape
    if x.is_floating_point():
        assert found.dtype == x.dtype
        step = torch.finfo(x.dtype).eps
        with torch.no_grad():
            for module in expected.modules():
                for value in (getattr(module, "weight", None), getattr(module, "bias", None)):
                    if value is not None:
                        value.abs_()
            largest = expected(x.double().abs()).abs()
        assert ((found - exact).abs() <= 8 * step * largest).all()
    else:
        assert torch.equal(found.double(), exact)


def random_input(*shape):
    return torch.randn(*shape, generator=generator(1))


LAYERS = [
    (torch.nn.Linear(30, 20), (7, 30)),
    (torch.nn.Linear(30, 20, bias=False), (30,)),
    (torch.nn.Linear(30, 20), (2, 3, 30)),
    (torch.nn.Linear(30, 20), (0, 30)),
    (torch.nn.Conv1d(4, 6, 3, stride=2, padding=1), (5, 4, 11)),
    (torch.nn.Conv2d(4, 6, (3, 2), dilation=(2, 1), padding=(1, 0)), (5, 4, 9, 8)),
    (torch.nn.Conv2d(4, 6, 3, padding="same", bias=False), (4, 9, 8)),
    (torch.nn.Conv2d(4, 6, 3, padding=2, padding_mode="circular"), (2, 4, 9, 8)),
    (torch.nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect", groups=2), (2, 4, 9, 8)),
    (torch.nn.Conv3d(2, 6, 2, groups=2), (3, 2, 4, 5, 6)),
]


class TestLayers:
    @pytest.mark.parametrize(("layer", "shape"), LAYERS)
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_each(self, layer, shape, backend):
        model = pruned(copy.deepcopy(layer))
        sparse = nn.to_sparse(model, backend=backend)
        assert isinstance(sparse, (nn.SparseLinear, nn.SparseConv))
        assert torch.equal(sparse.weight, model.weight)
        check(model, sparse, random_input(*shape))

    def test_a_table(self):
        table = pruned(torch.nn.Embedding(50, 8, padding_idx=0))
        sparse = nn.to_sparse(table)
        assert type(sparse) is nn.SparseEmbedding
        check(table, sparse, torch.tensor([[3, 0, 49], [3, 7, 21]]))
        check(table, sparse, torch.tensor(4))
        check(table, sparse, torch.zeros(0, dtype=torch.long))

    def test_a_table_whose_rows_change_is_left(self):
        table = pruned(torch.nn.Embedding(50, 8, max_norm=1.0))
        model = torch.nn.Sequential(table, pruned(torch.nn.Linear(8, 3)))
        assert type(nn.to_sparse(model)[0]) is torch.nn.Embedding

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_without_any_weight(self, backend):
        for layer, shape in (LAYERS[0], LAYERS[4]):
            model = pruned(copy.deepcopy(layer), 2.0)
            check(model, nn.to_sparse(model, backend=backend), random_input(*shape))

    @pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_other_types(self, backend, dtype):
        model = pruned(torch.nn.Linear(30, 20)).to(dtype)
        sparse = nn.to_sparse(model, backend=backend)
        x = random_input(7, 30).to(dtype)
        check(model, sparse, x)
        single = nn.to_sparse(model.float(), backend=backend)
        single(x.float())
        check(model.to(dtype), single.to(dtype), x)

    @pytest.mark.parametrize(("layer", "shape"), [LAYERS[0], LAYERS[4]])
    def test_changes_after_a_compiled_call(self, layer, shape):
        torch.compiler.reset()
        sparse, x = nn.to_sparse(pruned(copy.deepcopy(layer))), random_input(*shape)
        compiled = torch.compile(sparse, backend="aot_eager")
        with torch.no_grad():
            for _ in range(3):
                torch.testing.assert_close(compiled(x), sparse(x))
                sparse.values.mul_(2.0)
                torch.testing.assert_close(compiled(x), copy.deepcopy(sparse)(x))

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_buffers_that_move_after_a_call(self, backend):
        """To shared memory, and by `type`, which would round the columns of an embedding."""
        model, x = pruned(torch.nn.Linear(300, 200)), random_input(7, 300)
        sparse = nn.to_sparse(model, backend=backend)
        expected = sparse(x)
        sparse.share_memory()
        assert torch.equal(sparse(x), expected)
        table, rows = pruned(torch.nn.Embedding(600, 5)), torch.arange(500, 600)
        half = nn.to_sparse(table, backend=backend).type(torch.bfloat16)
        assert {half.columns.dtype, half.row_starts.dtype} == {torch.int16, torch.int32}
        assert torch.equal(half(rows), nn.to_sparse(table)(rows).bfloat16())

    def test_a_state_of_another_shape_is_refused(self):
        table, other = (nn.to_sparse(pruned(torch.nn.Embedding(50, n))) for n in (3, 4))
        before = table.weight
        with pytest.raises(RuntimeError, match=r"dense_shape is \(50, 4\) in the state_dict, and"):
            table.load_state_dict(other.state_dict())
        assert torch.equal(table.weight, before)

    def test_weights_that_are_swapped_or_trained_after_a_call(self):
        layer = nn.to_sparse(pruned(torch.nn.Linear(40, 10)))
        x = torch.ones(2, 40)
        first = layer(x) - layer.bias
        torch.utils.swap_tensors(layer.values, layer.values.clone() * 2)
        torch.testing.assert_close(layer(x) - layer.bias, 2 * first)
        layer.values.requires_grad_()
        layer(x).sum().backward()
        assert (layer.values.grad == 2.0).all()

    def test_weights_that_change_before_the_backward(self):
        sparse = nn.to_sparse(pruned(torch.nn.Linear(30, 1)))
        x, right = random_input(1, 30).requires_grad_(), sparse.weight
        output = sparse(x)
        sparse.values.mul_(2.0)
        output.sum().backward()
        assert torch.equal(x.grad, right)
        assert torch.equal(sparse(x).detach(), (x @ sparse.weight.T + sparse.bias).detach())

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_autocast(self, backend, dtype):
        """The products stay in the type of the weights, since torch has none in half types."""
        for layer, x in (
            (torch.nn.Linear(30, 20), random_input(7, 30)),
            (torch.nn.Conv2d(3, 8, 3), random_input(2, 3, 9, 9)),
        ):
            sparse = nn.to_sparse(pruned(layer), backend=backend)
            for given in (x, x.to(dtype)):
                with torch.autocast("cpu", dtype=dtype):
                    found = sparse(given)
                expected = sparse(given)
                assert found.dtype == given.dtype
                assert torch.equal(found, expected)

    @pytest.mark.parametrize(("layer", "shape"), LAYERS[4:])
    @pytest.mark.parametrize("backend", BACKENDS)
    @pytest.mark.parametrize("most", [1, 500])
    def test_a_convolution_of_large_images(self, monkeypatch, layer, shape, backend, most):
        """By patches, in pieces of one example or of some."""
        from logunif_kl.nn.torch.deploy import sparse as layers

        model = pruned(copy.deepcopy(layer))
        sparse = nn.to_sparse(model, backend=backend)
        monkeypatch.setattr(layers, "_MOST", most)
        check(model, sparse, random_input(*shape))

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_images_of_several_sizes(self, backend):
        """One after the other, and in threads. The images have equal areas."""
        model = pruned(torch.nn.Conv2d(4, 6, 3))
        sparse, expected = nn.to_sparse(model, backend=backend), {}
        shapes = [(2, 4, *size) for size in ((9, 10), (10, 9), (6, 15), (9, 10))]
        for shape in shapes:
            check(model, sparse, random_input(*shape))
            expected[shape] = model(random_input(*shape)).detach()
        with torch.no_grad(), ThreadPoolExecutor(4) as pool:
            for shape, found in zip(
                shapes * 50, pool.map(lambda s: sparse(random_input(*s)), shapes * 50), strict=True
            ):
                torch.testing.assert_close(found, expected[shape])

    @pytest.mark.parametrize(
        "change",
        [
            lambda s: s.values.mul_(2.0),
            lambda s: s.state_dict()["values"].copy_(s.values * 2.0),
            lambda s: setattr(s, "values", s.values * 2.0),
            lambda s: s.double().float().values.mul_(2.0),
            lambda s: s.load_state_dict({**s.state_dict(), "values": s.values * 2.0}, assign=True),
        ],
    )
    @pytest.mark.parametrize(("layer", "shape"), [LAYERS[0], LAYERS[5]])
    @pytest.mark.parametrize("backend", BACKENDS)
    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_buffers_that_change(self, mode, backend, layer, shape, change):
        x = random_input(*shape)
        with mode():
            sparse = nn.to_sparse(
                pruned(copy.deepcopy(layer), 0.5), max_density=1.0, backend=backend
            )
            sparse(x)
            change(sparse)
            plain = copy.deepcopy(layer)
            plain.weight.copy_(sparse.weight)
            torch.testing.assert_close(sparse(x), plain(x))

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_the_matrix_is_made_once(self, backend):
        sparse = nn.to_sparse(pruned(torch.nn.Linear(30, 20)), backend=backend)
        x = random_input(7, 30)
        sparse(x)
        made = sparse._made
        sparse(x)
        assert made is not None
        assert sparse._made is made

    def test_under_another_default_device(self):
        sparse, x = nn.to_sparse(pruned(torch.nn.Linear(30, 20))), random_input(7, 30)
        with torch.device("meta"):
            found = sparse(x)
        torch.testing.assert_close(found, sparse(x))

    def test_a_functional_call(self):
        """With other values, whose gradients pass in several calls."""
        sparse, x = nn.to_sparse(pruned(torch.nn.Linear(30, 20, bias=False))), random_input(7, 30)
        before = sparse(x)
        values = (3.0 * sparse.values).requires_grad_()
        for _ in range(2):
            found = torch.func.functional_call(sparse, {"values": values}, (x,))
            torch.testing.assert_close(found, 3.0 * before)
            found.sum().backward()
        assert values.grad is not None
        assert torch.equal(sparse(x), before)

    @pytest.mark.parametrize(
        ("layer", "shape"),
        [(torch.nn.Linear(30, 20), (7, 30)), (torch.nn.Conv2d(3, 4, 3), (2, 3, 5, 5))],
    )
    @pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
    def test_a_gradient_for_the_input(self, layer, shape, mode):
        """Also after a call without gradients, which both backends allow."""
        model, x = pruned(layer), random_input(*shape).requires_grad_()
        sparse = nn.to_sparse(model)
        with mode():
            torch.testing.assert_close(sparse(x), model(x))
            torch.testing.assert_close(nn.to_sparse(model, backend="scipy")(x), model(x))
        slopes = [torch.autograd.grad(each(x).sum(), x) for each in (sparse, model)]
        torch.testing.assert_close(*slopes)


def convolutional(padding=0, between=torch.nn.ReLU, pool=None, side=5):
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 3),
        between(),
        pool or torch.nn.MaxPool2d(2),
        torch.nn.Sequential(torch.nn.Conv2d(6, 8, 3, padding=padding), between()),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(8 * (side + 2 * padding - 2) ** 2, 12),
        between(),
        torch.nn.Linear(12, 4),
    )


def without_units(model):
    """Prune all weights to unit 1 of each hidden layer, and all weights from unit 2."""
    found = [m for m in model.modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))]
    with torch.no_grad():
        for first, second in itertools.pairwise(found):
            first.weight[1] = 0.0
            second.weight.view(len(second.weight), len(first.weight), -1)[:, 2] = 0.0
    return model


X = random_input(3, 1, 12, 12)


class TestUnits:
    @pytest.mark.parametrize("between", [torch.nn.ReLU, torch.nn.Sigmoid, torch.nn.Softplus])
    @pytest.mark.parametrize("backend", BACKENDS)
    @pytest.mark.parametrize("max_density", [0.0, 1.0])
    def test_are_dropped(self, between, backend, max_density):
        torch.manual_seed(3)
        model = without_units(convolutional(between=between))
        for drop_units, sizes in (
            (True, [(4, 1, 3, 3), (6, 4, 3, 3), (10, 54), (4, 10)]),
            (False, [(6, 1, 3, 3), (8, 6, 3, 3), (12, 72), (4, 12)]),
        ):
            options = {"backend": backend, "max_density": max_density, "drop_units": drop_units}
            sparse = nn.to_sparse(model, **options)
            check(model, sparse, X)
            assert [m.weight.shape for m in sparse.modules() if hasattr(m, "weight")] == sizes

    def test_one_after_the_other(self):
        """Units that read only dropped ones, and that only dropped ones read."""
        model = torch.nn.Sequential(
            *(torch.nn.Linear(3, 4), torch.nn.Tanh()),
            *(torch.nn.Linear(4, 4), torch.nn.Tanh()),
            *(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)),
        )
        with torch.no_grad():
            model[0].weight[0] = 0.0
            model[2].weight[0, 1:] = 0.0  # reads the constant unit alone
            model[4].weight[0, 1:] = 0.0
            model[6].weight[:, 3] = 0.0  # this unit is not read
            model[4].weight[:3, 3] = 0.0  # and this one is read by it alone
            model[2].weight[:3, 3] = 0.0
        sparse = nn.to_sparse(model)
        shapes = [tuple(sparse[i].weight.shape) for i in (0, 2, 4, 6)]
        assert shapes == [(2, 3), (2, 2), (2, 2), (2, 2)]
        check(model, sparse, random_input(5, 3))

    @pytest.mark.parametrize(
        ("options", "constant", "kept"),
        [
            ({"padding": 1, "between": torch.nn.Sigmoid}, 0.5, 5),
            ({"pool": torch.nn.AvgPool2d(2, padding=1), "side": 6}, 0.5, 5),
            (
                {"pool": torch.nn.AvgPool2d(2, divisor_override=3), "between": torch.nn.Sigmoid},
                *(0.5, 5),
            ),
            # Zero, by the ReLU, is the same at a padding.
            ({"padding": 1}, -1.0, 4),
        ],
    )
    def test_a_constant_at_a_padding_or_that_a_pool_multiplies_stays(self, options, constant, kept):
        """One unit is not read, and is dropped. Another is constant."""
        torch.manual_seed(3)
        model = without_units(convolutional(**options))
        model[0].bias.data[1] = constant
        sparse = nn.to_sparse(model)
        assert sparse[0].weight.shape[0] == kept
        check(model, sparse, X)
        warned = pytest.warns(UserWarning, match="dead units of module '0': .* zeros are padded")
        with warned if kept == 5 else contextlib.nullcontext():
            compact = nn.to_compact(model)
        assert compact[0].weight.shape[0] == kept

    def test_all_units(self):
        model = torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2, bias=False)
        )
        model[0].weight.data.zero_()
        torch.nn.init.ones_(model[0].bias)
        sparse, x = nn.to_sparse(model), random_input(5, 3)
        assert sparse[0].weight.shape == (1, 3)
        assert sparse[2].bias is not None  # it takes in the constants
        check(model, sparse, x)
        compact = nn.to_compact(model)
        assert torch.equal(nn.load_sparse(model, compact.state_dict())(x), compact(x))
        model[2].weight.data.zero_()
        sparse = nn.to_sparse(model)
        assert sparse[0].weight.shape == (1, 3)
        check(model, sparse, random_input(5, 3))

    @pytest.mark.parametrize(
        "between",
        [
            [torch.nn.Softmax(dim=1)],
            [torch.nn.LayerNorm(4)],
            [torch.nn.GroupNorm(2, 4)],
            [torch.nn.Unflatten(1, (2, 2)), torch.nn.Flatten()],
        ],
    )
    def test_not_across_what_sees_several_units(self, between):
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), *between, torch.nn.Linear(4, 2))
        sparse = nn.to_sparse(without_units(model))
        assert sparse[0].weight.shape == (4, 3)
        check(model, sparse, random_input(5, 3))

    def test_not_where_a_hook_reads(self):
        model, seen = without_units(convolutional()), []
        for at in (1, 3):
            model[at].register_forward_hook(lambda module, x, y: seen.append(y.shape[1]))
        with pytest.warns(UserWarning, match="kept the dead units of module '0': a hook.*'3.0'"):
            compact = nn.to_compact(model)
        check(model, compact, X)
        assert set(seen) == {6, 8}

    def test_not_where_a_hook_of_all_modules_reads(self):
        model = without_units(convolutional())

        def add(module, x, y):
            return y + 1.0 if isinstance(module, torch.nn.ReLU) else None

        hook = torch.nn.modules.module.register_module_forward_hook(add)
        try:
            with pytest.warns(UserWarning, match="kept the dead units of module '0'"):
                compact = nn.to_compact(model)
            check(model, compact, X)
        finally:
            hook.remove()

    def test_not_where_a_module_runs_twice(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
        model.append(without_units(model)[2])
        sparse = nn.to_sparse(model)
        assert sparse[2] is sparse[3]
        check(model, sparse, random_input(5, 3))

    @pytest.mark.parametrize("seed", range(6))
    def test_at_random(self, seed):
        torch.manual_seed(seed)
        pools = [torch.nn.MaxPool2d(2), torch.nn.AvgPool2d(2), torch.nn.AdaptiveAvgPool2d(5)]
        between = [torch.nn.ReLU, torch.nn.Softplus, torch.nn.Tanh][seed % 3]
        model = convolutional(padding=seed % 2, between=between, pool=pools[seed % 3])
        pruned(model, 0.9 + 0.02 * (seed % 4), seed)
        check(model, nn.to_sparse(model, backend=BACKENDS[seed % 2]), X)


def saved(state):
    file = io.BytesIO()
    torch.save(state, file)
    return file


class TestFiles:
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_smaller(self, backend):
        model = pruned(torch.nn.Sequential(torch.nn.Linear(784, 300)), 0.98)
        dense = saved(model.state_dict()).tell()
        sparse = nn.to_sparse(model, backend=backend)
        assert saved(sparse.state_dict()).tell() < dense / 20
        sparse(torch.ones(1, 784))
        assert saved(sparse).tell() < dense / 20  # what is made at the first call is not saved

    def test_columns_are_narrow_where_they_can_be(self):
        wide = torch.nn.Linear(40000, 2)
        assert nn.to_sparse(pruned(wide)).columns.dtype == torch.int32
        check(wide, nn.to_sparse(wide), random_input(3, 40000))
        assert nn.to_sparse(pruned(torch.nn.Linear(32767, 2))).columns.dtype == torch.int16

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_another_number_of_weights_is_loaded(self, backend):
        first = pruned(convolutional(), 0.95, seed=1)
        second = pruned(convolutional(), 0.8, seed=2)
        options = {"backend": backend, "drop_units": False, "max_density": 1.0}
        target = nn.to_sparse(second, **options)
        target(X)
        file = saved(nn.to_sparse(first, **options).state_dict())
        file.seek(0)
        target.load_state_dict(torch.load(file))
        check(first, target, X)

    @pytest.mark.parametrize("backend", BACKENDS)
    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("columns", lambda c: c + 30),
            ("columns", lambda c: c - 30),
            ("row_starts", lambda r: r.flip(0)),
            ("row_starts", lambda r: r + 5),
            ("values", lambda v: v[:-1]),
        ],
    )
    def test_a_broken_file_is_refused(self, backend, name, change):
        sparse = nn.to_sparse(pruned(torch.nn.Linear(30, 20)), backend=backend)
        state = sparse.state_dict()
        state[name] = change(state[name])
        sparse.load_state_dict(state)
        with pytest.raises((RuntimeError, ValueError)):
            sparse(torch.ones(1, 30))


class TestWhole:
    def test_dense_where_many_weights_are_kept(self):
        model = torch.nn.Sequential(pruned(torch.nn.Conv2d(1, 4, 3, groups=1), 0.5))
        assert type(nn.to_sparse(model)[0]) is torch.nn.Conv2d
        sparse = nn.to_sparse(model.train(), max_density=0.9)
        assert type(sparse[0]) is nn.SparseConv
        assert (model.training, sparse.training) == (True, False)
        assert not any(p.requires_grad for p in sparse.parameters())
        dropout = torch.nn.Sequential(nn.GaussianDropoutLinear(3, 2, 0.5))
        assert type(nn.to_sparse(dropout)[0]) is torch.nn.Linear
        table = torch.nn.Embedding(4, 3, padding_idx=1)
        assert nn.to_sparse(table).padding_idx == 1

    def test_shown(self):
        sparse = nn.to_sparse(pruned(torch.nn.Conv2d(1, 4, 3)))
        assert str(sparse) == (
            "SparseConv(1, 4, kernel_size=(3, 3), stride=(1, 1), bias=True, "
            f"kept={len(sparse.values)}, weights=36, backend='torch')"
        )
        shown = str(nn.to_sparse(pruned(torch.nn.Embedding(50, 2))))
        assert shown.startswith("SparseEmbedding(50, 2, kept=")

    def test_other_modules_may_have_masks(self):
        other = torch.nn.ConvTranspose1d(1, 1, 2)
        torch_prune.l1_unstructured(other, "weight", 1)
        model = torch.nn.Sequential(other, pruned(torch.nn.Linear(8, 4)))
        x = random_input(2, 1, 7)
        torch.testing.assert_close(nn.to_sparse(model)(x), model(x))


def variational(share=0.9):
    """A convolutional network whose weights have log alpha of -30 or, for a share of them, 9."""
    model = nn.to_variational(convolutional(), posterior=nn.Additive(initial=0.0))
    draws = generator(3)
    with torch.no_grad():
        for name, log_alpha in nn.log_alpha(model).items():
            layer = model.get_submodule(name)
            gone = torch.rand(log_alpha.shape, generator=draws) < share
            layer.log_sigma2.add_(torch.where(gone, 9.0, -30.0) - log_alpha)
    return model.eval()


class TestCompact:
    def test_without_any_weight(self):
        layer = torch.nn.Linear(3, 2)
        torch.nn.init.zeros_(layer.weight)
        assert type(nn.to_compact(layer)) is torch.nn.Linear

    @pytest.mark.filterwarnings("ignore")  # by the exporters, about themselves
    @pytest.mark.parametrize(
        "export", [torch.export.export, torch.jit.trace], ids=["export", "trace"]
    )
    def test_a_sparse_layer_says_what_to_export(self, export):
        sparse = nn.to_sparse(variational(), max_density=1.0)
        with pytest.raises(RuntimeError, match=r"export logunif_kl.torch.nn.to_compact\(model\)"):
            export(sparse, (X,))
        table = nn.to_sparse(torch.nn.Embedding(5, 3), max_density=1.0)
        with pytest.raises(RuntimeError, match="a SparseEmbedding is being exported"):
            export(table, (torch.tensor([1]),))


@pytest.mark.parametrize("make", [nn.to_sparse, nn.to_compact])
@pytest.mark.parametrize("kind", [torch.nn.Linear, nn.VariationalLinear])
def test_a_hook_that_computes_a_weight_is_refused(make, kind):
    """The hook would look for its own parameter in the new layer."""
    hooked = torch.nn.utils.spectral_norm(kind(4, 2))
    model = torch.nn.Sequential(nn.VariationalLinear(3, 4), hooked)
    with pytest.raises(TypeError, match="the weight of module '1' is computed by a hook: remove"):
        make(model)


class TestLoading:
    @pytest.mark.parametrize("backend", BACKENDS)
    @pytest.mark.parametrize("made", [nn.to_sparse, nn.to_compact])
    @pytest.mark.parametrize("like", [convolutional, variational])
    def test_a_network_with_fewer_units(self, made, like, backend):
        network = made(variational(0.97))
        file = saved(dict(network.state_dict()))
        file.seek(0)
        loaded = nn.load_sparse(like(), torch.load(file), backend=backend)
        assert not loaded.training
        assert [type(m) for m in loaded.modules()] == [type(m) for m in network.modules()]
        torch.testing.assert_close(loaded(X), network(X))

    @pytest.mark.parametrize("made", [nn.to_sparse, nn.to_compact])
    @pytest.mark.parametrize("like", [convolutional, variational])
    def test_a_skeleton_without_memory(self, made, like):
        network = made(variational(0.97))
        with torch.device("meta"):
            skeleton = like()
        loaded = nn.load_sparse(skeleton, network.state_dict())
        torch.testing.assert_close(loaded(X), network(X))
        skeleton.register_buffer("own", torch.ones(1, device="meta"), persistent=False)
        with pytest.raises(ValueError, match=r"^own is on the meta device, and state_dict has no"):
            nn.load_sparse(skeleton, network.state_dict())

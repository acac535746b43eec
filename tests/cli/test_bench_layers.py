"""``logunif-kl bench --layers``: it runs, compares what it says, and skips what is missing."""

import dataclasses
import json

import pytest

from logunif_kl.cli import main

torch = pytest.importorskip("torch")

from logunif_kl.cli.bench import _layers, _layers_made, _layers_steps  # noqa: E402

TINY = _layers_steps.Plan(
    widths=(5, 4, 3), batches=(4, 8), images=(2, 4, 3), shapes=((4, 3, 3, 3), (5, 4)), rounds=2
)
TINY = dataclasses.replace(TINY, compiled=False)


@pytest.fixture
def no_peers(monkeypatch):
    """Have no package to compare with."""

    def missing():
        raise ImportError("No module named 'peer'\nand more")

    monkeypatch.setattr(_layers_made, "_PEERS", {"peer": missing})


@pytest.fixture
def found(no_peers):
    return _layers.document(TINY, "the command")


class TestDocument:
    def test_networks_and_ways(self, found):
        names = [network["network"] for network in found["networks"]]
        assert names == [
            "5-4-3, minibatch 4",
            "5-4-3, minibatch 8",
            "convolution 2 to 2, 3x3 on 4x4, minibatch 3",
            "the KL alone, 128 weights in 2 tensors",
        ]
        for network in found["networks"][:3]:
            assert [way["name"] for way in network["ways"]] == [
                "torch, deterministic",
                "ours",
                "ours, without its KL",
                "ours, per_batch",
            ]
            for way in network["ways"]:
                parts = way["milliseconds"]
                assert list(parts) == ["forward", "KL", "backward", "optimizer", "step"]
                assert parts["step"]["median"] > 0.0
                assert way["peak_megabytes"] > 0.0

    def test_targets_stand_where_they_belong(self, found):
        asked = {
            (network["network"], row["what"]): (row["must"], row["aim"])
            for network in found["networks"]
            for row in network["ratios"]
            if row["must"]
        }
        assert asked[("5-4-3, minibatch 8", "ours / torch, deterministic")] == ("<= 2.6", "<= 2.2")
        assert asked[("5-4-3, minibatch 4", "ours / ours, without its KL")] == ("<= 1.1", "")
        kl = found["networks"][3]["network"]
        assert asked[(kl, "joined by torch.cat / nn.kl(model)")] == (">= 1", "")

    def test_a_missing_package_is_said(self, found):
        assert found["skipped"] == {"peer": "ImportError: No module named 'peer'"}
        assert _layers.notes(found) == [
            "peer is skipped: ImportError: No module named 'peer'",
            'the packages to compare with: pip install "logunif_kl[peers]"',
        ]

    def test_it_is_json_and_has_its_origin(self, found):
        again = json.loads(json.dumps(found))
        assert again["command"] == "the command"
        assert len(again["sources_sha256"]) == 64
        assert "samples" not in again["networks"][0]


class TestPeers:
    def test_those_installed_are_compared_with_the_same_estimator(self):
        kinds, skipped = _layers_made.made()
        if len(skipped) == len(_layers_made.PEERS):
            pytest.skip("none of the packages is installed")
        found = _layers.document(TINY, "")
        assert not any(network["failed"] for network in found["networks"])
        whats = {row["what"] for row in found["networks"][0]["ratios"]}
        for kind in kinds[4:]:
            assert f"{kind.name} / ours" in whats
            one = kind.noise == _layers_made.ONE_SAMPLE
            assert (f"{kind.name} / ours, per_batch" in whats) == one

    def test_a_network_that_fails_is_said(self, no_peers, monkeypatch):
        def broken(*arguments, **options):
            raise RuntimeError("it is broken\nfor a reason")

        peer = _layers_made.Made("peer", "none", broken, torch.nn.Conv2d, whole=False)
        monkeypatch.setattr(_layers_made, "_PEERS", {"peer": lambda: [peer]})
        found = _layers.document(TINY, "")
        assert found["networks"][0]["failed"] == {"peer": "RuntimeError: it is broken"}
        assert _layers.notes(found) == [
            f"peer did not run (5-4-3, minibatch {size}): RuntimeError: it is broken"
            for size in (4, 8)
        ]

    def test_a_failure_of_ours_is_an_error(self, no_peers, monkeypatch):
        monkeypatch.setattr(_layers_made.nn, "kl", lambda model: torch.ones(2))
        with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
            _layers.document(TINY, "")


class TestSteps:
    def test_a_step_trains_with_the_kl(self, no_peers):
        """The gradient is that of the mean loss plus KL/60000, of all parameters."""
        kinds, _ = _layers_made.made()
        ways, failed = _layers_steps.ways(
            TINY, kinds, lambda kind: _layers_steps.perceptron(TINY, 4, kind)
        )
        assert failed == {}
        ours, alone = ways["ours"], ways["ours, without its KL"]
        for way in (ours, alone):
            for layer in way.model[::2]:
                # No noise, so that the two agree but for the KL.
                torch.nn.init.constant_(layer.log_sigma2, -200.0)
                torch.nn.init.constant_(layer.weight, 0.5)
                torch.nn.init.zeros_(layer.bias)
        ours.optimizer.zero_grad()
        (ours.kl() / 60_000).backward()
        slopes = [p.grad for p in ours.model.parameters()]
        with_kl, without = ours.gradients(), alone.gradients()
        for a, b, slope in zip(with_kl, without, slopes, strict=True):
            expected = b if slope is None else b + slope
            torch.testing.assert_close(a, expected)
        assert sum(slope is not None for slope in slopes) == 4

    def test_the_shapes_are_those_of_a_resnet_50(self):
        shapes = _layers_made.resnet50_shapes()
        assert len(shapes) == 54
        assert sum(torch.Size(shape).numel() for shape in shapes) == 25_502_912

    def test_every_way_of_the_kl_finds_the_same(self, no_peers):
        kinds, _ = _layers_made.made()
        jobs = _layers_steps.kl_alone(TINY, kinds)
        values = {name: job.args[0]().item() for name, job in jobs.items()}
        exact = values.pop("nn.kl(model)")
        approximate = values.pop("Molchanov's formula, layer by layer")
        assert values == pytest.approx(dict.fromkeys(values, exact), rel=1e-6)
        assert approximate == pytest.approx(exact, rel=0.02)


def test_the_command(no_peers, monkeypatch, tmp_path, capsys):
    def tiny(**options):
        return dataclasses.replace(TINY, **options)

    monkeypatch.setattr(_layers_steps, "Plan", tiny)
    path = tmp_path / "layers.json"
    before = torch.get_num_threads()
    command = ["bench", "--layers", "--rounds", "2", "--threads", "1", "--seed", "3"]
    assert main([*command, "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    assert (document["rounds"], document["threads"], document["seed"]) == (2, 1, 3)
    assert document["command"].startswith("logunif-kl bench --layers")
    assert torch.get_num_threads() == before
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "5-4-3, minibatch 4" in shown
    assert "peer is skipped: ImportError" in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--torch"], "--torch has no meaning with --layers: leave it out"),
        (["--size", "5"], "--size has no meaning with --layers: leave it out"),
        (["--steps", "50"], "--steps is for --training: give --training as well, or leave it out"),
        (
            ["--training"],
            "--training and --layers are benches of their own: give one of them at a time",
        ),
    ],
)
def test_options(options, words, capsys):
    assert main(["bench", "--layers", *options]) == 2
    assert capsys.readouterr().err == f"logunif-kl: error: {words}\n"


@pytest.mark.slow
def test_compiled(no_peers):
    found = _layers.document(dataclasses.replace(TINY, compiled=True), "")
    whats = [row["what"] for row in found["networks"][0]["ratios"]]
    assert "ours, compiled / torch, deterministic, compiled" in whats

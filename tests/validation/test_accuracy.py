"""The instruments of `validation.accuracy`: true truths, and searches that find what is there."""

import json
import math

import mpmath
import numpy as np
import pytest

from tests import ulp as definition
from validation.accuracy import claims, driver, exhaustive, flushing, truth, ulp
from validation.accuracy import search as searching
from validation.accuracy.functions import FRAMEWORKS, FUNCTIONS, OF_FRAMEWORKS
from validation.accuracy.implementations import implementation

INF, NAN = math.inf, math.nan


def exact(value, scale=0):
    """A truth that is a float."""
    value = np.atleast_1d(np.asarray(value, dtype=np.float64))
    return truth.Truth(value, np.zeros_like(value), np.full(value.shape, scale))


def nearest(name, args):
    """The truth rounded to float64."""
    found = truth.truth(name, args)
    return np.ldexp(found.hi, found.scale.astype(np.int32))


class TestTruth:
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_agrees_with_rigorous_balls(self, name):
        pytest.importorskip("flint")
        from validation.accuracy import check

        worst, where = check.worst_relative_error(name, np.random.default_rng(0), 400)
        assert worst < 2.0**-74, where

    @pytest.mark.parametrize(
        ("name", "wanted"),
        [
            ("kl_gap", [0, INF, NAN, NAN]),
            ("kl_gap_grad", [1, 0, NAN, NAN]),
            ("kl_gap_hess", [-2 / 3, 0, NAN, NAN]),
            ("neg_kl", [-INF, 0, NAN]),
            ("neg_kl_grad", [0.5, 0, NAN]),
            ("neg_kl_hess", [0, 0, NAN]),
            ("neg_kl_normal", [0, NAN, -INF, -INF, 0, NAN, NAN]),
            ("neg_kl_normal.dmu", [0, NAN, -0.5, 0, 0, NAN, NAN]),
            ("neg_kl_normal.dlog_sigma2", [0, NAN, 0.5, 0.5, 0, NAN, NAN]),
        ],
    )
    def test_limits(self, name, wanted):
        u, x = ([0.0, INF, -1.0, NAN],), ([-INF, INF, NAN],)
        normal = [0.0, 0.0, 2.0, INF, 0.0, INF, 1.0], [1.0, -INF, -INF, 0.0, INF, INF, NAN]
        given = normal if "normal" in name else u if name.startswith("kl_gap") else x
        np.testing.assert_array_equal(truth.truth(name, *map(np.array, given)).hi, wanted)


class TestUlp:
    @pytest.mark.parametrize("dtype", definition.PRECISION)
    def test_is_the_definition(self, dtype):
        rng = np.random.default_rng(0)
        low, high = definition.EMIN[dtype] - definition.PRECISION[dtype], definition.EMAX[dtype] + 1
        hi = np.exp2(rng.uniform(low, high, 500)) * rng.choice((-1.0, 1.0), 500)
        hi[:50] = np.exp2(rng.integers(low + 2, high, 50))
        tail = hi * 2.0**-54 * rng.uniform(-1, 1, 500)
        got = hi * (1 + rng.normal(size=500) * 2.0 ** -definition.PRECISION[dtype])
        got[-2:] = np.inf, -np.inf
        found = ulp.signed_error(got, truth.Truth(hi, tail, np.zeros(500, dtype=np.int64)), dtype)
        with mpmath.workprec(200):
            for g, h, t, e in zip(got, hi, tail, found, strict=True):
                wanted = float(definition.error(g, mpmath.mpf(h) + mpmath.mpf(t), dtype))
                assert e == pytest.approx(wanted, rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize(
        ("got", "right", "scale", "wanted"),
        [
            ([INF], [np.finfo(np.float64).max], 0, [1.0]),
            ([INF, -INF], [1.5, 1.5], 1024, [0.0, -2.5 * 2.0**52]),
            ([INF, NAN, 1.0], [INF] * 3, 0, [0.0, INF, INF]),
            ([NAN, 1.0], [NAN] * 2, 0, [0.0, INF]),
        ],
    )
    def test_overflow(self, got, right, scale, wanted):
        assert ulp.signed_error(got, exact(right, scale), "float64").tolist() == wanted


class TestSearch:
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_ordinals_go_back(self, dtype):
        rng = np.random.default_rng(0)
        bits = rng.integers(0, 256, (1000, np.dtype(dtype).itemsize), dtype=np.uint8)
        values = bits.view(dtype).ravel()
        values = np.sort(values[~np.isnan(values)])
        numbers = searching.ordinals(values)
        assert (np.diff(numbers) >= 0).all()
        np.testing.assert_array_equal(searching.from_ordinals(numbers, dtype), values)
        up = searching.from_ordinals(numbers[:-1] + 1, dtype)
        np.testing.assert_array_equal(up, np.nextafter(values[:-1], np.inf, dtype=dtype))

    def test_finds_a_hidden_hill(self):
        """A defect a thousandth of a unit wide, of height rising to 7.25 ulp at one point."""
        peak = 2.34567

        def defective(u):
            hill = 7.25 * np.maximum(0, 1 - np.minimum(np.abs(u - peak), 1) / 1e-3)
            exact = nearest("kl_gap", u)
            return exact + np.rint(hill) * np.spacing(exact)

        rng = np.random.default_rng(0)
        found = searching.search("kl_gap", defective, rng=rng, count=50_000, rounds=20)
        assert 6.5 <= found.ulp <= 7.5
        # Where the hill is 5.5 ulp high, and rounded to 6.
        width = 1e-3 * (1.0 - 5.5 / 7.25)
        assert float.fromhex(found.inputs[0]) == pytest.approx(peak, abs=width)
        assert float(found.wanted) == pytest.approx(float.fromhex(found.got))

    def test_tries_the_neighbours_of_edges(self):
        edge = 3.0

        def defective(u):
            exact = nearest("kl_gap_grad", u)
            return np.where(u == np.nextafter(edge, 4), 2 * exact, exact)

        rng, edges = np.random.default_rng(0), {"u": [edge], "x": []}
        found = searching.search("kl_gap_grad", defective, rng=rng, count=0, rounds=0, edges=edges)
        assert found.inputs == (float(np.nextafter(edge, 4)).hex(),)
        assert found.tried == 17

    def test_tries_the_worst_inputs_of_before(self):
        def defective(x):
            return np.where(x == 12.34375, np.nan, nearest("neg_kl", x))

        rng, known = np.random.default_rng(0), [(12.34375,)]
        found = searching.search("neg_kl", defective, rng=rng, count=100, rounds=0, known=known)
        assert found.ulp == np.inf


class TestExhaustive:
    @staticmethod
    def scan(narrow, wide, dtype, start, stop, name="neg_kl_hess"):
        return exhaustive.scan(name, narrow, wide, dtype, start, stop)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_agrees_with_the_definition(self, dtype):
        def square_root(x):
            return np.sqrt(x) * x.dtype.type(1.001)

        wide = np.sqrt
        tally = self.scan(square_root, wide, dtype, 0x0001, 0x7000)
        shift = np.arange(0x0001, 0x7000)
        if dtype == "float16":
            inputs = shift.astype(np.uint16).view(np.float16)
            got = square_root(inputs)
        else:
            inputs = (shift.astype(np.uint32) << 16).view(np.float32)
            got = ulp.round_to_bfloat16(square_root(inputs))
        errors = ulp.error(got, exact(wide(inputs.astype(np.float64))), dtype)
        assert (tally.tried, tally.ulp) == (len(shift), errors.max())
        assert tally.input == float(inputs[errors.argmax()])

    @pytest.mark.parametrize("planted", [np.inf, np.nan, -1.0])
    def test_finds_one_wrong_value(self, planted):
        """In the fifth of seven blocks, so that the tallies of blocks are merged."""
        where = np.float32(1.2345678)
        start = int(where.view(np.uint32)) - 70_000

        def narrow(x):
            good = (x.astype(np.float64) * 1.5).astype(np.float32)
            return np.where(x == where, np.float32(planted), good)

        tally = self.scan(narrow, lambda x: x * 1.5, "float32", start, start + 100_000)
        assert (tally.tried, tally.input) == (100_000, float(where))
        assert tally.wrong_special == (not np.isfinite(planted))
        assert (float(where).hex() in tally.first_wrong) == (not np.isfinite(planted))

    def test_a_number_for_nan_is_wrong(self):
        tally = self.scan(np.nan_to_num, np.positive, "float32", 0x7FC0_0000, 0x7FC0_0100)
        assert (tally.wrong_special, tally.ulp) == (256, np.inf)

    def test_counts_steps_in_the_wrong_direction(self):
        start = int(np.float32(2.0).view(np.uint32))
        stop = start + 50_000

        def sawtooth(x):
            return np.where(x.astype(np.float32).view(np.uint32) % 1000 == 0, x.dtype.type(1), x)

        def steps(function, dtype, start, stop, name):
            return self.scan(function, function, dtype, start, stop, name).not_monotone

        down = sum(number % 1000 == 0 for number in range(start + 1, stop))
        assert steps(sawtooth, "float32", start, stop, "kl_gap") == down
        assert steps(sawtooth, "float32", start, stop, "neg_kl_hess") == 0
        for low, high in ((0, 1 << 15), (1 << 15, (1 << 16) - 2000)):
            assert steps(np.positive, "float16", low, high, "neg_kl") == 0
        for name, down in (("kl_gap_grad", 0), ("kl_gap", 0x7BFF)):
            assert steps(np.negative, "float16", 0, 0x7C00, name) == down


ROW = {"function": "kl_gap", "dtype": "float64", "kernel": "baseline", "range": "u in [0, inf]"}
ROW |= {"ulp": 0.7500001, "inputs": ["0x1.8p+0"], "wanted": "1.5", "method": "search", "tried": 10}
ABOUT = {"command": "c", "date": "d", "versions": {"numpy": "1"}, "machine": {"cpu": "x"}}


class TestRecords:
    def test_worst_inputs_are_never_removed(self, tmp_path, monkeypatch):
        monkeypatch.setattr(driver, "WORST_INPUTS", tmp_path / "worst.json")
        driver.remember([ROW])
        driver.remember([{**ROW, "inputs": ["0x1.0p+0"]}, ROW])
        assert [e["inputs"] for e in driver.worst_inputs()] == [["0x1.0p+0"], ["0x1.8p+0"]]

    def test_the_worst_machine_is_claimed_and_rounded_up(self):
        module = {}
        rows = [ROW, {**ROW, "ulp": 0.9000001}, {**ROW, "ulp": 0.8}]
        exec(claims.render(rows)[claims.CLAIMS], module)
        (claim,) = module["CLAIMS"]
        assert (claim.ulp, claim.inputs) == (0.901, ("0x1.8p+0",))
        assert module["worst"]("kl_gap", "float64") is claim

    def test_the_committed_claims_are_those_of_the_reports(self):
        for path, text in claims.render(claims.results()).items():
            assert path.read_text(encoding="utf-8") == text

    def test_what_is_wrong_is_not_claimed(self):
        wrong = {**ROW, "ulp": math.inf, "got": "nan"}
        with pytest.raises(RuntimeError, match=r"is wrong at 0x1\.8p\+0: it gives nan, not 1\.5"):
            claims.render([wrong])

    def saved(self, path, row, **about):
        driver.save([row], path, {**ABOUT, **about})
        return json.loads(path.read_text())["rows"]

    def test_rows_are_kept_beside_new_ones(self, tmp_path):
        path = tmp_path / "accuracy_search.json"
        self.saved(path, ROW)
        rows = self.saved(path, {**ROW, "kernel": "python", "ulp": 1.0}, date="e")
        found = [(row["kernel"], row["ulp"], row["date"]) for row in rows]
        assert found == [("baseline", ROW["ulp"], "d"), ("python", 1.0, "e")]
        assert [row["ulp"] for row in self.saved(path, {**ROW, "ulp": 0.6})] == [0.6, 1.0]


class TestFlushing:
    """Zeros for subnormal numbers are told apart from errors."""

    def test_only_zero_for_a_subnormal_truth_is_right(self):
        truths = exact([2.0**-127, 2.0**-126, -(2.0**-149), 2.0**-127])
        got = np.array([0.0, 0.0, 0.0, 2.0**-126])
        found = flushing.flushed_error("neg_kl", got, truths, [np.ones(4, "float32")])
        assert found.tolist() == [0.0, 2.0**23, 0.0, 2.0**22]

    def test_subnormal_arguments_may_be_zeros(self):
        mu, log_sigma2 = np.float32([1e-40, 1e-37, 1e-40]), np.float32([-180.0, -180.0, -180.0])
        points = [mu, log_sigma2]
        truths = truth.truth("neg_kl_normal", *points)
        assert (np.abs(np.ldexp(truths.hi, truths.scale)) > 2.0**-126).all()
        got = np.array([0.0, 0.0, 1e-20])
        found = flushing.flushed_error("neg_kl_normal", got, truths, points)
        assert found[0] == 0.0
        assert (found[1:] > 1000).all()


@pytest.mark.parametrize("kernel", ["torch", "jax", "tensorflow"])
def test_the_types_of_frameworks(kernel):
    """Their numbers are compared with the claims, which a wider type would keep too."""
    for package in FRAMEWORKS[kernel]:
        pytest.importorskip(package)
    for name in OF_FRAMEWORKS:
        for dtype in ("float32", "float64"):
            points = [np.ones(3, dtype)] * FUNCTIONS[name].nin
            assert implementation(FUNCTIONS[name], kernel, dtype)(*points).dtype == dtype


def test_command_line_names_what_it_cannot_do(capsys):
    from validation.accuracy.__main__ import main

    with pytest.raises(SystemExit):
        main(["measure", "search", "--functions", "kl_gap", "--kernels", "sse9"])
    assert "sse9" in capsys.readouterr().err

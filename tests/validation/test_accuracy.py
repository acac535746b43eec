"""The instruments of `validation.accuracy`: true truths, and searches that find what is there."""

import json

import mpmath
import numpy as np
import pytest
from rich.console import Console

from tests import ulp as definition
from validation.accuracy import claims, driver, exhaustive, flushing, sources, truth, ulp
from validation.accuracy import search as searching
from validation.accuracy.functions import FRAMEWORKS, FUNCTIONS, OF_FRAMEWORKS
from validation.accuracy.implementations import implementation


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

    def test_landmarks(self):
        with mpmath.workdps(30):
            for u, digits in (
                (0.5, "0.42668560429604480579"),
                (1.0, "0.7394416300990793005"),
                (10.0, "2.1057151592798643824"),
                (50.0, "2.9326888740470193148"),
            ):
                found = truth.truth("kl_gap", u)
                value = mpmath.mpf(found.hi[0]) + mpmath.mpf(found.lo[0])
                assert abs(value - mpmath.mpf(digits)) < mpmath.mpf("1e-19")

    def test_limits(self):
        u, x = np.array([0.0, np.inf, -1.0, np.nan]), np.array([-np.inf, np.inf, np.nan])
        for name, args, wanted in (
            ("kl_gap", u, [0, np.inf, np.nan, np.nan]),
            ("kl_gap_grad", u, [1, 0, np.nan, np.nan]),
            ("kl_gap_hess", u, [-2 / 3, 0, np.nan, np.nan]),
            ("neg_kl", x, [-np.inf, 0, np.nan]),
            ("neg_kl_grad", x, [0.5, 0, np.nan]),
            ("neg_kl_hess", x, [0, 0, np.nan]),
        ):
            np.testing.assert_array_equal(truth.truth(name, args).hi, wanted)

    def test_limits_of_two_arguments(self):
        mu = np.array([0.0, 0.0, 2.0, np.inf, 0.0, np.inf, 1.0])
        log_sigma2 = np.array([1.0, -np.inf, -np.inf, 0.0, np.inf, np.inf, np.nan])
        nan, inf = np.nan, np.inf
        for name, wanted in (
            ("neg_kl_normal", [0, nan, -inf, -inf, 0, nan, nan]),
            ("neg_kl_normal.dmu", [0, nan, -0.5, 0, 0, nan, nan]),
            ("neg_kl_normal.dlog_sigma2", [0, nan, 0.5, 0.5, 0, nan, nan]),
        ):
            np.testing.assert_array_equal(truth.truth(name, mu, log_sigma2).hi, wanted)


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

    def test_scale_is_a_power_of_two(self):
        """A truth far below the smallest subnormal number is as good as zero."""
        assert ulp.error([0.0, 5e-324], exact([1.5, 1.5], -1080), "float64").tolist() == [
            1.5 * 2.0**-6,
            1 - 1.5 * 2.0**-6,
        ]
        nothing, one = ulp.error([0.0, 5e-324], exact([1.5, 1.5], -100_000), "float64")
        assert nothing < 2.0**-800
        assert one == 1.0

    def test_half_an_ulp_below_a_power_of_two(self):
        just_below_one = truth.Truth(
            np.array([1.0]), np.array([-(2.0**-60)]), np.zeros(1, dtype=np.int64)
        )
        assert ulp.signed_error([1.0], just_below_one, "float64") == [2.0**-7]

    def test_overflow(self):
        largest = np.finfo(np.float64).max
        assert ulp.signed_error([np.inf], exact(largest), "float64") == [1.0]
        assert ulp.signed_error([np.inf, -np.inf], exact([1.5, 1.5], 1024), "float64").tolist() == [
            0.0,
            -2.5 * 2.0**52,
        ]
        assert ulp.signed_error([np.inf, np.nan, 1.0], exact([np.inf] * 3), "float64").tolist() == [
            0.0,
            np.inf,
            np.inf,
        ]
        assert ulp.signed_error([np.nan, 1.0], exact([np.nan] * 2), "float64").tolist() == [
            0.0,
            np.inf,
        ]

    def test_bfloat16_rounds_to_even(self):
        step = 2.0**-7
        values = np.array(
            [1 + step / 2, 1 + 1.5 * step, 1 + 0.51 * step, -1 - step / 2, np.inf, 3.4e38, 1e-45],
            dtype=np.float32,
        )
        assert ulp.round_to_bfloat16(values).tolist() == [
            1.0, 1 + 2 * step, 1 + step, -1.0, np.inf, np.inf, 0.0,
        ]  # fmt: skip
        assert np.isnan(ulp.round_to_bfloat16(np.array([np.nan], dtype=np.float32)))


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

        found = searching.search(
            "kl_gap", defective, rng=np.random.default_rng(0), count=50_000, rounds=20
        )
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

        found = searching.search(
            "kl_gap_grad",
            defective,
            rng=np.random.default_rng(0),
            count=0,
            rounds=0,
            edges={"u": [edge], "x": []},
        )
        assert found.inputs == (float(np.nextafter(edge, 4)).hex(),)
        assert found.tried == 17

    def test_remembers(self):
        def defective(x):
            exact = nearest("neg_kl", x)
            return np.where(x == 12.34375, np.nan, exact)

        found = searching.search(
            "neg_kl",
            defective,
            rng=np.random.default_rng(0),
            count=100,
            rounds=0,
            known=[(12.34375,)],
        )
        assert found.ulp == np.inf


class TestExhaustive:
    @staticmethod
    def scan(narrow, wide, dtype, start, stop, name="neg_kl_hess"):
        return exhaustive.scan(name, narrow, wide, dtype, start, stop)

    @staticmethod
    def cube(x):
        with np.errstate(all="ignore"):
            return (x.astype(np.float64) ** 3).astype(x.dtype)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_agrees_with_the_definition(self, dtype):
        def square_root(x):
            with np.errstate(all="ignore"):
                return np.sqrt(x) * x.dtype.type(1.001)

        def wide(x):
            with np.errstate(all="ignore"):
                return np.sqrt(x)

        tally = self.scan(square_root, wide, dtype, 0x0001, 0x7000)
        shift = np.arange(0x0001, 0x7000)
        inputs = (
            shift.astype(np.uint16).view(np.float16)
            if dtype == "float16"
            else (shift.astype(np.uint32) << 16).view(np.float32)
        )
        got = square_root(inputs)
        if dtype == "bfloat16":
            got = ulp.round_to_bfloat16(got)
        errors = ulp.error(got, exact(wide(inputs.astype(np.float64))), dtype)
        assert tally.tried == len(shift)
        assert tally.ulp == errors.max()
        assert tally.input == float(inputs[errors.argmax()])

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
    def test_overflow_and_nan_agree(self, dtype):
        """From large numbers through infinity and every NaN: only roundings are errors."""
        start, stop = (0x6C00, 0x8000) if dtype == "float16" else (0x5E00, 0x8000)
        if dtype == "float32":
            start, stop = 0x7F7F_0000, 0x7F81_0000
        tally = self.scan(self.cube, self.cube, dtype, start, stop)
        assert tally.tried == stop - start
        assert tally.wrong_special == 0
        assert tally.ulp <= 0.5 + 2.0**-14

    @pytest.mark.parametrize("planted", [np.inf, np.nan, -1.0])
    def test_finds_one_wrong_value(self, planted):
        where = np.float32(1.2345678)
        start = int(where.view(np.uint32)) - 70_000

        def wide(x):
            return x * 1.5

        def narrow(x):
            good = (x.astype(np.float64) * 1.5).astype(np.float32)
            return np.where(x == where, np.float32(planted), good)

        tally = self.scan(narrow, wide, "float32", start, start + 100_000)
        assert tally.input == float(where)
        assert tally.wrong_special == (not np.isfinite(planted))
        assert (float(where).hex() in tally.first_wrong) == (not np.isfinite(planted))

    def test_a_number_for_nan_is_wrong(self):
        tally = self.scan(
            np.nan_to_num, lambda x: x, "float32", 0x7FC0_0000, 0x7FC0_0100, name="neg_kl_hess"
        )
        assert tally.wrong_special == 256
        assert tally.ulp == np.inf

    def test_counts_steps_in_the_wrong_direction(self):
        start = int(np.float32(2.0).view(np.uint32))

        stop = start + 50_000

        def sawtooth(x):
            number = x.astype(np.float32).view(np.uint32)
            return np.where(number % 1000 == 0, x.dtype.type(1), x)

        steps = sum(number % 1000 == 0 for number in range(start + 1, stop))
        scan = self.scan
        assert scan(sawtooth, sawtooth, "float32", start, stop, "kl_gap").not_monotone == steps
        assert scan(sawtooth, sawtooth, "float32", start, stop).not_monotone == 0
        assert scan(np.positive, np.positive, "float32", start, stop, "kl_gap").not_monotone == 0
        for low, high in ((0, 1 << 15), (1 << 15, (1 << 16) - 2000)):
            tally = scan(np.positive, np.positive, "float16", low, high, "neg_kl")
            assert tally.not_monotone == 0
        assert scan(np.negative, np.negative, "float16", 0, 0x7C00, "kl_gap_grad").not_monotone == 0
        assert scan(np.negative, np.negative, "float16", 0, 0x7C00, "kl_gap").not_monotone == 0x7BFF

    def test_tallies_merge(self):
        a = exhaustive.Tally(tried=3, ulp=0.5, input=1.0, not_nearest=1)
        b = exhaustive.Tally(tried=4, ulp=0.7, input=2.0, wrong_special=1, first_wrong="f(2)")
        both = a.merge(b)
        assert (both.tried, both.ulp, both.input, both.not_nearest) == (7, 0.7, 2.0, 1)
        assert (both.wrong_special, both.first_wrong) == (1, "f(2)")


ROW = {
    "function": "kl_gap",
    "dtype": "float64",
    "kernel": "baseline",
    "range": "u in [0, inf]",
    "ulp": 0.7500001,
    "inputs": ["0x1.8p+0"],
    "wanted": "1.5",
    "method": "search",
    "tried": 10,
    "sources_sha256": "0",
}


class TestRecords:
    def test_worst_inputs_are_never_removed(self, tmp_path, monkeypatch):
        monkeypatch.setattr(driver, "WORST_INPUTS", tmp_path / "worst.json")
        driver.remember([ROW])
        driver.remember([{**ROW, "inputs": ["0x1.0p+0"]}, ROW])
        assert [e["inputs"] for e in driver.worst_inputs()] == [["0x1.0p+0"], ["0x1.8p+0"]]

    def test_claims_are_rounded_up(self):
        module = {}
        exec(claims.render([ROW]), module)
        (claim,) = module["CLAIMS"]
        assert claim.ulp == 0.751
        assert claim.inputs == ("0x1.8p+0",)
        assert module["worst"]("kl_gap", "float64") is claim

    def test_the_committed_claims_are_those_of_the_reports(self):
        assert claims.CLAIMS.read_text(encoding="utf-8") == claims.render(claims.results())

    def test_the_worst_machine_is_claimed(self):
        module = {}
        exec(claims.render([ROW, {**ROW, "ulp": 0.9}, {**ROW, "ulp": 0.8}]), module)
        assert [claim.ulp for claim in module["CLAIMS"]] == [0.9]

    def test_reports_of_different_sources_do_not_mix(self):
        other = {**ROW, "sources_sha256": "1"}
        with pytest.raises(RuntimeError, match="different sources of the family compiled"):
            claims.render([ROW, {**other, "kernel": "avx2"}])
        claims.render([ROW, {**other, "kernel": "python"}])

    def test_reports_are_read_together(self, tmp_path):
        for name in ("a", "b"):
            report = {"rows": [{"name": name}]}
            (tmp_path / f"accuracy_{name}.json").write_text(json.dumps(report))
        assert [row["name"] for row in claims.results(tmp_path)] == ["a", "b"]

    def test_outdated(self):
        today = {**ROW, "sources_sha256": sources.sha256("baseline")}
        assert claims.outdated([today, {**ROW, "kernel": "python"}]) == ["python"]

    def saved(self, path, row, **about):
        about = {
            "command": "c",
            "date": "d",
            "versions": {"numpy": "1"},
            "machine": {"cpu": "x"},
            "sources_sha256": sources.sha256(row["kernel"]),
            **about,
        }
        driver.save([row], path, about)
        return json.loads(path.read_text())["rows"]

    def test_rows_are_kept_beside_new_ones(self, tmp_path, monkeypatch):
        path = tmp_path / "accuracy_search.json"
        self.saved(path, ROW)
        rows = self.saved(path, {**ROW, "kernel": "python", "ulp": 1.0})
        assert [(row["kernel"], row["ulp"]) for row in rows] == [
            ("baseline", ROW["ulp"]),
            ("python", 1.0),
        ]
        rows = self.saved(path, {**ROW, "ulp": 0.6})
        assert [row["ulp"] for row in rows] == [0.6, 1.0]
        now = sources.sha256
        monkeypatch.setattr(
            sources, "sha256", lambda kernel: now(kernel) + (kernel == "python") * "!"
        )
        assert [row["ulp"] for row in self.saved(path, ROW)] == [ROW["ulp"]]

    def test_rows_of_other_versions_are_not_lost_in_silence(self, tmp_path):
        path = tmp_path / "accuracy_search.json"
        self.saved(path, ROW)
        with pytest.raises(RuntimeError, match=r"measured with numpy 1, not 2: measure where that"):
            self.saved(path, ROW, versions={"numpy": "2"})

    def test_sources_may_not_change_meanwhile(self, tmp_path):
        with pytest.raises(RuntimeError, match="changed while they were measured"):
            self.saved(tmp_path / "a.json", ROW, sources_sha256="0")

    def test_what_is_done_is_known(self):
        job = {k: ROW[k] for k in ("function", "dtype", "kernel", "method")} | {"count": 10}
        assert driver.is_done(job, [ROW])
        assert not driver.is_done(job | {"count": 11}, [ROW])
        assert not driver.is_done(job | {"dtype": "float32"}, [ROW])

    def test_rounding_up_never_rounds_down(self):
        rng = np.random.default_rng(0)
        values = [*rng.uniform(0, 3, 200).tolist(), 0.5, 1.5, 0.501]
        for value in values:
            assert value <= claims.rounded_up(value) <= value + 0.001001


class TestSources:
    @pytest.mark.parametrize(
        ("file", "families"),
        [
            ("_numpy/c/exact_ufuncs.c", {"compiled"}),
            ("_numpy/c/exact_coefficients.h", {"compiled"}),
            ("_arithmetic/functions.py", {"python", "torch", "triton", "jax", "tensorflow"}),
            (
                "_arithmetic/coefficients_more.py",
                {"python", "torch", "triton", "jax", "tensorflow"},
            ),
            ("_arithmetic/normal_float32.py", {"python", "torch", "triton", "jax", "tensorflow"}),
            ("torch/_namespace.py", {"torch"}),
            ("_numpy/c/float32_ufuncs.c", {"torch"}),
            ("_numpy/c/float32_kernels.h", {"torch"}),
            ("tensorflow/_rules.py", {"tensorflow"}),
            ("torch/_triton/elementary.py", {"triton"}),
        ],
    )
    def test_a_file_counts_for_its_family(self, file, families, tmp_path):
        kernels = ("avx2", "arrays", "inductor", "triton", "jax", "tensorflow")
        before = {kernel: sources.sha256(kernel, tmp_path) for kernel in kernels}
        path = tmp_path / "logunif_kl" / file
        path.parent.mkdir(parents=True)
        path.write_text("x = 1\n")
        changed = {sources.family(k) for k in kernels if sources.sha256(k, tmp_path) != before[k]}
        assert changed == families


class TestFlushing:
    """Zeros for subnormal numbers are told apart from errors."""

    def test_zero_for_a_subnormal_truth_is_right(self):
        truths = exact([2.0**-127, 2.0**-126, -(2.0**-149)])
        points = [np.ones(3, "float32")]
        found = flushing.flushed_error("neg_kl", np.zeros(3), truths, points)
        assert found.tolist() == [0.0, 2.0**23, 0.0]

    def test_other_numbers_for_a_subnormal_truth_are_not(self):
        found = flushing.flushed_error(
            "neg_kl", np.array([2.0**-126]), exact(2.0**-127), [np.ones(1, "float32")]
        )
        assert found.tolist() == [2.0**22]

    def test_subnormal_arguments_may_be_zeros(self):
        mu, log_sigma2 = np.float32([1e-40, 1e-37, 1e-40]), np.float32([-180.0, -180.0, -180.0])
        points = [mu, log_sigma2]
        truths = truth.truth("neg_kl_normal", *points)
        assert (np.abs(np.ldexp(truths.hi, truths.scale)) > 2.0**-126).all()
        got = np.array([0.0, 0.0, 1e-20])
        found = flushing.flushed_error("neg_kl_normal", got, truths, points)
        assert found[0] == 0.0
        assert (found[1:] > 1000).all()

    def test_a_zero_may_come_through_as_the_subnormal_it_was_taken_for(self):
        points = [np.float32([1e-40]), np.float32([-180.0])]
        truths = truth.truth("neg_kl_normal.dmu", *points)
        for got, right in ((-1e-40, True), (1e-37, False)):
            found = flushing.flushed_error("neg_kl_normal.dmu", np.float32([got]), truths, points)
            assert (found[0] == 0.0) == right

    def test_ranges_say_so(self):
        assert flushing.range_of("torch", "x", "all") == "all"
        assert flushing.range_of("jax", "x", "all") == "all, subnormal results 0"
        assert flushing.range_of("tensorflow", "x", "all") == "all, subnormal results 0"
        assert flushing.range_of("jax", "normal", "all") == "all, subnormals 0"

    def test_exhaustive_tallies(self):
        def wide(x):
            return np.where(np.isfinite(x), 2.0**-129, np.nan)

        def narrow(x):
            return np.where(np.isfinite(x), 0.0, np.nan).astype("float32")

        for flushes, ulp_found in ((False, 2.0**4), (True, 0.0)):
            tally = exhaustive.scan("neg_kl_hess", narrow, wide, "bfloat16", 0, 1 << 15, flushes)
            assert tally.ulp == ulp_found


class TestFrameworks:
    """The blocks, types and outputs of a framework's kernel."""

    @pytest.mark.parametrize("kernel", ["torch", "jax", "tensorflow"])
    def test_agrees_with_the_kernel_in_use(self, kernel):
        for package in FRAMEWORKS[kernel]:
            pytest.importorskip(package)
        rng = np.random.default_rng(0)
        mu, x = rng.normal(size=20_000), rng.normal(size=20_000) - 3
        for name in OF_FRAMEWORKS:
            function = FUNCTIONS[name]
            for dtype in ("float32", "float64"):
                points = [a.astype(dtype) for a in (mu, x)[-function.nin :]]
                got = implementation(function, kernel, dtype)(*points)
                assert got.dtype == dtype
                assert searching.error(got, truth.truth(name, *points), dtype).max() < 10

    def test_triton_is_interpreted(self):
        """In a process of its own, because what is interpreted is chosen once in a process."""
        for package in FRAMEWORKS["triton"]:
            pytest.importorskip(package)
        job = {"method": "search", "function": "neg_kl_normal.dmu", "dtype": "float32"}
        job |= {"kernel": "triton", "count": 1000, "rounds": 1, "seed": 0, "known": []}
        [row] = driver.measure([job], Console(quiet=True))
        assert 0.1 < row["ulp"] < 10

    @pytest.mark.parametrize("kernel", ["torch", "jax", "tensorflow"])
    def test_half_types_of_two_arguments(self, kernel):
        for package in FRAMEWORKS[kernel]:
            pytest.importorskip(package)
        rng = np.random.default_rng(5)
        mu, log_sigma2 = rng.normal(size=(2, 300)).astype(np.float16)
        for name in ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2"):
            got = implementation(FUNCTIONS[name], kernel, "float16")(mu, log_sigma2)
            assert got.dtype == np.float16
            assert searching.error(got, truth.truth(name, mu, log_sigma2), "float16").max() < 0.51

    def test_no_half_types_of_two_arguments(self):
        with pytest.raises(RuntimeError, match="neg_kl_normal is not measured in float16 on tri"):
            implementation(FUNCTIONS["neg_kl_normal"], "triton", "float16")


def test_command_line_names_what_it_cannot_do(capsys):
    from validation.accuracy.__main__ import main

    with pytest.raises(SystemExit):
        main(["search", "--functions", "kl_gap", "--kernels", "sse9"])
    assert "sse9" in capsys.readouterr().err

"""What the CUDA kernels cost, counted without a GPU: the counts may fall, and may not rise."""

import importlib.util

import pytest

pytest.importorskip("torch")
if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)

from validation.cuda import CAPABILITIES, KERNELS, cost

# Instructions and registers on sm_90: lower them with the kernels.
MOST = {"value": (344, 32), "value_sum": (399, 38), "gradient": (381, 32)}


@pytest.fixture(scope="module", autouse=True)
def empty_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


def committed():
    return json.loads(report.RESULT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kernel", compiled.KERNELS)
class TestKernels:
    def test_cost_no_more(self, kernel):
        counted = count.count(compiled.compiled(kernel, 90))
        most, registers = MOST[kernel]
        assert counted.instructions <= most
        assert counted.registers <= registers

    @pytest.mark.parametrize("capability", report.CAPABILITIES)
    def test_spill_nothing(self, kernel, capability):
        code = compiled.compiled(kernel, capability)
        assert (count.count(code).spills, code.stack) == (0, 0)

    def test_neither_flush_nor_widen(self, kernel):
        text = compiled.compiled(kernel, 90).ptx
        # The exponential and the inverse take no subnormal argument, and make no such result.
        rest = text.replace("ex2.approx.ftz.f32", "").replace("rcp.approx.ftz.f32", "")
        assert not [word for word in (".f64", ".ftz.f32", "div.full", ".local") if word in rest]
        if kernel != "value_sum":
            assert text.count("ld.global.v4.b32") == 2
            assert text.count("st.global.v4.b32") == (2 if kernel == "gradient" else 1)

    def test_are_counted_whole(self, kernel):
        code = compiled.compiled(kernel, 90)
        counted = count.count(code)
        assert sum(counted.kinds.values()) == pytest.approx(counted.instructions, abs=1e-9)
        stores = [each for each in instructions(code.sass) if each.opcode.startswith("STG")]
        assert len(stores) == (2 if kernel == "gradient" else 1)
        # The path is the whole code before its last exit, but for the calls of the division.
        path = usual_path(instructions(code.sass), code.trips)
        end = max(each.address for each in path)
        skipped = [e for e in instructions(code.sass) if e.address < end and e not in path]
        calls = sum(each.opcode.startswith("CALL") for each in skipped)
        assert len(skipped) <= 5 * calls


def test_without_triton(monkeypatch, capsys):
    monkeypatch.setattr(report, "find_spec", lambda name: None if name == "triton" else name)
    with pytest.raises(SystemExit):
        report.main([])
    said = "the kernels cannot be compiled without triton: install it"
    assert said in capsys.readouterr().err


def test_the_report_holds_every_kernel_and_gpu():
    old = committed()
    rows = {(row["capability"], row["kernel"]) for row in old["kernels"]}
    assert rows == {(c, kernel) for c in (80, 90, 100) for kernel in compiled.KERNELS}
    assert [row["gpu"] for row in old["roofline"]] == [gpu.name for gpu in roofline.GPUS]


def sass(*lines):
    """Write code as cuobjdump does, 16 bytes to an instruction."""
    return "\n".join(
        f"        /*{16 * i:04x}*/   {line} ;   /* 0x0 */" for i, line in enumerate(lines)
    )


def test_what_cannot_be_counted():
    for code, words in (
        (("CALL 0x20", "EXIT"), "the usual path has CALL at 0x0"),
        (("MOV R0, R1", "@P0 BRA 0x0", "EXIT"), "an unexpected loop ends at 0x10"),
    ):
        with pytest.raises(ValueError, match=words):
            usual_path(instructions(sass(*code)), 1)
    with pytest.raises(ValueError, match=r"no kind is known for the instruction NONSENSE R1"):
        instructions(sass("NONSENSE R1"))[0].kind  # noqa: B018
    with pytest.raises(ValueError, match=r"the text holds no instruction"):
        instructions("nothing")


def test_spills_and_loads():
    lines = ("LDG.E.128 R0, [R4]", "@P0 LDG.E R9, [R4]", "STL [R1], R2", "LDL R2, [R1]", "EXIT")
    code = compiled.Compiled(sass(*lines), "", 10, 8, 2, 20, 1)
    found = count.count(code)
    assert (found.spills, found.stack, found.instructions) == (2, 8, 2.5)
    with pytest.raises(ValueError, match="the path loads 20 bytes where a thread loads 16"):
        count.count(code._replace(loads=16))


class TestRoofline:
    GPU = roofline.GPU("G", 90, 100, 1e9, 1e12, 128, "none")

    def counts(self, n):
        kinds = {"multiply and add": n / 2, "compare and select": n / 8}
        return dict.fromkeys(roofline.BYTES, Count(n, n, kinds, 32, 0, 0, 0))

    def test_each_limit(self):
        counts = self.counts(128.0)["value"]
        times = roofline.seconds(self.GPU, "value", counts)
        assert times["schedulers"] == pytest.approx(1 / (100 * 1e9))
        assert times["memory"] == pytest.approx(12e-12)
        assert times["multiply and add"] == times["schedulers"] / 2
        counts.kinds["special function"] = 32.0
        times = roofline.seconds(self.GPU, "value", counts)
        assert max(times, key=times.get) == "special functions"
        # A packed instruction is issued once, and computes two results.
        packed = self.counts(64.0)["value"]._replace(lanes=96.0)
        times = roofline.seconds(self.GPU, "value", packed)
        assert times["multiply and add"] == times["schedulers"] == pytest.approx(0.5e-11)

    def test_the_fraction(self):
        assert roofline.fraction(self.GPU, self.counts(8.0)) == 1.0
        slow = roofline.fraction(self.GPU, self.counts(1280.0))
        assert slow == pytest.approx(24e-12 / (2 * 100e-12))
        assert roofline.fraction(self.GPU, self.counts(1280.0), 0.5) == pytest.approx(slow / 2)

    def test_the_rate_that_the_target_is_reckoned_with(self):
        h100 = next(gpu for gpu in roofline.GPUS if gpu.name.startswith("H100"))
        rate = roofline.USED * h100.processors * h100.clock * 128
        assert math.isclose(rate, 2.9e13, rel_tol=0.03)
        for gpu, peak in zip(roofline.GPUS, (19.5e12, 67e12, 67e12, 75e12), strict=True):
            assert 2 * gpu.fp32 * gpu.processors * gpu.clock == pytest.approx(peak, rel=0.005)


# The worst errors of the report in ulp, with the special functions correctly rounded. The errors
# that the PTX ISA allows these add about as much again.
WORST = {"neg_kl_normal": 2.65, "neg_kl_normal.dmu": 2.32, "neg_kl_normal.dlog_sigma2": 2.57}


class TestAccuracy:
    def test_of_the_report(self):
        rows = committed()["accuracy"]
        found = {(row["function"], row["share_of_documented_error"]): row for row in rows}
        assert set(found) == {(f, share) for f in emulate.FUNCTIONS for share in emulate.SHARES}
        for function, most in WORST.items():
            errors = [found[function, share]["ulp"] for share in emulate.SHARES]
            assert found[function, 0.0]["ulp"] <= most
            assert errors == sorted(errors)

    @pytest.mark.parametrize("function", emulate.FUNCTIONS)
    def test_of_today(self, function):
        """At the worst point of the report, and of a sample."""
        evaluate = emulate.evaluator(function, Approximation(0.0))
        for row in committed()["accuracy"]:
            if row["function"] == function and row["share_of_documented_error"] == 0.0:
                point = [np.array([float.fromhex(text)], np.float32) for text in row["at"]]
                [error] = search.measure(function, evaluate, point)
                assert round(float(error), 4) == row["ulp"]
        sample = emulate.points(function, 2000)
        assert search.measure(function, evaluate, sample).max() <= WORST[function]

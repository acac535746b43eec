"""What the CUDA kernels cost, counted without a GPU: the counts may fall, and may not rise."""

import importlib.util
import json
import math

import numpy as np
import pytest

from validation.accuracy import search

pytest.importorskip("torch")
if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)

from validation.cuda import __main__ as report
from validation.cuda import compiled, count, emulate, roofline
from validation.cuda.count import Count, instructions, usual_path
from validation.cuda.ptx import Approximation

# Instructions a weight and registers on sm_90: lower them with the kernels.
MOST = {"value": (85.75, 32), "value_sum": (87.875, 38), "gradient": (95.0, 32)}


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


class TestReport:
    def test_without_triton(self, monkeypatch, capsys):
        monkeypatch.setattr(report, "find_spec", lambda name: None if name == "triton" else name)
        with pytest.raises(SystemExit):
            report.main([])
        said = "the kernels cannot be compiled without triton: install it"
        assert said in capsys.readouterr().err

    def test_holds_every_kernel_and_gpu(self):
        old = committed()
        rows = {(row["capability"], row["kernel"]) for row in old["kernels"]}
        assert rows == {(c, kernel) for c in (80, 90, 100) for kernel in compiled.KERNELS}
        assert [row["gpu"] for row in old["roofline"]] == [gpu.name for gpu in roofline.GPUS]


def sass(*lines):
    """Write code as cuobjdump does, 16 bytes to an instruction."""
    return "\n".join(
        f"        /*{16 * i:04x}*/   {line} ;   /* 0x0 */" for i, line in enumerate(lines)
    )


def opcodes(path):
    return {each.address // 16: times for each, times in path.items()}


class TestPath:
    def test_a_call_is_jumped_over(self):
        code = sass("FADD R0, R1, R2", "@!P4 BRA 0x40", "MOV R3, R4", "CALL.REL.NOINC 0x60")
        code += "\n" + sass(*["NOP"] * 4, "FADD R0, R0, R0", "EXIT", "NOP").split("\n", 4)[4]
        assert opcodes(usual_path(instructions(code), 1)) == {0: 1, 1: 1, 4: 1, 5: 1}

    def test_other_code_is_counted(self):
        code = sass("@P0 EXIT", "@!P4 BRA 0x30", "MOV R3, R4", "EXIT")
        assert opcodes(usual_path(instructions(code), 1)) == dict.fromkeys(range(4), 1)

    @pytest.mark.parametrize(
        ("end", "body"),
        [
            (("@P0 BRA 0x10", "NOP"), (1, 2)),
            (("BRA.U UP0, 0x10", "NOP"), (1, 2)),
            (("@!P1 CALL 0x40", "BRA 0x10"), (1, 2, 3)),
        ],
    )
    def test_a_loop(self, end, body):
        code = sass("MOV R0, R1", "FADD R2, R2, R2", *end, "EXIT")
        found = opcodes(usual_path(instructions(code), 4))
        assert found == {i: 4 if i in body else 1 for i in range(5)}
        with pytest.raises(ValueError, match="an unexpected loop ends at 0x"):
            usual_path(instructions(code), 1)

    def test_what_is_unknown(self):
        with pytest.raises(ValueError, match=r"the usual path has CALL at 0x0"):
            usual_path(instructions(sass("CALL 0x20", "EXIT")), 1)
        with pytest.raises(ValueError, match=r"no kind is known for the instruction NONSENSE R1"):
            instructions(sass("NONSENSE R1"))[0].kind  # noqa: B018
        with pytest.raises(ValueError, match=r"the text holds no instruction"):
            instructions("nothing")

    @pytest.mark.parametrize(
        ("line", "kind"),
        [
            ("FFMA.RM R1, R2, R3.reuse, 0.5", "multiply and add"),
            ("FFMA2 R12, R12.F32x2.HI_LO, R32.F32x2.HI_LO, R1", "multiply and add"),
            ("HFMA2.MMA R0, -RZ, RZ, 0.9, 0.5", "move"),
            ("IMAD.MOV.U32 R0, RZ, RZ, R1", "move"),
            ("IMAD.WIDE.U32 R0, R1, 0x200, RZ", "integer and logic"),
            ("FMNMX.NAN R0, R1, 1, PT", "compare and select"),
            ("MUFU.EX2 R0, R1", "special function"),
            ("LDG.E.128 R0, desc[UR4][R4.64]", "memory"),
            ("LDL R0, [R1]", "memory"),
            ("BSYNC B0", "control"),
        ],
    )
    def test_kinds(self, line, kind):
        assert instructions(sass(line))[0].kind == kind

    def test_spills_and_loads(self):
        lines = ("LDG.E.128 R0, [R4]", "@P0 LDG.E R9, [R4]", "STL [R1], R2", "LDL R2, [R1]", "EXIT")
        code = compiled.Compiled(sass(*lines), "", 10, 8, 2, 20, 1)
        found = count.count(code)
        assert (found.spills, found.stack, found.instructions) == (2, 8, 2.5)
        with pytest.raises(ValueError, match="the path loads 20 bytes where a thread loads 16"):
            count.count(code._replace(loads=16))


class TestRoofline:
    GPU = roofline.GPU("G", 90, 100, 1e9, 1e12, 128, "none")

    def counts(self, n, **kinds):
        kinds = {"multiply and add": n / 2, "compare and select": n / 8} | kinds
        return dict.fromkeys(roofline.BYTES, Count(n, n, kinds, 32, 0, 0, 0))

    def test_the_schedulers(self):
        times = roofline.seconds(self.GPU, "value", self.counts(128.0)["value"])
        assert times["schedulers"] == pytest.approx(1 / (100 * 1e9))
        assert times["memory"] == pytest.approx(12e-12)
        assert times["multiply and add"] == times["schedulers"] / 2

    def test_the_special_functions(self):
        counts = self.counts(128.0, **{"special function": 32.0})
        times = roofline.seconds(self.GPU, "value", counts["value"])
        assert max(times, key=times.get) == "special functions"

    def test_packed_instructions_compute_twice(self):
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

    def errors(self, function, points, approximation=Approximation):
        evaluate = emulate.evaluator(function, approximation(0.0))
        return search.measure(function, evaluate, points)

    @pytest.mark.parametrize("function", emulate.FUNCTIONS)
    def test_at_the_worst_point(self, function):
        for row in committed()["accuracy"]:
            if row["function"] == function and row["share_of_documented_error"] == 0.0:
                point = [np.array([float.fromhex(text)], np.float32) for text in row["at"]]
                [error] = self.errors(function, point)
                assert round(float(error), 4) == row["ulp"]

    @pytest.mark.parametrize("function", emulate.FUNCTIONS)
    def test_of_a_sample(self, function):
        assert self.errors(function, emulate.points(function, 2000)).max() <= WORST[function]

    def test_a_wrong_inverse_is_seen(self):
        class Wrong(Approximation):
            def apply(self, exact, a):
                return super().apply(exact * (1 + 1e-4), a)

        points = emulate.points("neg_kl_normal", 100)
        assert self.errors("neg_kl_normal", points, Wrong).max() > 50

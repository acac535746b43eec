"""Every committed result measured the sources that are here, and says so by their hash."""

import json
import shutil
import struct
import zlib

import pytest

from logunif_kl.cli import provenance, sources
from logunif_kl.cli._output import write_record
from validation.accuracy import sources as of_kernels
from validation.paths import RESULTS, ROOT, RUNS
from validation.reports import REPORTS
from validation.tools import stale

FILES = list(stale.committed())
EXPERIMENTS = ("kingma2015", "molchanov2017", "haussmann2018", "gal2016")
# One takes a GPU, the others hours of training, or a quiet machine.
_TO_TRAIN = ("kingma2015/", "molchanov2017/", "haussmann2018/")
_TRAINED = {
    f"validation/results/{name}.{kind}"
    for name in (
        *(
            f"kingma2015/{name}"
            for name in ("constraint", "extra_variance", "gradient_variance", "test_error")
        ),
        *("haussmann2018/learning_curves", "haussmann2018/moments"),
        *(f"molchanov2017/{name}" for name in ("lenet_300_100", "lenet_5_caffe", "threshold")),
    )
    for kind in ("json", "png")
} | {
    f"validation/results/{name}.json"
    for name in (
        *("kingma2015/correlated_assumptions", "kingma2015/input_rate"),
        *("kingma2015/shared_noise", "kingma2015/speed", "kingma2015/variance_assumptions"),
        *("molchanov2017/gradients", "molchanov2017/inference"),
    )
}
TO_COME = {
    "validation/results/bench/bench_cuda.json",
    *(path for path in REPORTS if path.removeprefix("validation/results/").startswith(_TO_TRAIN)),
} - _TRAINED
# The experiments call layers whose moments are tested, or functions whose accuracy is.
MEASURED = {
    kind
    for kind in sources.DEPENDS
    if kind.partition("_")[0] not in (*EXPERIMENTS, "hron2017") or kind == "hron2017_remarks"
}


@pytest.mark.parametrize("file", FILES)
def test_measured_the_sources_that_are_here(file):
    assert list(stale.complaints(file)) == []


def test_all_files_are_looked_at():
    inside = [p for p in (ROOT / "validation" / "results").rglob("*") if p.is_file()]
    elsewhere = [path for path in inside if "." in path.stem]
    assert len(FILES) == len(inside) - len(elsewhere) + 1
    assert {path.parent.name for path in elsewhere} <= {"accuracy", "neighbours"}
    assert set(FILES) == set(REPORTS) - TO_COME


def useless(folder, results=RESULTS):
    """Name the parts that other sources than are here computed, or whose record is complete."""
    for path in sorted(folder.rglob("*.json")):
        paper, name = path.parent.parts[-2:]
        about = json.loads(path.read_text(encoding="utf-8"))["about"]
        old = about["sources_sha256"] != sources.sha256(f"{paper}_{name}")
        if old or (results / paper / f"{name}.json").exists():
            yield path.name


def test_the_committed_parts_of_experiments_serve():
    assert list(useless(RUNS)) == []


def test_parts_that_do_not_serve_are_found(tmp_path):
    runs, results = tmp_path / "runs", tmp_path / "results"
    new, done = runs / "kingma2015" / "test_error", runs / "hron2017" / "slides"
    (results / "hron2017").mkdir(parents=True)
    (results / "hron2017" / "slides.json").touch()
    for folder, name, sha256 in (
        (new, "a", sources.sha256("kingma2015_test_error")),
        (new, "b", "0"),
        (done, "c", sources.sha256("hron2017_slides")),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"about": {"sources_sha256": sha256}})
        (folder / f"{name}.json").write_text(text)
    assert list(useless(runs, results)) == ["c.json", "b.json"]


class TestSources:
    def test_each_kind_has_its_sources_here(self):
        for kind in sources.DEPENDS:
            assert len(sources.sha256(kind)) == 64

    def test_each_pattern_matches(self):
        for kind, patterns in sources.DEPENDS.items():
            for pattern in patterns:
                assert sources.paths([pattern]), (kind, pattern)

    def test_every_kind_of_a_report_is_known(self):
        assert {kind for report in REPORTS.values() for kind in report.of} <= set(sources.DEPENDS)

    def test_none_where_sources_are_absent(self, tmp_path):
        package = tmp_path / "logunif_kl"
        shutil.copytree(ROOT / "logunif_kl", package, ignore=shutil.ignore_patterns("c"))
        assert sources.sha256("compare", root=tmp_path) is None
        assert sources.sha256("bench_jax", root=tmp_path) is None
        assert sources.sha256("fit", root=tmp_path) is None

    @pytest.mark.parametrize(
        ("file", "kinds"),
        [
            ("_arithmetic/tables.py", MEASURED - {"fuzz"}),
            ("_numpy/c/exact_simd.h", MEASURED - {"bench_jax", "capability", "cuda", "neighbours"}),
            ("_numpy/c/float32_simd.h", {"bench_torch", "bench_layers", "bench_jax", "fuzz"}),
            ("torch/c/library.c", {"bench_torch", "bench_layers", "capability", "fuzz"}),
            ("jax/c/ffi.c", {"bench_jax", "capability", "fuzz"}),
            (
                "methods/_kingma.py",
                {"fit", "compare", "validate", "ladder", "papers", "hron2017_remarks"},
            ),
            (
                "methods/_sampling.py",
                {"fit", "compare", "validate", "ladder", "papers"}
                | {"monte_carlo", "hron2017_remarks"},
            ),
            ("torch/_triton/kernels.py", {"bench_torch", "capability", "cuda"}),
            ("torch/nn/_models.py", {"bench_layers"}),
            ("fitting/_fit.py", {"fit", "ladder", "papers"}),
            ("posteriors/_posterior.py", {"papers"}),
            ("_arithmetic/neighbours/vector.py", {"neighbours"}),
            ("torch/neighbours/_rules.py", {"neighbours"}),
            ("jax/_rules.py", {"bench_jax", "capability"}),
            ("cli/_output.py", set()),
            ("reference/_neg_kl.py", set()),
        ],
    )
    def test_what_a_file_counts_for(self, file, kinds):
        path = ROOT / "logunif_kl" / file
        assert path.exists()
        found = {k for k, patterns in sources.DEPENDS.items() if path in sources.paths(patterns)}
        assert found == kinds

    def test_what_a_file_says_counts(self, tmp_path):
        monte_carlo = ROOT / "validation" / "monte_carlo.py"
        for path in sources.paths(sources.DEPENDS["monte_carlo"]):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        assert sources.sha256("monte_carlo", root=tmp_path) == sources.sha256("monte_carlo")
        copy = tmp_path / monte_carlo.relative_to(ROOT)
        copy.write_text(copy.read_text() + "\nanother = 1\n")
        assert sources.sha256("monte_carlo", root=tmp_path) != sources.sha256("monte_carlo")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


class TestStale:
    @pytest.fixture
    def judged(self, tmp_path):
        """What is said of a file with some content."""

        def judged(file, content):
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                write_record(str(path), content)
            return list(stale.complaints(file, tmp_path))

        return judged

    def test_a_result(self, judged):
        file = "validation/results/papers/papers.json"
        assert judged(file, {"sources_sha256": sources.sha256("papers")}) == []
        [old] = judged(file, {"sources_sha256": "0"})
        assert old == f"{file}: it measured other sources than are here; run {COMMAND} again"
        assert "no hash of what it measured" in judged(file, {})[0]
        assert "no hash of what it measured" in judged(file, {"sources_sha256": None})[0]

    def test_a_number_changed_by_hand(self, tmp_path):
        file = "validation/results/papers/papers.json"
        path = tmp_path / file
        path.parent.mkdir(parents=True)
        write_record(str(path), {"sources_sha256": sources.sha256("papers"), "value": 0.1})
        assert list(stale.complaints(file, tmp_path)) == []
        path.write_text(path.read_text().replace("0.1", "0.2"))
        changed = f"{file}: it does not say what its command wrote; run {COMMAND} again"
        assert list(stale.complaints(file, tmp_path)) == [changed]
        path.write_text(json.dumps({"sources_sha256": sources.sha256("papers"), "value": 0.1}))
        assert list(stale.complaints(file, tmp_path)) == [changed]

    def test_the_hash_does_not_depend_on_how_json_is_written(self, tmp_path):
        document = {"b": [1.5, {1: 2.0, 10: 3, 2: None}], "a": float("inf")}
        write_record(str(tmp_path / "a.json"), document)
        found = json.loads((tmp_path / "a.json").read_text())
        assert found["a"] == "inf"
        assert found["content_sha256"] == provenance.seal(found)
        assert provenance.seal(dict(reversed(found.items()))) == provenance.seal(found)

    def test_rows_of_kernels(self, judged):
        file = "validation/results/accuracy/search.json"
        new = {"kernel": "avx2", "sources_sha256": of_kernels.sha256("avx2")}
        old = {"kernel": "python", "sources_sha256": "0"}
        assert judged(file, {"rows": [new]}) == []
        assert judged(file, {"rows": [new, old, old]}) == [
            f"{file}: python measured other sources than are here; "
            "run python -m validation.accuracy measure search again"
        ]

    def test_runs(self, judged):
        file = "validation/results/capability/capability.json"
        new, old = ({"sources_sha256": h} for h in (sources.sha256("capability"), "0"))
        assert judged(file, {"runs": {"default": new, "slow": new}}) == []
        [line] = judged(file, {"runs": {"default": new, "slow": old}})
        assert "run python -m validation.tools.capability --run slow again" in line

    def test_a_picture(self, judged):
        file = "docs/_static/compare.png"
        texts = [chunk(b"tEXt", b"Software\0x"), chunk(b"IEND", b"")]
        sha256 = sources.sha256("compare").encode()
        stamped = chunk(b"tEXt", b"sources_sha256\0" + sha256)
        assert judged(file, b"".join([b"\x89PNG\r\n\x1a\n", stamped, *texts])) == []
        assert "no hash" in judged(file, b"".join([b"\x89PNG\r\n\x1a\n", *texts]))[0]

    def test_a_file_that_no_command_makes(self, judged):
        [line] = judged("validation/results/more/more.json", {})
        assert "does not say which command makes it" in line

    def test_the_command_line(self, monkeypatch, capsys):
        monkeypatch.setattr(stale, "complaints", lambda file: [f"{file}: stale"])
        assert stale.main() == 1
        assert capsys.readouterr().out.splitlines() == [f"{file}: stale" for file in FILES]
        monkeypatch.setattr(stale, "complaints", lambda file: [])
        assert stale.main() == 0


COMMAND = "python -m validation.papers"


def test_a_picture_is_stamped(tmp_path):
    from matplotlib.figure import Figure

    for name in ("a.png", "a.svg", "a.pdf"):
        path = str(tmp_path / name)
        Figure(figsize=(1, 1)).savefig(path, metadata=provenance.stamp(path, "compare"))
    found = stale.png_text((tmp_path / "a.png").read_bytes())
    assert found["sources_sha256"] == sources.sha256("compare")


def test_provenance_has_the_hash():
    assert provenance.provenance("c", of="papers")["sources_sha256"] == sources.sha256("papers")
    both = provenance.provenance("c", of=("bench_torch", "bench_jax"))["sources_sha256"]
    assert both == sources.sha256("bench_torch", "bench_jax")
    assert "sources_sha256" not in provenance.provenance("c")

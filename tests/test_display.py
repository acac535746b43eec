"""Results in a terminal and in a notebook: short reprs, and the same tables as text and HTML."""

from html.parser import HTMLParser

import numpy as np
import pytest

from logunif_kl._atomic_io import new_axes, plain_log_scale
from logunif_kl._display import Table, as_html, as_text, described_briefly, in_short
from logunif_kl.fitting import fit_polynomial, ladder
from logunif_kl.methods import METHODS, measure
from logunif_kl.nn.prediction import Prediction
from logunif_kl.nn.sparsity import Sparsity
from logunif_kl.nn.threshold_curve import ThresholdCurve

COUNTS = Sparsity.of({f"layer {i}": Sparsity(2 * i, 1000) for i in range(1, 5)})
PROBABILITIES = np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)
PREDICTION = Prediction(PROBABILITIES, 0 * PROBABILITIES, np.ones(2), np.array([0.5, 1.0]), 100)
# An object, and its repr.
RESULTS = {
    "Fit": (
        fit_polynomial(),
        "<Fit: polynomial of degree 3, minimax of the value, alpha in [0.05, 1]; "
        "max_error=0.00526, max_grad_error=0.0965>",
    ),
    "Sparsity": (COUNTS, "<Sparsity: kept=20, weights=4000, layers=4>"),
    "ThresholdCurve": (
        ThresholdCurve((0.0, 3.0), (2.0, 1.0), (COUNTS, COUNTS)),
        "<ThresholdCurve: 2 thresholds from 0 to 3, losses from 1 to 2>",
    ),
    "Prediction": (
        PREDICTION,
        "Prediction(mean=float32[2, 2], variance=float32[2, 2], entropy=float64[2], "
        "mutual_information=float64[2], samples=100)",
    ),
    "METHODS": (
        METHODS,
        "<Methods: kingma, molchanov, lower_bound, series, kummer, quadrature, monte_carlo>",
    ),
    "Method": (
        METHODS["molchanov"],
        "<Method molchanov: closed form, Molchanov, Ashukha and Vetrov 2017, arXiv:1701.05369>",
    ),
    "Measurement": (
        measure(METHODS["molchanov"]),
        "<Measurement of molchanov over log_alpha in [-10, 10]; worst errors: value=-0.00937, "
        "gradient=+0.0376>",
    ),
}
results = pytest.mark.parametrize("name", RESULTS)


class Cells(HTMLParser):
    """The tags of a document, and the text of its cells and captions in order."""

    def __init__(self, document):
        super().__init__()
        self.open, self.found, self.sides = [], [], []
        self.feed(document)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag in ("th", "td", "caption"):
            self.found.append("")
            self.sides.append(dict(attributes).get("style"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] in ("th", "td", "caption"):
            self.found[-1] += text


@results
def test_the_repr_is_one_short_line(name):
    result, expected = RESULTS[name]
    assert repr(result) == expected
    assert len(repr(result)) < 150
    assert "\n" not in repr(result)


@results
def test_the_tables_of_text_and_html_have_the_same_cells(name):
    result, _ = RESULTS[name]
    cells = Cells(result._repr_html_()).found
    assert " ".join(" ".join(cells).split()) == " ".join(str(result).split())
    assert len(cells) > 8


TABLES = [
    Table("", ("a", "n", "why"), [("x", "1", "<b> & so"), ("long", "10", "")], ("why",)),
    Table("Title", ("b", "m"), [("y", "2.5")]),
]


def test_tables_as_text():
    assert as_text(TABLES).split("\n") == [
        "a      n  why",
        "x      1  <b> & so",
        "long  10",
        "",
        "Title",
        "b    m",
        "y  2.5",
    ]


def test_tables_as_html():
    text = as_html(TABLES)
    assert "&lt;b&gt; &amp; so" in text
    read = Cells(text)
    assert read.found == ["a", "n", "why", "x", "1", "<b> & so", "long", "10", "", "Title",
                          "b", "m", "y", "2.5"]  # fmt: skip
    left, right = "text-align: left", "text-align: right"
    assert read.sides == [left, right, left] * 3 + [None] + [left, right] * 2


def test_the_table_of_a_prediction():
    assert str(PREDICTION).split("\n") == [
        "Prediction from 100 samples",
        "                    array          least  mean  greatest",
        "mean                float32[2, 2]   0.25   0.5      0.75",
        "variance            float32[2, 2]      0     0         0",
        "entropy             float64[2]         1     1         1",
        "mutual_information  float64[2]       0.5  0.75         1",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros((2, 0), np.float32), "float32[2, 0]"),
        (np.float64(1.0) / 3.0, "0.333333"),
        (np.array(7), "7"),
        (1.5, "1.5"),
        (None, "None"),
        ("a", "'a'"),
        (list(range(1000)), "[0, 1, 2, 3, 4, 5, ...]"),
    ],
)
def test_values_are_described_briefly(value, expected):
    assert described_briefly(value) == expected


def test_numbers_that_are_not_known_are_left_out():
    """As of the arrays that `jax.jit` traces, and of a tree whose leaves are not arrays."""

    class Traced:
        shape, dtype = (), "float32"

        def item(self):
            raise TypeError("abstract")

        min = max = mean = item

    odd = Prediction(Traced(), None, "x", np.zeros(0), 2)
    assert repr(odd) == (
        "Prediction(mean=float32[], variance=None, entropy='x', mutual_information=float64[0], "
        "samples=2)"
    )
    assert str(odd).split("\n")[2:4] == [
        "mean                float32[]",
        "variance            None",
    ]
    assert in_short(odd) == repr(odd)


def test_a_rung_of_a_ladder_is_short():
    (rung,) = ladder(1, "polynomial")
    assert repr(rung) == "<Rung: polynomial, terms=1; max_error=0.0672, max_grad_error=0.24>"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.1, 11.0, ["0.1", "0.2", "0.5", "1", "2", "5", "10"]),
        (0.73, 1.3, ["0.8", "0.9", "1", "1.1", "1.2", "1.3"]),
        (1.5, 2.5, ["1.6", "1.8", "2", "2.2", "2.4"]),
        (1e-6, 1e5, ["1e−06", "0.0001", "0.01", "1", "100", "10000"]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_plain_numbers(low, high, expected):
    pytest.importorskip("matplotlib")
    axes = new_axes("a test", 4.0, 2.5, "a.png")
    axes.plot([0.0, 1.0], [low, high])
    plain_log_scale(axes)
    axes.figure.canvas.draw()
    below, above = axes.get_ylim()
    ticks = [*axes.yaxis.get_major_ticks(), *axes.yaxis.get_minor_ticks()]
    shown = sorted((t.get_loc(), t.label1.get_text()) for t in ticks)
    assert [text for at, text in shown if below <= at <= above] == expected

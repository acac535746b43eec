"""The directive ``explore``: the interactive page, with the library's coefficients as JSON."""

from __future__ import annotations

import json
import math
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from logunif_kl._arithmetic.coefficients import INFLECTION_HI, INFLECTION_LO, TABLES
from logunif_kl.methods import _kingma, _lower_bound, _molchanov

FUNCTIONS = ("neg_kl", "neg_kl_grad", "neg_kl_hess")
METHODS = {
    "kingma": "Kingma's cubic",
    "molchanov": "Molchanov's sigmoid",
    "lower_bound": "lower bound",
}


def tables() -> dict[str, Any]:
    """Return the ranges of each function in float64, and the point of inflection."""
    found: dict[str, Any] = {
        name: [
            {
                "form": r.form,
                "bound": r.bound if math.isfinite(r.bound) else None,
                "centre": r.centre,
                "high": r.base_hi,
                "low": r.base_lo,
                "coefficients": r.coefficients,
            }
            for r in TABLES[name, "float64"]
        ]
        for name in FUNCTIONS
    }
    return {**found, "inflection": [INFLECTION_HI, INFLECTION_LO]}


def constants() -> dict[str, Any]:
    """Return the constants of the approximations, with that which makes -KL vanish at infinity."""
    cubic = (_kingma.C1, _kingma.C2, _kingma.C3)
    return {
        "kingma": {
            "coefficients": cubic,
            "constant": float(_kingma.kingma(0.0)) - sum(cubic),
        },
        "molchanov": {"coefficients": (_molchanov.K1, _molchanov.K2, _molchanov.K3)},
        "lower_bound": {"constant": float(_lower_bound.lower_bound(0.0))},
    }


def slider(part: str, label: str, value: float, low: float, high: float) -> str:
    """Write a slider with its label."""
    return (
        f'<label>{escape(label)} <input type="range" data-part="{part}" min="{low}" max="{high}" '
        f'step="0.01" value="{value}"></label>'
    )


def markup() -> str:
    """Write the page's part in HTML."""
    data = json.dumps({"tables": tables(), "constants": constants()})
    checks = "".join(
        f'<label class="{name}"><input type="checkbox" data-part="show-{name}" checked> '
        f"{escape(title)}</label>"
        for name, title in METHODS.items()
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(title)}</th><td data-part="value-{name}"></td>'
        f'<td class="number" data-part="error-{name}"></td><td data-part="slope-{name}"></td>'
        f'<td data-part="slope-error-{name}"></td></tr>'
        for name, title in METHODS.items()
    )
    pictures = "".join(
        f'<figure><svg data-part="{part}" role="img" aria-label="{escape(text)}"></svg>'
        f"<figcaption>{escape(text)}<br>"
        f'<output data-part="{part}-hover">point at the curves for their values</output>'
        "</figcaption></figure>"
        for part, text in (
            ("values", "−KL against log α"),
            ("slopes", "the gradient of −KL in log α"),
            ("errors", "errors of −KL by the approximations"),
        )
    )
    return f"""<div class="explore">
<script type="application/json">{data}</script>
<p>{slider("log-alpha", "log α", 0.0, -12.0, 12.0)}
<label>log α as a number <input type="number" data-part="log-alpha-number" step="any" value="0">
</label></p>
<p>α = <output data-part="alpha"></output>. Exact: −KL = <output data-part="value-exact"></output>,
gradient <output data-part="slope-exact"></output>,
second derivative <output data-part="bend-exact"></output>.</p>
<p>{slider("low", "from log α =", -6.0, -12.0, 12.0)}
{slider("high", "to", 6.0, -12.0, 12.0)}</p>
<p><span class="exact">exact</span> {checks}</p>
<p role="status" data-part="message"></p>
<div class="pst-scrollable-table-container" tabindex="0"><table class="table numbers"><thead><tr>
<th scope="col">approximation</th><th scope="col">−KL</th>
<th scope="col">error</th><th scope="col">gradient</th><th scope="col">relative error</th>
</tr></thead><tbody>{rows}</tbody></table></div>
<p>A dash: double precision does not hold the number.</p>
{pictures}
</div>
<script type="module" src="../_static/explore.js"></script>"""


class Explore(SphinxDirective):
    """``{explore}``: sliders, numbers and curves."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", markup(), format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Enter the directive."""
    app.add_directive("explore", Explore)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""``python -m validation.codegen [--check]``: write, or compare, the traced sources."""

import sys
from pathlib import Path

from logunif_kl._arithmetic import functions, normal_float32
from validation import generated
from validation.codegen import emit_c, emit_triton
from validation.codegen.trace import Output
from validation.paths import PACKAGE

COMMAND = "python -m validation.codegen"

_NORMAL = ("mu", "log_sigma2")
_VALUE = "-KL of N(mu, sigma^2)."
_GRADIENT = "The derivatives of -KL in mu and in log_sigma2."
TRITON = (
    Output("value", _NORMAL, functions.neg_kl_normal, [0], _VALUE),
    Output("gradient", _NORMAL, functions.neg_kl_normal, [1, 2], _GRADIENT),
    Output("neg_kl", ["x"], functions.neg_kl, [0], "-KL at log_alpha = x."),
    Output("neg_kl_grad", ["x"], functions.neg_kl_grad, [0], "Its derivative."),
    Output("neg_kl_hess", ["x"], functions.neg_kl_hess, [0], "Its second derivative."),
)
C = (
    Output("normal_value", _NORMAL, normal_float32.neg_kl_normal, [0], _VALUE),
    Output("normal_gradient", _NORMAL, normal_float32.neg_kl_normal, [1, 2], _GRADIENT),
)


def sources() -> dict[Path, str]:
    return {
        PACKAGE / "torch" / "_triton" / "arithmetic.py": emit_triton.source(TRITON, COMMAND),
        PACKAGE / "_numpy" / "c" / "float32_kernels.h": emit_c.source(C, COMMAND),
    }


if __name__ == "__main__":
    sys.exit(generated.main(COMMAND, sources))

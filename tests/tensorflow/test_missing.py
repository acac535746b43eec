"""Without TensorFlow: one sentence."""

import subprocess
import sys

CODE = """
import sys
sys.modules["tensorflow"] = None  # as if it were not installed
try:
    import logunif_kl.tensorflow
except ImportError as error:
    print(error)
"""


def test_missing():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "logunif_kl.tensorflow needs TensorFlow, which is not installed: "
        "pip install 'logunif_kl[tensorflow]'\n"
    )

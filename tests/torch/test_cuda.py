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


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_cost_of_a_kernel(kernel, capability):
    found = cost(kernel, capability)
    assert found.stack == 0  # no register is spilled
    assert found.instructions > 100
    if capability == 90:
        instructions, registers = MOST[kernel]
        assert found.instructions <= instructions
        assert found.registers <= registers

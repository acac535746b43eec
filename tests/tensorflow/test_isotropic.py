"""The functions of complex weights and of groups do not take tensors of TensorFlow."""

import pytest

tf = pytest.importorskip("tensorflow")

import logunif_kl as lk  # noqa: E402


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("log_alpha", lambda x: lk.neg_kl_complex(x)),
        ("log_alpha", lambda x: lk.kl_vector(x, 3)),
        ("mu", lambda x: lk.neg_kl_complex_normal(x, 0.0)),
        ("log_sigma2", lambda x: lk.neg_kl_complex_normal(1j, x)),
    ],
)
def test_refused(name, call):
    with pytest.raises(TypeError, match=rf"^{name} is of type .* does not support tensorflow"):
        call(tf.constant(1.0))

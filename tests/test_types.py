"""What a type checker knows of the package, as a user's program calls it."""

import pytest

import logunif_kl as lk

EVERY = "".join(f"lk.{name}\n" for name in lk.__all__)


@pytest.fixture
def check(tmp_path):
    """Check a program of a user with mypy, and return what it reports."""
    run = pytest.importorskip("mypy.api").run

    def reported(text):
        (tmp_path / "program.py").write_text(f"import logunif_kl as lk\n\n{text}")
        (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n")
        out, err, _ = run(
            [str(tmp_path / "program.py"), "--config-file", str(tmp_path / "mypy.ini")]
        )
        return out + err

    return reported


@pytest.mark.slow
def test_every_name_is_known_and_no_other(check):
    assert check(EVERY).startswith("Success")
    assert "lk.neg_kl_vektor" not in EVERY
    for name in ("neg_kl_vektor", "torche", "fit"):
        assert f'Module has no attribute "{name}"' in check(f"lk.{name}\n")
    anything = check("".join(f"reveal_type(lk.{name})\n" for name in lk.__all__))
    assert 'Revealed type is "Any"' not in anything

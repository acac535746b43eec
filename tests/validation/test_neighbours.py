"""The generated files of the neighbours of the prior: their claims, and their tables."""

import hashlib

from validation.accuracy import neighbours as measured
from validation.coefficients import neighbours as tables


def test_the_claims_are_those_of_the_record():
    assert measured.CLAIMS.read_text(encoding="utf-8") == measured.claims()


def test_the_tables_carry_the_hash_of_their_specification():
    text = tables.TABLES.read_text(encoding="utf-8")
    assert hashlib.sha256(tables.SPEC.read_bytes()).hexdigest() in text


def test_a_table_is_made_again():
    assert tables.main(["--check"]) == 0

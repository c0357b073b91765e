from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.engines.secrets import MASK, of_address, redacted


def test_g3_a_key_that_a_server_quotes_is_replaced() -> None:
    assert redacted("quota exceeded for key sk-planted-1", {"sk-planted-1"}) == f"quota exceeded for key {MASK}"


@given(st.text(max_size=20), st.text('abc&+/ "é', min_size=4, max_size=12), st.text(max_size=20))
def test_g3_no_spelling_of_a_secret_is_left(before: str, secret: str, after: str) -> None:
    assert secret not in redacted(before + secret + after, {secret, "abc"})


@pytest.mark.parametrize("spelling", ["a b/c+d", "a%20b/c%2Bd", "a%20b%2Fc%2Bd", "a+b%2Fc%2Bd"])
def test_g3_a_secret_is_found_as_an_address_spells_it(spelling: str) -> None:
    assert redacted(f"GET /?key={spelling} HTTP/1.1", {"a b/c+d"}) == f"GET /?key={MASK} HTTP/1.1"


def test_g3_a_secret_that_begins_another_leaves_nothing_of_it() -> None:
    assert redacted("sk-1234 sk-12345678", ["sk-1234", "sk-12345678"]) == f"{MASK} {MASK}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no server at https://me:pass@host:8000/v1", "no server at https://host:8000/v1"),
        ("http://token@host and http://a:b@c@d/e", "http://host and http://d/e"),
        ("see http://host/a@b and me@host", "see http://host/a@b and me@host"),
    ],
)
def test_g3_addresses_are_shown_without_their_credentials(text: str, shown: str) -> None:
    assert redacted(text, ()) == shown


def test_a_placeholder_is_no_secret() -> None:
    assert redacted("none of the EMPTY slots", {"none", "EMPTY", ""}) == "none of the EMPTY slots"


def test_g3_the_secrets_of_an_address_are_its_password_in_each_form() -> None:
    header = base64.b64encode(b"me:p@ss").decode()
    assert of_address("http://me:p%40ss@host/v1") == {"p%40ss", "p@ss", header}
    assert of_address("http://me@host/v1") == of_address("http://[") == frozenset()

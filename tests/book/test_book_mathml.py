from __future__ import annotations

from xml.etree import ElementTree

import pytest

from speclab.book.mathml import MathError, to_mathml

SPACE = "{http://www.w3.org/1998/Math/MathML}"


def test_a_fraction_is_a_fraction() -> None:
    root = ElementTree.fromstring(to_mathml(r"\frac{a}{b}", display=False))
    assert root.tag == f"{SPACE}math"
    assert root.get("display") == "inline"
    fraction = root.find(f".//{SPACE}mfrac")
    assert fraction is not None
    assert "".join(fraction.itertext()) == "ab"


def test_aligned_lines_become_rows_of_a_table() -> None:
    root = ElementTree.fromstring(to_mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", display=True))
    assert root.get("display") == "block"
    assert len(root.findall(f".//{SPACE}mtr")) == 2


@pytest.mark.parametrize(
    ("latex", "reason"),
    [(r"\nosuchcommand x", "not understood"), (r"\frac{a", "braces"), ("a & b", "not understood"), ("a_b_c", "Double")],
)
def test_what_is_not_understood_is_an_error_and_not_a_blank(latex: str, reason: str) -> None:
    with pytest.raises(MathError, match=reason):
        to_mathml(latex, display=False)


def test_escaped_braces_are_no_grouping() -> None:
    assert "<math" in to_mathml(r"\left\{ x \right.", display=False)

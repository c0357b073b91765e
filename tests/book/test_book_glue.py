from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from myst_nb.ext.glue import extract_glue_data_cell
from nbformat.v4 import new_code_cell, new_output

from speclab.book.glue import paste


@pytest.fixture(scope="module", autouse=True)
def shell() -> Iterator[None]:
    """Outside a shell IPython prints instead of displaying."""
    InteractiveShell.instance()
    yield
    InteractiveShell.clear_instance()


def glued(value: object) -> str:
    """Paste as a notebook does, then read as MyST-NB does."""
    with capture_output() as captured:
        paste("name", value)  # type: ignore[arg-type]
    shown = captured.outputs[0]
    output = new_output("display_data", data=dict(shown.data), metadata=dict(shown.metadata))
    ((key, found),) = extract_glue_data_cell(new_code_cell("", outputs=[output]))
    assert key == "name"
    text: str = found["data"]["text/plain"]
    return text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.25, "2.25"),
        (1 / 3, "0.333333"),
        (np.float64(110.98765432), "110.988"),
        (np.int64(256), "256"),
        (64.0, "64"),
        (17753.123, "17753.1"),
        (1.5e9, "1500000000.0"),
        ("not reached", "'not reached'"),
        (np.str_("chat"), "'chat'"),
    ],
)
def test_reads_back_as_plain_text(value: object, text: str) -> None:
    assert glued(value) == text


@pytest.mark.parametrize("value", [None, float("nan"), True, [1.0], np.array([1.0])])
def test_refuses_what_prose_cannot_print(value: object) -> None:
    with pytest.raises(TypeError, match="paste"):
        paste("name", value)  # type: ignore[arg-type]

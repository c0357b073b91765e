from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from speclab.results import strict_json


def test_what_is_no_finite_number_is_null() -> None:
    table = pd.DataFrame({"x": [1.5, math.nan, math.inf], "n": [1, 2, 3], "name": ["a", None, "c"]})
    assert json.loads(strict_json.dumps(strict_json.rows(table))) == [
        {"x": 1.5, "n": 1, "name": "a"},
        {"x": None, "n": 2, "name": None},
        {"x": None, "n": 3, "name": "c"},
    ]


def test_a_number_that_is_not_finite_is_refused_elsewhere() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json.dumps({"x": math.nan})

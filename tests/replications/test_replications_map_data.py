from __future__ import annotations

import json
from dataclasses import replace

import pytest

from speclab.book import widget
from speclab.predict.step_time import ModelOptions
from speclab.replications import calibrations
from speclab.replications.ask import NamedQuery
from speclab.replications.calibrations import Calibration
from speclab.replications.map import data as map_data


def test_a_calibration_that_the_scripts_do_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = calibrations.named("gsm8k")

    def padded() -> Calibration:
        return replace(known, options=ModelOptions(captured=(8, 16)))

    monkeypatch.setitem(calibrations.CALIBRATIONS, "padded", padded)
    monkeypatch.setattr(map_data, "CALIBRATIONS", {"padded": "sizes of captured graphs"})
    with pytest.raises(ValueError, match="padded: the scripts know no other options"):
        map_data.map_data(NamedQuery())


def test_every_choice_of_the_form_has_what_it_needs() -> None:
    made = json.loads(widget.to_json(map_data.map_data(NamedQuery(acceptance=(0.5, 0.2, 0.1)), draws=3), 10))
    assert [each["key"] for each in made["devices"]] == ["h100", "a100", "h200", "b200"]
    for model in made["models"]:
        assert model["shape"] in made["shapes"]
        for method in ("eagle3", "draft-model"):
            assert made["drafters"][method][model["shape"]] in made["shapes"]
    assert made["drafters"]["ngram"] == {}
    for each in made["calibrations"]:
        assert [len(draw) for draw in each["draws"]] == [len(each["drawn"])] * 3
        assert set(each["drawn"]) <= set(each["parameters"])
    assert {method: len(rows) for method, rows in made["errors"].items()} == {
        "eagle3": 3, "draft-model": 1, "ngram": 3,
    }  # fmt: skip

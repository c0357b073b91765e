from __future__ import annotations

import json

import numpy as np
import pandas as pd

from speclab.book import widget
from speclab.replications.chapter10.widgets import explorer as exploration

WORKLOADS = {"voice": "Real-time voice", "chat": "Chat"}
DEVICES = {"h100-sxm": "H100 SXM"}
PRESETS = {"baseline": ("baseline", "#000000"), "mtp": ("MTP head", "#E69F00")}


def points() -> pd.DataFrame:
    rows = [
        {"device": device, "workload": workload, "lever": preset}
        for device in ("h100-sxm", "b200")
        for workload in WORKLOADS
        for preset in ("baseline", "mtp", "ngram")
    ]
    table = pd.DataFrame(rows)
    for column in (*(metric.key for metric in exploration.EXPLORED), *exploration.FILTERS):
        table[column] = 0.5
    table.loc[table["lever"] == "baseline", "tokens_per_pass"] = np.nan
    return table


def test_holds_what_was_asked_for_and_nothing_else() -> None:
    made = exploration.exploration(
        points(), workloads=WORKLOADS, devices=DEVICES, presets=PRESETS, needed=0.9, first="voice"
    )
    assert [(point["workload"], point["lever"]) for point in made["points"]] == [
        ("voice", "baseline"), ("voice", "mtp"), ("chat", "baseline"), ("chat", "mtp"),
    ]  # fmt: skip
    assert made["first"]["workload"] == "voice"
    assert made["presets"][1] == {"key": "mtp", "label": "MTP head", "colour": "#E69F00"}
    assert [each["key"] for each in made["filters"]] == ["any", "slo_4x", "slo_2x", "slo_1x", "slo_0_5x"]


def test_a_missing_metric_is_null() -> None:
    made = exploration.exploration(
        points(), workloads=WORKLOADS, devices=DEVICES, presets=PRESETS, needed=0.9, first="voice"
    )
    read = json.loads(widget.to_json(made))
    assert [point["values"]["tokens_per_pass"] for point in read["points"]] == [None, 0.5, None, 0.5]
    assert read["points"][0]["values"]["tpot_p99_s"] == 500  # 0.5 s, shown in ms
    assert set(read["points"][0]["values"]) == {metric["key"] for metric in read["metrics"]}
    assert {metric["better"] for metric in read["metrics"]} == {"higher", "lower"}

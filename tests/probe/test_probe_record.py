from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from speclab.errors import UserError
from speclab.probe import record, report
from speclab.probe.points import Point
from speclab.probe.record import ProbeRecord, Timed, timed
from speclab.record import provenance
from speclab.roofline.transformers import transformer

SMOLLM2 = transformer("smollm2-135m")


def took(part: str, rows: int, positions: int, context: int, median_s: float) -> Timed:
    return timed(Point(part, rows, positions, context), [median_s] * 3, graph=False)  # type: ignore[arg-type]


@pytest.fixture
def half() -> ProbeRecord:
    """Give a record of half of a model's layers."""
    return ProbeRecord(
        model=SMOLLM2,
        layers=15,
        dtype="bfloat16",
        device="here",
        kind="cpu",
        attention="products",
        threads=2,
        usable_bytes=1e9,
        budget_s=10.0,
        took_s=9.0,
        measured=(
            took("step", 1, 1, 256, 0.011),
            took("step", 3, 1, 256, 0.013),
            took("step", 64, 1, 256, 0.050),
            took("head", 1, 1, 0, 0.001),
            took("head", 5, 1, 0, 0.005),
            took("sampling", 5, 1, 0, 0.0002),
        ),
        again=took("step", 1, 1, 256, 0.0121),
        left_out=record.left_out([Point("step", 1024, 1, 4096)], "memory"),
        made=provenance.made(provenance.now()),
    )


def test_the_median_stands_between_what_most_repeats_took() -> None:
    found = timed(Point("step", 2, 4, 256), [0.1 * n for n in (11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)], graph=True)
    assert (found.low_s, found.median_s, found.high_s) == pytest.approx((0.2, 0.6, 1.0))
    assert (found.tokens, found.repeats, found.graph) == (8, 11, True)
    assert found.point == Point("step", 2, 4, 256)


def test_a_record_is_read_as_it_was_written(half: ProbeRecord, tmp_path: Path) -> None:
    file = record.file_of(tmp_path, half.device, half.model.slug, half.dtype)
    assert file == tmp_path / "probe-here" / "smollm2-135m" / "bfloat16.json"
    record.make_room(file)
    record.write(file, half)
    assert record.read(file) == half
    assert record.found(tmp_path) == [half]
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_what_cut_layers_would_take_is_added_above_the_head(half: ProbeRecord) -> None:
    rows = record.frame(half).set_index(["part", "rows"])
    # at 3 tokens the head takes 3 ms, between 1 and 5: the layers' 10 ms twice, and the head once
    assert rows.loc[("step", 3), "whole_s"] == pytest.approx(0.023)
    assert rows.loc[("step", 1), "whole_s"] == pytest.approx(0.021)
    assert np.isnan(rows.loc[("step", 64), "whole_s"]), "the head was timed up to 5 tokens only"
    assert rows.loc[("head", 5), "whole_s"] == 0.005
    whole = record.frame(half.model_copy(update={"layers": 30}))
    assert whole["whole_s"].tolist() == whole["median_s"].tolist()


def test_rates_are_the_cost_models_work_over_the_time(half: ProbeRecord) -> None:
    rows = record.frame(half).set_index(["part", "rows"])
    # 15 layers of 3,538,944 and a head of 28,311,552, a row of the embedding, 257 tokens of 15 x 384 values
    values = 15 * 3_538_944 + 28_311_552 + 576 + 257 * 15 * 384
    assert rows.loc[("step", 1), "byte_per_s"] == pytest.approx(2 * values / 0.011)
    assert rows.loc[("head", 5), "byte_per_s"] == pytest.approx(2 * 28_311_552 / 0.005)
    assert rows.loc[("head", 5), "flop_per_s"] == pytest.approx(2 * 5 * 28_311_552 / 0.005)
    assert np.isnan(rows.loc[("sampling", 5), "byte_per_s"])
    wide = record.frame(half.model_copy(update={"dtype": "float32"})).set_index(["part", "rows"])
    assert wide.loc[("step", 1), "byte_per_s"] == pytest.approx(4 * values / 0.011)


def test_a_record_says_whether_the_machine_was_left_alone(half: ProbeRecord) -> None:
    assert half.drift == pytest.approx(0.10)
    assert half.source.startswith("measured (PyTorch ")
    assert half.source.endswith(", here)")


def test_the_terminals_table_holds_every_point(half: ProbeRecord) -> None:
    shown = report.result(half, record.frame(half))
    assert shown.startswith("15 of 30 layers of smollm2-135m in bfloat16, measured (PyTorch ")
    assert all(each in shown for each in ("11.00", "13.00", "50.00", "1.000", "5.000", "0.200"))


def test_a_damaged_record_is_one_line(half: ProbeRecord, tmp_path: Path) -> None:
    file = tmp_path / "bfloat16.json"
    with pytest.raises(UserError, match=r"bfloat16.json: cannot be read .*; make it: speclab probe SHAPE"):
        record.read(file)
    text = half.model_dump_json()
    for damaged in (
        text[:100],
        text.replace('"layers":15,', "", 1),
        text.replace('"repeats":3', '"repeats":"many"', 1),
    ):
        assert damaged != text
        file.write_text(damaged, encoding="utf-8")
        with pytest.raises(UserError, match=r"not a probe's record .*; make it again"):
            record.read(file)


def test_a_place_that_cannot_be_written_is_found_before_the_time_is_spent(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").write_text("")
    for file in (tmp_path / "in-the-way" / "x.json", tmp_path):
        with pytest.raises(UserError, match=r"the record could not be written .*; give another file to --out"):
            record.make_room(file)


def test_shapes_of_a_folder_keep_their_own_numbers(half: ProbeRecord, tmp_path: Path) -> None:
    mine = half.model_copy(update={"model": replace(SMOLLM2, slug="mine", ff_width=1024)})
    record.write(tmp_path / "x.json", mine)
    assert record.read(tmp_path / "x.json").model.ff_width == 1024

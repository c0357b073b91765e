from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from speclab.errors import UserError
from speclab.predict.parameters import CPU_135M, H100_8B, MEANINGS
from speclab.probe import points, record, report
from speclab.probe.calibration import for_server, mean_and_worst, of_passes
from speclab.probe.points import Point
from speclab.probe.record import ProbeRecord, timed
from speclab.record import provenance
from speclab.replications import calibrations
from speclab.replications.ask import NamedQuery, answer
from speclab.roofline.transformers import transformer

OVERHEAD_S, BYTE_PER_S, FLOP_PER_S, BEND = 0.3e-3, 2.5e12, 6e14, 3.0


def seconds(point: Point, layers: int) -> float:
    """Return what a pass of Llama 3 8B, or its head, takes on a device of these rates: worked out from its widths."""
    layer = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336
    head = 4096 * 128256
    read = (layers * layer if point.part == "step" else 0) + head
    flops = 2 * read * point.tokens
    moved = 2 * (read + point.tokens * 4096)
    if point.part == "step":
        flops += 4 * layers * 4096 * point.tokens * (point.context + (point.positions + 1) / 2)
        moved += point.rows * (point.context + point.positions) * layers * 4096
    memory_s, compute_s = moved / BYTE_PER_S, flops / FLOP_PER_S
    bent_s = (memory_s**BEND + compute_s**BEND) ** (1 / BEND)
    return float(bent_s + (OVERHEAD_S if point.part == "step" else 0))


def a_record(layers: int = 32, core: tuple[Point, ...] = points.core(), **others: Any) -> ProbeRecord:
    measured = [timed(point, [seconds(point, layers)] * 5, graph=True) for point in core]
    known = {
        "model": transformer("llama-3-8b"), "layers": layers, "dtype": "bfloat16", "device": "here", "kind": "cuda",
        "attention": "flash", "threads": 1, "usable_bytes": 1e11, "budget_s": 120.0, "took_s": 60.0,
        "measured": tuple(measured), "again": measured[0], "left_out": (), "made": provenance.made(provenance.now()),
    }  # fmt: skip
    return ProbeRecord.model_validate({**known, **others})


def test_a_fit_gives_back_what_the_steps_were_made_of() -> None:
    found = of_passes(a_record())
    assert found.parameters.overhead_s == pytest.approx(OVERHEAD_S, rel=1e-3)
    assert found.parameters.byte_per_s == pytest.approx(BYTE_PER_S, rel=1e-3)
    assert found.parameters.flop_per_s == pytest.approx(FLOP_PER_S, rel=1e-3)
    mean, worst, _ = mean_and_worst(found)
    assert max(mean, abs(worst)) < 1e-3
    assert {place.context for place in found.places} == {256, 1024}


def test_a_point_that_was_disturbed_weighs_little_and_is_named() -> None:
    whole = a_record()
    last = next(each for each in whole.measured if each.point == Point("step", 64, 4, 1024))
    disturbed = last.model_copy(update={"median_s": 3 * last.median_s, "high_s": 90 * last.median_s})
    spoilt = whole.model_copy(
        update={"measured": tuple(disturbed if each == last else each for each in whole.measured)}
    )
    found = of_passes(spoilt)
    _, worst, where = mean_and_worst(found)
    assert found.parameters.byte_per_s == pytest.approx(BYTE_PER_S, rel=0.01)
    assert worst == pytest.approx(1 / 3 - 1, abs=0.01)
    assert where == "64 rows x 4, context 1024"
    assert "-67% at worst (64 rows x 4, context 1024)" in report.fitted(spoilt)


def test_a_servers_own_part_is_added_and_widens_the_interval() -> None:
    passes, server = of_passes(a_record(layers=16)), for_server(a_record(layers=16))
    own_s = 2 * OVERHEAD_S  # half of the layers ran
    assert server.parameters.overhead_s == pytest.approx(own_s + H100_8B.overhead_s, rel=1e-3)
    assert server.parameters.token_s == H100_8B.token_s
    assert server.parameters.byte_per_s == passes.parameters.byte_per_s
    share = own_s / (own_s + H100_8B.overhead_s)
    host = (1 - share) * MEANINGS["overhead_s"].spread(H100_8B.overhead_s)
    wanted = ((share * passes.relative_error("overhead_s")) ** 2 + host**2) ** 0.5
    assert server.relative_error("overhead_s") == pytest.approx(wanted, rel=1e-3)
    assert server.relative_error("flop_per_s") == pytest.approx(passes.relative_error("flop_per_s"))
    assert server.relative_error("token_s") == MEANINGS["token_s"].spread(H100_8B.token_s)
    assert len({each.byte_per_s for each in server.draws(20)}) == 20
    assert for_server(a_record(kind="cpu")).parameters.position_s == CPU_135M.position_s


def test_points_that_carry_nothing_are_refused() -> None:
    few = a_record(core=(Point("step", 1, 1, 256), Point("step", 8, 4, 256)))
    with pytest.raises(UserError, match=r"this probe cannot calibrate: 2 measured figures cannot carry 3 parameters"):
        of_passes(few)
    assert report.fitted(few).startswith("this probe cannot calibrate: ")


def test_the_terminals_line_counts_the_bytes_of_the_number_format() -> None:
    assert "0.3 ms a pass, 2.5e+03 GB/s, 600 TFLOP/s" in report.fitted(a_record())
    assert "5e+03 GB/s" in report.fitted(a_record(dtype="float32"))
    assert record.frame(a_record())["whole_s"].notna().all()
    assert replace(transformer("llama-3-8b"), layers=0).matmul_parameters == 4096 * 128256


def test_a_record_answers_a_question_about_its_own_machine(tmp_path: Path) -> None:
    record.write(tmp_path / "h.json", a_record())
    asked = NamedQuery(
        k=3, acceptance=(0.63, 0.38, 0.25), calibration=str(tmp_path / "h.json"), concurrency=(1, 64, 512)
    )
    found = answer(asked)
    assert found.errors == [], "none of the errors was made with this calibration"
    assert found.calibration.startswith("probe-here: 12 steps of Llama 3 8B, measured (PyTorch ")
    assert found.calibration.endswith("no prediction from a probe was checked against one")
    first, _, last = found.prediction.speed_up
    assert first > 1 > last
    assert found.prediction.baseline_step_s[0] == pytest.approx(
        seconds(Point("step", 1, 1, 500), 32) + H100_8B.overhead_s + H100_8B.token_s + H100_8B.position_s, rel=1e-3
    )
    assert any("512 rows: fitted on at most 64" in warning for warning in found.prediction.warnings)


def test_a_drafters_probe_is_no_calibration(tmp_path: Path) -> None:
    record.write(tmp_path / "h.json", a_record(layers=1, model=transformer("eagle3-head-8b")))
    with pytest.raises(UserError, match=r"h\.json: a probe of EAGLE-3 head .* 8B, which only drafts; give one"):
        calibrations.named(str(tmp_path / "h.json"))

from __future__ import annotations

import html

import pytest
from small_checkout import Checkout

FUNCTION = '''"""How many steps the rows take together."""

from __future__ import annotations

from speclab.metrics.window import CellWindow


def steps_per_second(cut: CellWindow) -> float:
    """Return decode steps of the rows inside the window / the window's length, steps/s."""
    return len(cut.decode) / cut.window.length_s
'''
DRAW = 'figures.finding_over_concurrency(found.findings, "steps_per_second", styles)'


def test_a_metric_is_a_function_and_two_rows(checkout: Checkout) -> None:
    (checkout.root / "src/speclab/metrics/rows.py").write_text(FUNCTION, encoding="utf-8")
    summary = "src/speclab/metrics/summary.py"
    checkout.replace(summary, "import acceptance, latency, steps,", "import acceptance, latency, rows, steps,")
    row = '    "step_time": steps.step_time,\n'
    checkout.replace(summary, row, row + '    "steps_per_second": rows.steps_per_second,\n')
    row = '    Finding("acceptance_drift",'
    new = '    Finding("steps_per_second", "steps/s", "steps of all rows", sums={"steps": 1, "seconds": -1}),\n'
    checkout.replace("src/speclab/findings/catalogue.py", row, new + row)

    findings, figure, _ = checkout.run(draw=DRAW)
    rows = findings[findings["finding"] == "steps_per_second"]
    assert len(rows) == 4
    assert set(rows["unit"]) == {"steps/s"}
    # without scatter the interval is a point; tables keep six digits
    assert (rows["low"] <= rows["value"] * (1 + 1e-5)).all()
    assert (rows["high"] >= rows["value"] * (1 - 1e-5)).all()
    # by Little's law: rows in flight over a step's time
    keys = ["arm", "concurrency"]
    values = {name: table.set_index(keys)["value"] for name, table in findings.groupby("finding")}
    little = values["answering"] / values["step_time"] * 1e3
    assert values["steps_per_second"].to_numpy() == pytest.approx(little.to_numpy(), rel=0.1)

    assert "steps of all rows, steps/s" in figure["words"]
    assert len(figure["lines"]) == 2, "an arm each"
    page = html.unescape(checkout.page("method"))
    assert "steps_per_second" in page
    assert "steps/s" in page

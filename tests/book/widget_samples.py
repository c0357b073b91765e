"""Small data for the book's widgets, written by hand, and the page they stand in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speclab import paths

# Two requests of 6 tokens each. With three drafts the second pass accepts all of request 1's and one of request 2's.
RECORDING: dict[str, Any] = {
    "requests": [
        {"name": "Request 1", "prompt": 512, "output": 6},
        {"name": "Request 2", "prompt": 384, "output": 6},
    ],
    "variants": [
        {
            "key": "off",
            "label": "off",
            "gamma": 0,
            "expected": 1.0,
            "tokens_per_pass": 1.0,
            "tpot_p99_ms": 6.0,
            "done_ms": 57.0,
            "passes": [
                {
                    "kind": "prefill",
                    "start_ms": 0.0,
                    "duration_ms": 15.0,
                    "draft_ms": 0.0,
                    "rows": [{"request": 0, "drafted": 0, "accepted": 0, "kept": 1}],
                    "out": [1, 0],
                },
                {
                    "kind": "prefill",
                    "start_ms": 15.0,
                    "duration_ms": 12.0,
                    "draft_ms": 0.0,
                    "rows": [{"request": 1, "drafted": 0, "accepted": 0, "kept": 1}],
                    "out": [1, 1],
                },
                *(
                    {
                        "kind": "decode",
                        "start_ms": 27.0 + 6.0 * step,
                        "duration_ms": 6.0,
                        "draft_ms": 0.0,
                        "rows": [{"request": row, "drafted": 0, "accepted": 0, "kept": 1} for row in (0, 1)],
                        "out": [2 + step, 2 + step],
                    }
                    for step in range(5)
                ),
            ],
        },
        {
            "key": "gamma-3",
            "label": "three drafts",
            "gamma": 3,
            "expected": 2.533,
            "tokens_per_pass": 2.5,
            "tpot_p99_ms": 3.0,
            "done_ms": 35.0,
            "passes": [
                {
                    "kind": "prefill",
                    "start_ms": 0.0,
                    "duration_ms": 19.0,
                    "draft_ms": 1.0,
                    "rows": [{"request": row, "drafted": 0, "accepted": 0, "kept": 1} for row in (0, 1)],
                    "out": [1, 1],
                },
                {
                    "kind": "decode",
                    "start_ms": 19.0,
                    "duration_ms": 8.0,
                    "draft_ms": 2.0,
                    "rows": [
                        {"request": 0, "drafted": 3, "accepted": 3, "kept": 4},
                        {"request": 1, "drafted": 3, "accepted": 1, "kept": 2},
                    ],
                    "out": [5, 3],
                },
                {
                    "kind": "decode",
                    "start_ms": 27.0,
                    "duration_ms": 8.0,
                    "draft_ms": 2.0,
                    "rows": [
                        {"request": 0, "drafted": 3, "accepted": 2, "kept": 1},
                        {"request": 1, "drafted": 3, "accepted": 3, "kept": 3},
                    ],
                    "out": [6, 6],
                },
            ],
        },
    ],
    "first": {"variant": "gamma-3", "step": 1},
}

# Made up: on chat, MTP on an A100 is cheaper and slower than on an H100; voice has one point without a value.
CONFIGURATIONS: dict[str, Any] = {
    "metrics": [
        {"key": "goodput", "label": "Goodput", "unit": "req/s", "better": "higher"},
        {"key": "cost", "label": "Cost", "unit": "$", "better": "lower"},
        {"key": "wait", "label": "Wait p99", "unit": "s", "better": "lower"},
    ],
    "workloads": [{"key": "chat", "label": "Chat"}, {"key": "voice", "label": "Voice"}],
    "devices": [{"key": "h100", "label": "H100"}, {"key": "a100", "label": "A100"}],
    "presets": [
        {"key": "baseline", "label": "baseline", "colour": "#000000"},
        {"key": "mtp", "label": "MTP head", "colour": "#0072B2"},
    ],
    "filters": [
        {"key": "any", "label": "any"},
        {"key": "1x", "label": "the SLOs"},
        {"key": "0.5x", "label": "half the SLOs"},
    ],
    "needed": 0.9,
    "points": [
        {"workload": workload, "device": device, "lever": lever, "values": values, "attainment": attainment}
        for workload, device, lever, values, attainment in (
            ("chat", "h100", "baseline", {"goodput": 4, "cost": 8, "wait": 0.4}, {"1x": 0.95, "0.5x": 0.5}),
            ("chat", "h100", "mtp", {"goodput": 9, "cost": 6, "wait": 0.3}, {"1x": 0.99, "0.5x": 0.92}),
            ("chat", "a100", "baseline", {"goodput": 2, "cost": 5, "wait": 0.9}, {"1x": 0.90, "0.5x": 0.1}),
            ("chat", "a100", "mtp", {"goodput": 3, "cost": 4, "wait": 0.8}, {"1x": 0.89, "0.5x": 0.2}),
            ("voice", "h100", "baseline", {"goodput": 1, "cost": 9, "wait": 0.2}, {"1x": 0.91, "0.5x": 0.3}),
            ("voice", "h100", "mtp", {"goodput": None, "cost": None, "wait": 0.1}, {"1x": 0.99, "0.5x": 0.9}),
        )
    ],
    "first": {"x": "cost", "y": "goodput", "workload": "chat", "devices": ["h100", "a100"], "filter": "any"},
}


def write_page(file: Path, *pieces: str) -> Path:
    """Write a page that holds some widgets and the book's own style, as a chapter does."""
    style = (paths.book() / "_static" / "widgets.css").read_text(encoding="utf-8")
    body = "\n".join(pieces)
    file.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{file.stem}</title>'
        f'<link rel="icon" href="data:,"><style>{style}</style><body>{body}</body></html>',
        encoding="utf-8",
    )
    return file

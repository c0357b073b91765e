"""The explorer in a real browser: what it shows follows from its controls, and its front is the library's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from chromium import Browser, Page
from widget_samples import CONFIGURATIONS, write_page

from speclab import paths
from speclab.book import widget
from speclab.findings.pareto import on_front

WIDGET = '[data-widget="explorer"]'


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = {"label": "Any two metrics", "source": "simulated", "without_script": "A picture."}
    made = widget.html("explorer", CONFIGURATIONS, **words)
    return write_page(tmp_path_factory.mktemp("explorer") / "explorer.html", made)


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    opened = browser.open(file)
    yield opened
    assert opened.errors == []
    assert [address for address in opened.requests if not address.startswith(("file:", "data:"))] == []
    opened.close()


def shown(page: Page, name: str) -> list[str]:
    found: str = page.value(f"document.querySelector('{WIDGET}').dataset.{name}")
    return found.split()


def count(page: Page, selector: str) -> int:
    found: int = page.value(f"document.querySelectorAll('{WIDGET} {selector}').length")
    return found


def test_opens_with_every_configuration_and_the_front(page: Page) -> None:
    assert count(page, ".point") == 4
    assert shown(page, "front") == ["mtp/a100", "mtp/h100"]
    assert count(page, ".point.on-front") == 2
    assert count(page, "tbody tr") == 4


def test_a_filter_takes_points_off_the_front_and_leaves_them_in_the_picture(page: Page) -> None:
    page.choose("[name=filter]", "1x")
    assert shown(page, "good") == ["baseline/h100", "mtp/h100", "baseline/a100"]  # 0.90 passes, 0.89 does not
    assert shown(page, "front") == ["baseline/a100", "mtp/h100"]
    assert (count(page, ".point"), count(page, ".point.fails"), count(page, "tbody tr.fails")) == (4, 1, 1)
    page.choose("[name=filter]", "0.5x")
    assert shown(page, "front") == ["mtp/h100"]


def test_devices_are_chosen_one_by_one(page: Page) -> None:
    page.click("[name=device][value=a100]")
    assert shown(page, "devices") == ["h100"]
    assert shown(page, "front") == ["mtp/h100"]
    page.click("[name=device][value=h100]")
    assert (shown(page, "devices"), count(page, ".point")) == ([], 0)
    page.click("[name=device][value=a100]")
    assert shown(page, "front") == ["mtp/a100"]


def test_either_axis_takes_any_metric(page: Page) -> None:
    page.choose("[name=x]", "wait")
    page.choose("[name=y]", "cost")
    assert (shown(page, "x"), shown(page, "y")) == (["wait"], ["cost"])
    assert shown(page, "front") == ["mtp/h100", "mtp/a100"]
    heads = page.value(f"[...document.querySelectorAll('{WIDGET} th')].map((e) => e.textContent)")
    assert heads == ["preset", "device", "Wait p99, s", "Cost, $", "passes", "on the front"]


def test_a_configuration_without_a_value_is_counted_and_not_drawn(page: Page) -> None:
    page.choose("[name=workload]", "voice")
    assert count(page, ".point") == 1
    caption = page.value("document.querySelector('[role=status]').textContent")
    assert caption == (
        "1 of 1 configurations pass the filter. On the Pareto front: baseline on H100. 1 more have no value here."
    )


def test_the_script_and_the_library_draw_one_front(page: Page) -> None:
    table = pd.DataFrame([{**point, **point["values"]} for point in CONFIGURATIONS["points"]])
    better = {metric["key"]: metric["better"] for metric in CONFIGURATIONS["metrics"]}
    compared = 0
    for workload, rows in table.groupby("workload"):
        for x in better:
            for y in better:
                known = rows.dropna(subset=[x, y])
                front = known[on_front(known[x], known[y], better[x], better[y])]
                asked = f"{{workload: '{workload}', x: '{x}', y: '{y}'}}"
                drawn = page.value(
                    f"document.querySelector('{WIDGET}').speclab.view({asked}).front.map((p) => p.lever + p.device)"
                )
                assert sorted(drawn) == sorted(front["lever"] + front["device"])
                compared += len(drawn)
    assert compared >= 2 * 9


@pytest.mark.parametrize("width", [390, 1000])
def test_no_page_is_wider_than_its_screen(browser: Browser, file: Path, width: int) -> None:
    page = browser.open(file, width=width)
    assert page.value("document.documentElement.scrollWidth") == width
    assert page.value(f"document.querySelector('{WIDGET} .widget-plot svg').getBoundingClientRect().right") < width
    page.close()


def test_the_picture_follows_the_width_of_the_page(page: Page) -> None:
    page.resize(390, 800)
    page.when(f"document.querySelector('{WIDGET} .widget-plot svg').clientWidth < 390")
    assert count(page, ".point") == 4


def test_the_books_own_explorer_draws_the_librarys_fronts(browser: Browser, tmp_path: Path) -> None:
    made = (paths.book() / "widgets" / "chapter10_explorer.html").read_text(encoding="utf-8")
    page = browser.open(write_page(tmp_path / "own.html", made))
    data = page.value(f"JSON.parse(document.querySelector('{WIDGET} script').textContent)")
    better = {metric["key"]: metric["better"] for metric in data["metrics"]}
    pairs = [(x, y) for x in better for y in better]
    table = pd.DataFrame([{**point, **point["values"], **point["attainment"]} for point in data["points"]])
    compared = 0
    for workload, rows in table.groupby("workload"):
        for chosen in ("any", "slo_0_5x"):
            drawn = page.value(
                f"{json.dumps(pairs)}.map(([x, y]) => document.querySelector('{WIDGET}').speclab"
                f".view({{x, y, workload: '{workload}', filter: '{chosen}'}}).front.map((p) => p.device + p.lever))"
            )
            good = rows if chosen == "any" else rows[rows[chosen] >= data["needed"]]
            for (x, y), names in zip(pairs, drawn, strict=True):
                known = good.dropna(subset=[x, y] if x != y else [x])
                front = known[on_front(known[x], known[y], better[x], better[y])]
                assert sorted(names) == sorted(front["device"] + front["lever"]), (workload, chosen, x, y)
                compared += len(names)
    assert compared > len(pairs) * 5
    assert page.errors == []
    page.close()

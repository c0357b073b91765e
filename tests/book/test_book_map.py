"""The map in a real browser: it computes what the library computes, refuses in its words, and says what it shows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, Page
from typer.testing import CliRunner
from widget_samples import write_page

from speclab.book import widget
from speclab.cli import cli
from speclab.errors import UserError
from speclab.predict.answer import Answered
from speclab.predict.memory import most_in_flight
from speclab.predict.prediction import speed_up
from speclab.predict.question import question as question_of
from speclab.predict.traffic import Traffic
from speclab.replications import calibrations
from speclab.replications.ask import NamedQuery, answer
from speclab.replications.map import data as map_data
from speclab.roofline.devices import device
from speclab.roofline.speculation import flat_marginal

WIDGET = '[data-widget="map"]'
OPENING = NamedQuery(device="h100", model="llama-3.1-8b", acceptance=(0.63, 0.38, 0.25), drafting_ms=0.37,
                     context=500.0, concurrency=(64,))  # fmt: skip
EVERY_TERM = "every-term"
PAGE_ONLY = {"tokens_per_step"}
COMMAND_ONLY = {"stated_error", "calibration"}


def every_term() -> calibrations.Calibration:
    """Return a calibration in which no term of a step is zero; no fit here has a cost for each row."""
    found = calibrations.named("gsm8k")
    parameters = found.fit.parameters.replaced(row_s=4e-6, token_s=3e-6, smoothing=2.4, lookup_s=2e-6)
    return replace(found, name=EVERY_TERM, fit=replace(found.fit, parameters=parameters))


@pytest.fixture(scope="module")
def data() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(calibrations.CALIBRATIONS, EVERY_TERM, every_term)
        patch.setitem(map_data.CALIBRATIONS, EVERY_TERM, "a test's")
        yield map_data.map_data(OPENING)


@pytest.fixture(scope="module")
def answered(data: dict[str, Any]) -> list[Answered]:
    return [answer(question, with_errors=False) for question in ANSWERED]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> Path:
    made = widget.html("map", data, label="The map", source="simulated", without_script="A table.", digits=10)
    return write_page(tmp_path_factory.mktemp("map") / "map.html", made)


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    opened = browser.open(file)
    yield opened
    assert opened.errors == []
    assert [address for address in opened.requests if not address.startswith(("file:", "data:"))] == []
    opened.close()


def answers(page: Page, questions: list[NamedQuery]) -> list[dict[str, Any]]:
    asked = json.dumps([asdict(question) for question in questions])
    found: list[dict[str, Any]] = page.value(f"{asked}.map(document.querySelector('{WIDGET}').speclab.answer)")
    return found


def text(page: Page, selector: str) -> str:
    found: str = page.value(f"document.querySelector('{WIDGET} {selector}').textContent")
    return found


def texts(page: Page, selector: str) -> list[str]:
    found: list[str] = page.value(f"[...document.querySelectorAll('{WIDGET} {selector}')].map((e) => e.textContent)")
    return found


def state(page: Page) -> dict[str, str]:
    found: dict[str, str] = page.value(f"({{...document.querySelector('{WIDGET}').dataset}})")
    return found


def refusal(asked: NamedQuery) -> list[str]:
    with pytest.raises(UserError) as caught:
        answer(asked, with_errors=False)
    return [caught.value.problem, caught.value.remedy, (caught.value.key or "").removeprefix("--")]


ANSWERED = (
    replace(OPENING, concurrency=None),
    OPENING,
    replace(OPENING, device="a100", k=1, acceptance=(0.7,), context=4000.0, concurrency=None),
    replace(OPENING, device="h200", drafting_ms=None, context=2500.0, calibration="sharegpt", concurrency=(1, 300)),
    replace(OPENING, device="b200", model="llama-3.1-70b", drafting_ms=2.0, concurrency=None),
    replace(OPENING, device="b200", model="llama-3.1-70b", method="draft-model", drafting_ms=None, concurrency=(3,)),
    replace(OPENING, method="draft-model", drafting_ms=None, calibration="gsm8k", concurrency=None),
    replace(OPENING, method="draft-model", drafting_ms=0.05, concurrency=(1, 7, 128)),
    replace(
        OPENING,
        method="ngram",
        drafting_ms=None,
        k=5,
        acceptance=(0.5, 0.3, 0.2, 0.1, 0.05),
        draft_rate=0.4,
        concurrency=None,
    ),
    replace(OPENING, context=None, prompt=220.0, answer=301.0, concurrency=None),
    replace(OPENING, context=None, concurrency=None),
    replace(OPENING, acceptance=(0.0, 0.0, 0.0), concurrency=(1, 64)),
    replace(OPENING, acceptance=(1.0, 1.0, 1.0), context=1.0, concurrency=(1, 4000)),
    replace(OPENING, calibration=EVERY_TERM, draft_rate=0.8, concurrency=None),
    replace(
        OPENING, calibration=EVERY_TERM, device="h200", method="draft-model", context=None, prompt=900.0, answer=90.0
    ),
    replace(OPENING, calibration=EVERY_TERM, method="ngram", drafting_ms=None, draft_rate=0.3, concurrency=None),
)

REFUSED = (
    replace(OPENING, acceptance=(0.63, 0.7, 0.25)),
    replace(OPENING, acceptance=(1.2, 0.7, 0.25)),
    replace(OPENING, acceptance=(0.63, 0.38, -1e-7)),
    replace(OPENING, k=2),
    replace(OPENING, k=0, acceptance=()),
    replace(OPENING, draft_rate=0.0),
    replace(OPENING, draft_rate=1.5),
    replace(OPENING, concurrency=(0,)),
    replace(OPENING, context=500.5, concurrency=(2000,)),
    replace(OPENING, context=4e6),
    replace(OPENING, context=0.5),
    replace(OPENING, prompt=100.0),
    replace(OPENING, answer=100.0),
    replace(OPENING, prompt=100.0, answer=100.0),
    replace(OPENING, method="ngram"),
    replace(OPENING, drafting_ms=0.0),
    replace(OPENING, drafting_ms=12345678.0),
    replace(OPENING, model="llama-3.1-70b"),
)


def compared(found: Any, wanted: Any, where: str) -> int:
    """Hold two answers against each other, numbers to a millionth of their size; return how many numbers agree."""
    if isinstance(wanted, Mapping):
        assert found.keys() == wanted.keys(), where
        return sum(compared(found[key], each, f"{where}.{key}") for key, each in wanted.items())
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), where
        return sum(compared(*pair, f"{where}[{at}]") for at, pair in enumerate(zip(found, wanted, strict=True)))
    if isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-6, abs=0), where
        return 1
    assert found == wanted, where
    return 0


def test_the_page_and_the_library_give_one_answer(page: Page, answered: list[Answered]) -> None:
    numbers = 0
    for question, found, wanted in zip(ANSWERED, answers(page, list(ANSWERED)), answered, strict=True):
        kept = {key: value for key, value in wanted.as_json().items() if key not in COMMAND_ONLY}
        numbers += compared({key: found[key] for key in found.keys() - PAGE_ONLY}, kept, str(question))
    assert numbers > 1000


def test_the_page_and_the_library_refuse_in_the_same_words(page: Page) -> None:
    assert [found.get("refused") for found in answers(page, list(REFUSED))] == [refusal(each) for each in REFUSED]


def test_every_warning_of_the_library_is_among_those_compared(answered: list[Answered]) -> None:
    said = " ".join(warning for each in answered for warning in each.prediction.warnings)
    for part in (
        "rows: fitted", "positions in a step", "a context of", "no measurement of B200", "no measurement of Llama",
        "fill the memory", "doublings from what was fitted", "has no launches", "own passes for a draft position",
    ):  # fmt: skip
        assert part in said


def test_opens_with_its_question_answered(page: Page) -> None:
    found = answer(OPENING).prediction
    assert state(page)["verdict"] == "pays"
    assert f"At 64 in flight, {found.speed_up[0]:.2f} times" in text(page, ".map-verdict")
    assert texts(page, ".map-verdict strong") == [
        f"{found.break_even_length[0]:.2f} tokens", "2.26 tokens", f"{found.best_k[0]}",
        f"{found.crossover.value:.0f} in flight",
    ]  # fmt: skip
    assert texts(page, ".map-warnings li") == [f"Beware: {each}." for each in found.warnings]


def test_the_command_beneath_gives_the_same_and_its_words_for_the_crossover(page: Page) -> None:
    page.choose("[name=device]", "a100")
    page.choose("[name=concurrency]", "30")
    command = shlex.split(text(page, ".map-command"))
    assert command[:2] == ["speclab", "predict"]
    (found,) = answers(page, [replace(OPENING, device="a100", concurrency=(30,))])
    printed = CliRunner().invoke(cli, [*command[1:], "--json"])
    assert json.loads(printed.stdout)["speed_up"] == pytest.approx(found["speed_up"], rel=1e-6)
    said = text(page, ".map-verdict > p:nth-of-type(3)").removesuffix(".")
    assert said.lower() in CliRunner().invoke(cli, command[1:]).stdout.lower()


def test_the_models_own_error_stands_on_the_page_and_widens_the_verdict(page: Page, data: dict[str, Any]) -> None:
    stated = data["errors"]["eagle3"]
    worst = max(abs(each["worst_error"]) for each in stated if each["figure"] == "speed-up")
    found = answer(OPENING).prediction.speed_up[0]
    assert f"({worst:.1%}): {found / (1 + worst):.2f} to {found / (1 - worst):.2f}" in text(page, ".map-verdict")
    lines = texts(page, ".map-errors li")
    assert len(lines) == len(stated)
    assert lines[0].endswith(f"mean {stated[0]['mean_abs_error']:.1%}, worst {stated[0]['worst_error']:+.1%}.")


@pytest.mark.parametrize(
    ("field", "typed", "verdict"),
    [("acceptance", ".1,.05,.01", "loses"), ("concurrency", "150", "unclear"), ("context", "2000", "pays")],
)
def test_what_is_typed_is_judged_at_once(page: Page, field: str, typed: str, verdict: str) -> None:
    page.choose(f"[name={field}]", typed)
    assert state(page)["verdict"] == verdict


def test_all_of_it_works_from_the_keyboard(page: Page) -> None:
    page.value("document.querySelector('[name=concurrency]').focus()")
    page.press("End")
    page.press("0")
    assert "At 640 in flight" in text(page, ".map-verdict")
    for _ in range(2):  # context, then the fold
        page.press("Tab")
    page.press("Enter")
    assert page.value("document.activeElement.tagName") == "SUMMARY"
    assert page.value("document.activeElement.parentElement.open")
    page.press("Tab")
    assert page.value("document.activeElement.name") == "prompt"


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("acceptance", ".63,.7,.25", "Acceptance by position: found 0.63,0.7,0.25, which rises at position 1;"),
        ("acceptance", "63%", "Acceptance by position: found '63%'; give numbers, comma-separated: .63,.38,.25"),
        ("k", "2", "Acceptance by position: found 3 shares (0.63,0.38,0.25) for k = 2; give one share for each"),
        ("k", "2.5", "Draft positions, k: found '2.5'; give a whole number"),
        ("concurrency", "5000", "Requests in flight: 5000 requests of 500 tokens exceed the KV memory of H100 SXM;"),
        ("draft-rate", "", "Share of steps with a draft: found ''; give a number"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_at_its_field_and_no_old_verdict_stands(
    page: Page, field: str, typed: str, said: str
) -> None:
    page.choose(f"[name={field}]", typed)
    assert state(page)["state"] == "refused"
    assert text(page, ".map-problem").startswith(said)
    assert page.value(f"document.querySelector('{WIDGET} .map-verdict').innerText").startswith(said)
    blamed = page.value(f"document.querySelector('{WIDGET} [aria-invalid]').name")
    assert blamed == ("acceptance" if "Acceptance" in said else field)
    assert page.value(f"document.querySelector('{WIDGET} .map-results').inert")
    page.choose("[name=k]", "3")
    page.choose(
        f"[name={field}]", {"acceptance": ".63,.38,.25", "k": "3", "concurrency": "64", "draft-rate": "1"}[field]
    )
    assert state(page)["state"] == "ok"
    assert page.value(f"document.querySelectorAll('{WIDGET} [aria-invalid]').length") == 0


def test_every_control_has_a_label_and_the_verdict_is_told(page: Page) -> None:
    named = page.value(
        f"[...document.querySelectorAll('{WIDGET} input, {WIDGET} select')]"
        ".map((e) => [e.name, e.labels.length, e.labels[0]?.firstChild.textContent])"
    )
    assert len(named) == 13
    assert all(count == 1 and label.strip() for _, count, label in named)
    told = page.value(f"[...document.querySelectorAll('{WIDGET} [role=status]')].map((e) => e.ariaLive)")
    assert told == ["polite"]


def test_n_gram_has_no_draft_position_to_pay(page: Page) -> None:
    page.choose("[name=method]", "ngram")
    assert page.value("document.querySelector('[name=drafting-ms]').disabled")
    assert "--drafting-ms" not in text(page, ".map-command")
    assert "worst +27.7%" in " ".join(texts(page, ".map-errors li"))


def test_the_curve_marks_the_crossover_and_leaves_what_was_fitted_dashed(page: Page) -> None:
    assert page.value(f"document.querySelectorAll('{WIDGET} circle.crossover').length") == 1
    fitted = page.value(f"document.querySelector('{WIDGET} polyline.curve:not(.beyond)').points.length")
    beyond = page.value(f"document.querySelector('{WIDGET} polyline.curve.beyond').points.length")
    assert fitted + beyond == 49 + 1  # they meet in one point
    page.choose("[name=concurrency]", "4")
    page.choose("[name=context]", "20000")
    assert state(page)["state"] == "ok"
    assert page.value(f"document.querySelectorAll('{WIDGET} circle.crossover').length") == 0
    assert "memory full" in texts(page, ".widget-plot text.name")


@pytest.mark.parametrize(("up", "rows"), [("context", 22), ("acceptance", 22), ("k", 3)])
def test_the_map_holds_the_librarys_speed_ups(page: Page, up: str, rows: int) -> None:
    found = page.value(f"document.querySelector('{WIDGET}').speclab.field({json.dumps(asdict(OPENING))}, '{up}')")
    assert len(found["rows"]) == rows
    calibration = calibrations.named(OPENING.calibration)
    parameters = calibration.fit.parameters
    question, _ = question_of(OPENING, calibration, parameters)
    for row in found["rows"]:
        value = row["value"]
        k = int(value) if up == "k" else OPENING.k
        here = replace(
            question,
            draft=replace(question.draft, k=k),
            acceptance=flat_marginal(value, k) if up == "acceptance" else OPENING.acceptance[:k],
            traffic=Traffic(value if up == "context" else OPENING.context),
        )
        most = most_in_flight(device("h100-sxm"), here) or 0
        assert [cell is not None for cell in row["cells"]] == [at <= most for at in found["columns"]]
        inside = [at for at in found["columns"] if at <= most]
        assert row["cells"][: len(inside)] == pytest.approx(speed_up(parameters, here, inside, k), rel=1e-6)
    page.choose("[name=up]", up)
    drawn = page.value(f"document.querySelectorAll('{WIDGET} rect').length")
    assert drawn == sum(cell is not None for row in found["rows"] for cell in row["cells"]) > 80


@pytest.mark.parametrize("width", [390, 1000])
def test_no_page_is_wider_than_its_screen(browser: Browser, file: Path, width: int) -> None:
    page = browser.open(file, width=width)
    assert page.value("document.documentElement.scrollWidth") == width
    edges = page.value(f"[...document.querySelectorAll('{WIDGET} svg')].map((e) => e.getBoundingClientRect().right)")
    assert len(edges) == 2
    assert max(edges) < width
    page.close()

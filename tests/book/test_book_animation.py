"""The animation in a real browser: each control changes the state it should, and nothing else is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Browser, Page
from widget_samples import RECORDING, write_page

from speclab import paths
from speclab.book import widget

WIDGET = '[data-widget="animation"]'


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = widget.html("animation", RECORDING, label="Two requests", source="simulated", without_script="A picture.")
    return write_page(tmp_path_factory.mktemp("animation") / "animation.html", made)


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    """The page of a reader who asked for less motion: nothing moves but what the test moves."""
    opened = browser.open(file, reduced_motion=True)
    yield opened
    assert opened.errors == []
    assert [address for address in opened.requests if not address.startswith(("file:", "data:"))] == []
    opened.close()


def state(page: Page) -> dict[str, str]:
    found: dict[str, str] = page.value(f"({{...document.querySelector('{WIDGET}').dataset}})")
    return {name: found[name] for name in ("variant", "step", "playing", "speed")}


def text(page: Page, selector: str) -> list[str]:
    found: list[str] = page.value(f"[...document.querySelectorAll('{selector}')].map((e) => e.textContent)")
    return found


def focus(page: Page) -> None:
    page.value(f"document.querySelector('{WIDGET}').focus()")


def test_it_opens_on_a_telling_frame(page: Page) -> None:
    assert state(page) == {"variant": "gamma-3", "step": "1", "playing": "false", "speed": "1"}
    assert text(page, ".widget-rows .cell") == ["✓", "✓", "✓", "+1", "✓", "✗", "·", "+1"]
    assert text(page, ".widget-rows .kept") == ["kept 4", "kept 2"]
    assert text(page, ".widget-rows .count") == ["5/6", "3/6"]
    assert text(page, ".widget-totals strong") == ["2.500", "2.533", "3.0 ms", "35.0 ms"]


def test_what_a_pass_did_is_said_in_words(page: Page) -> None:
    (caption,) = text(page, "[role=status]")
    assert caption == (
        "Pass 2 of 3, decode, 19.0 ms to 27.0 ms, 2.0 ms of it drafting. "
        "Request 1: 3 of 3 drafts accepted, 4 kept with the target's own, 5 of 6 tokens out; "
        "Request 2: 1 of 3 drafts accepted, 2 kept with the target's own, 3 of 6 tokens out."
    )
    assert page.value("document.querySelector('[role=status]').getAttribute('aria-live')") == "polite"
    named = "[...document.querySelectorAll('button')].every((e) => e.getAttribute('aria-label'))"
    assert page.value(named) is True


def test_tokens_past_the_end_of_an_answer_are_not_kept(page: Page) -> None:
    page.click("[name=forward]")
    assert text(page, ".widget-rows .cell") == ["✓", "–", "✗", "–", "✓", "✓", "✓", "–"]
    assert text(page, ".widget-rows .count") == ["6/6", "6/6"]


def test_steps_forward_and_back_and_stays_within_the_run(page: Page) -> None:
    seen = []
    for name in ("forward", "forward", "back", "back", "back"):
        page.click(f"[name={name}]")
        seen.append(state(page)["step"])
    assert seen == ["2", "2", "1", "0", "0"]
    idle = text(page, ".widget-rows .idle")
    assert idle == [f"reads its prompt of {tokens} tokens, first token out" for tokens in (512, 384)]


def test_plays_to_the_end_and_stops(page: Page) -> None:
    page.choose("[name=speed]", "4")
    page.click("[name=play]")
    assert state(page) == {"variant": "gamma-3", "step": "1", "playing": "true", "speed": "4"}
    assert page.value("document.querySelector('[role=status]').getAttribute('aria-live')") == "off"
    page.when(f"document.querySelector('{WIDGET}').dataset.playing === 'false'")
    assert state(page)["step"] == "2"


def test_pause_stops_where_it_is(page: Page) -> None:
    page.click("[name=play]")
    page.click("[name=play]")
    assert state(page) == {"variant": "gamma-3", "step": "1", "playing": "false", "speed": "1"}
    assert page.value("document.querySelector('[name=play]').getAttribute('aria-label')") == "Play"


def test_scrubs(page: Page) -> None:
    page.choose("[name=step]", "0")
    assert state(page)["step"] == "0"
    assert page.value("document.querySelector('[name=step]').getAttribute('aria-valuetext')") == "pass 1 of 3"


def test_a_bar_of_the_strip_leads_to_its_pass(page: Page) -> None:
    page.click(".pass:nth-child(3)")
    assert state(page)["step"] == "2"
    # 2 of 8 ms
    assert page.value("document.querySelector('.pass.now .draft').style.width") == "25%"


def test_another_variant_starts_from_its_beginning(page: Page) -> None:
    page.choose("[name=variant]", "0")
    assert state(page) == {"variant": "off", "step": "0", "playing": "false", "speed": "1"}
    assert text(page, ".widget-totals strong") == ["1.000", "1.000", "6.0 ms", "57.0 ms"]
    assert page.value("document.querySelector('[name=step]').max") == "6"


def test_reset_leads_back_to_the_start(page: Page) -> None:
    page.choose("[name=speed]", "2")
    page.click("[name=play]")
    page.click("[name=reset]")
    assert state(page) == {"variant": "gamma-3", "step": "0", "playing": "false", "speed": "1"}


def test_keys_do_what_the_buttons_do(page: Page) -> None:
    focus(page)
    seen = []
    for key in ("Home", "ArrowRight", "End", "ArrowLeft", "+", "-", "-", "v", "r"):
        page.press(key)
        seen.append((state(page)["variant"], state(page)["step"], state(page)["speed"]))
    assert seen == [
        ("gamma-3", "0", "1"),
        ("gamma-3", "1", "1"),
        ("gamma-3", "2", "1"),
        ("gamma-3", "1", "1"),
        ("gamma-3", "1", "2"),
        ("gamma-3", "1", "1"),
        ("gamma-3", "1", "0.5"),
        ("off", "0", "0.5"),
        ("off", "0", "1"),
    ]


def test_space_plays_and_pauses_wherever_the_focus_is(page: Page) -> None:
    for focused in (WIDGET, "[name=play]"):
        page.value(f"document.querySelector('{focused}').focus()")
        page.press("Space")
        assert state(page)["playing"] == "true"
        page.press("Space")
        assert state(page)["playing"] == "false"


def test_a_control_with_the_focus_keeps_its_own_keys(page: Page) -> None:
    page.value("document.querySelector('[name=speed]').focus()")
    page.press("v")
    assert state(page)["variant"] == "gamma-3"


def test_every_control_is_reached_by_tab(page: Page) -> None:
    focus(page)
    reached = []
    for _ in range(7):
        page.press("Tab")
        reached.append(page.value("document.activeElement.name"))
    assert reached == ["variant", "reset", "back", "play", "forward", "step", "speed"]


def test_a_frame_depends_on_variant_and_step_alone(page: Page) -> None:
    asked = f"JSON.stringify(document.querySelector('{WIDGET}').speclab.frame(1, 1))"
    before = page.value(asked)
    focus(page)
    for key in ("End", "v", "ArrowRight", "+"):
        page.press(key)
    assert page.value(asked) == before
    assert '"cells":["accepted","rejected","discarded","own"]' in before


def test_nothing_plays_by_itself_where_less_motion_is_asked_for(page: Page) -> None:
    # it would have begun by now: the one that may move says so in the test below by the same observer
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))")
    assert state(page)["playing"] == "false"


def test_it_plays_by_itself_once_it_is_seen(browser: Browser, file: Path) -> None:
    page = browser.open(file)
    page.when(f"document.querySelector('{WIDGET}').dataset.playing === 'true'")
    assert page.errors == []
    page.close()


@pytest.mark.parametrize("width", [390, 1000])
def test_no_page_is_wider_than_its_screen(browser: Browser, file: Path, width: int) -> None:
    page = browser.open(file, width=width, reduced_motion=True)
    assert page.value("document.documentElement.scrollWidth") == width
    page.close()


def test_a_print_holds_no_control(page: Page) -> None:
    page.ask("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "[...document.querySelectorAll('button, select, input')].filter((e) => e.checkVisibility()).length"
    assert page.value(shown) == 0
    assert page.value("getComputedStyle(document.querySelector('.widget'), '::after').content").startswith(
        '"Interactive'
    )


def test_the_books_own_animation_ends_with_every_answer_whole_in_each_variant(browser: Browser, tmp_path: Path) -> None:
    made = (paths.book() / "widgets" / "chapter10_mechanism.html").read_text(encoding="utf-8")
    page = browser.open(write_page(tmp_path / "mechanism.html", made), reduced_motion=True)
    focus(page)
    ended = []
    for _ in range(4):
        page.press("v")
        page.press("End")
        ended.append((state(page)["variant"], text(page, ".widget-rows .count")))
    assert sorted(variant for variant, _ in ended) == [
        "gamma-3-alpha-0.4",
        "gamma-3-alpha-0.7",
        "gamma-5-alpha-0.8",
        "off",
    ]
    assert all(count == ["40/40", "40/40"] for _, count in ended)
    assert page.errors == []
    page.close()

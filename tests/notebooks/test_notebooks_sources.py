"""Records of two machines or of two versions, or without an arm: the templates hold, and the book says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from showing import executed

from kept_lab import ARMS, Machine
from speclab import paths, results
from speclab.book import pages, sources
from speclab.run import run_arm

TEMPLATES = ("speed_up", "ngram", "method", "conclusions")
HERE = paths.root()


def two_machines(root: Path) -> None:
    Machine(root, "gpu-a").measures("baseline", "eagle3-k3")
    Machine(root, "gpu-b").measures("baseline", only=lambda asked: asked.workload == "chat")
    Machine(root, "gpu-b").measures("ngram-k8")


def two_versions(root: Path) -> None:
    Machine(root, "gpu", "vLLM 0.32.0").measures("ngram-k8")
    Machine(root, "gpu", "vLLM 0.33.0").measures("baseline", "eagle3-k3")


def no_arm(root: Path) -> None:
    Machine(root, "gpu").measures("baseline", "eagle3-k3")


def no_baseline(root: Path) -> None:
    Machine(root, "gpu").measures("eagle3-k3", "ngram-k8")


SAID: dict[Callable[[Path], None], str] = {
    two_machines: "Records of 2 machines: those of gpu-a (12 cells) are shown, those of gpu-b (8 cells) are not "
    "compared with them.",
    two_versions: "Records of 2 versions of the server on gpu: those of vLLM 0.33.0 (12 cells) are shown, those of "
    "vLLM 0.32.0 (6 cells) are not compared with them.",
    no_arm: "The arm ngram-k8 was not run: nothing is said of it.",
    no_baseline: "The baseline was not run: no speed-up can be computed.",
}


@pytest.fixture(scope="module", params=SAID, ids=lambda case: case.__name__)
def case(
    request: pytest.FixtureRequest, copy_kept_lab: Callable[[Path], None], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A checkout with one lab, its records, and the tables that the run notebooks make of them."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "data").mkdir()
    for name in ("notebooks", "data/published", "data/coverage", "data/drafters", "constraints.txt"):
        (root / name).symlink_to(HERE / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECLAB_ROOT", str(root))
        copy_kept_lab(root)
        request.param(root)
        for arm in ARMS:
            run_arm("kept", arm, kept=True)
    return root, SAID[request.param]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_shows_one_source_and_no_verdict_across_two(
    case: tuple[Path, str], template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = case
    monkeypatch.setenv("SPECLAB_ROOT", str(root))
    shown, pasted = executed(template, "kept", monkeypatch)
    assert shown
    assert pasted["source"] == results.sources("kept")[0].source
    assert not [text for text in shown if ">nan" in text.lower() or ",nan" in text.lower()]


def test_the_book_says_what_is_wrong_on_every_page_of_the_lab(
    case: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, said = case
    monkeypatch.setenv("SPECLAB_ROOT", str(root))
    lab = sources.of_labs()["kept"]
    assert said in lab.problems
    assert lab.source == results.sources("kept")[0].source
    of_the_lab = [page.name for page in (*pages.runs(), *pages.analyses()) if "/kept/" in page.name]
    assert len(of_the_lab) >= 2 + 8
    assert all(name.startswith(lab.pages) for name in of_the_lab)


def test_no_finding_pairs_cells_of_two_sources(case: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    root, _ = case
    monkeypatch.setenv("SPECLAB_ROOT", str(root))
    found = results.of("kept")
    assert set(found.findings["source"]) == {found.source}
    compared = set(found.ok_rows(["speed_up", "crossover", "break_even_length"])["arm"])
    run_here = set(results.sources("kept")[0].finished)
    assert compared <= run_here
    assert compared == (set() if "baseline" not in run_here else run_here - {"baseline"})

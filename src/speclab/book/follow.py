"""A page's text as the results decide it: what does not hold is dropped before the page is parsed.

============================================  =======================================================================
in the page                                   what it does
============================================  =======================================================================
``:::{when} CONDITION`` … ``:::``             keeps its lines where the condition holds (`speclab.book.conditions`)
``:::{otherwise}`` … ``:::``                  right behind it: keeps its lines where it does not hold
``:::{undecided}`` … ``:::``                  right behind either: keeps its lines where a value is missing
``{when}`CONDITION: text```                   the same inside a line, with as many backticks as the text needs
``{otherwise}`text```, ``{undecided}`text```  right behind it
``{source}`LAB device```                       the lab's device as text; also its ``engine``, or ``LAB``: its source
============================================  =======================================================================

A value that decides a condition may be missing, or be text where a number is compared: then neither of the first two
branches is kept. A figure that a page quotes and no notebook has pasted becomes a dash in the pages of a lab that is
not strict; in all others it is left for MyST-NB to refuse.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from speclab.book import conditions, lab_source, pasted
from speclab.book.conditions import ConditionError, Value
from speclab.book.lab_source import LabSource

MISSING = "{missing}`–`"
MISSING_FIGURE = "/_static/missing.svg"

_OPENS = re.compile(r"\s*(?P<fence>:{3,})\{(?P<name>when|otherwise|undecided)\}\s*(?P<condition>.*?)\s*")
_INLINE = re.compile(
    r"\{(?P<name>when|otherwise|undecided|source)\}(?P<ticks>`+)(?!`)(?P<content>.+?)(?<!`)(?P=ticks)(?!`)", re.S
)
_KEEPS = {"when": True, "otherwise": False, "undecided": None}
_SPLIT = re.compile(r"(?P<condition>.*?):\s(?P<text>.*)", re.S)
_QUOTED = re.compile(
    r"\{(?P<role>glue:text|badge)\}`(?P<notebook>[^`:]+\.ipynb)::(?P<key>[^`:]+)(?::(?P<format>[^`]*))?`"
)
_TABLE = re.compile(
    r"^(?P<indent> *)(?P<fence>:{3,})\{csv-table\}(?P<caption>.*)\n(?P<options>( *:[\w-]+:.*\n)+) *(?P=fence)$", re.M
)
_FIGURE = re.compile(r"^(?P<head>\s*:{3,}\{figure\} )(?P<file>\S+)$", re.M)


@dataclass(slots=True)
class Followed:
    """One page's text as the results decide it, and what it depends on.

    Attributes
    ----------
    text : str
        What is left to parse.
    notebooks : set of Path
        Notebooks whose pasted values decided a condition.
    missing : list of str
        Figures, tables and pictures that the page quotes and the results lack.
    missing_files : set of Path
        Those of them that are files.
    problems : list of str
        What is wrong with the page itself.
    """

    text: str
    notebooks: set[Path] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    missing_files: set[Path] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def follow(text: str, page: Path, book: Path, labs: Mapping[str, LabSource]) -> Followed:
    """Return a page's text as the results decide it.

    Parameters
    ----------
    text : str
        The page as it was written.
    page : Path
        Its file, from which its paths to notebooks start.
    book : Path
        The book's folder.
    labs : mapping
        The source of each lab.
    """
    return _Page(page, book, labs, Followed(text)).follow()


@dataclass(frozen=True, slots=True)
class _Page:
    file: Path
    book: Path
    labs: Mapping[str, LabSource]
    result: Followed

    def follow(self) -> Followed:
        text = "".join(self._blocks(self.result.text.splitlines(keepends=True)))
        text = self._inline(text)
        text = _QUOTED.sub(self._quoted, text)
        text = _TABLE.sub(self._table, text)
        self.result.text = _FIGURE.sub(self._figure, text)
        return self.result

    def _blocks(self, lines: list[str]) -> Iterator[str]:
        outcome: bool | None = None  # of the condition right before this line
        follows_branch = False
        at = 0
        while at < len(lines):
            opened = _OPENS.fullmatch(lines[at].rstrip("\n"))
            if not opened:
                yield lines[at]
                at, follows_branch = at + 1, False
                continue
            end = self._end(lines, at, opened["fence"])
            if opened["name"] == "when":
                outcome = self._holds(opened["condition"])
            elif not follows_branch:
                self.result.problems.append(_alone(opened["name"]))
            if outcome is _KEEPS[opened["name"]]:
                yield from self._blocks(lines[at + 1 : end])
            at, follows_branch = end + 1, True

    def _end(self, lines: list[str], at: int, fence: str) -> int:
        for end in range(at + 1, len(lines)):
            if lines[end].strip() == fence:
                return end
        self.result.problems.append(f"{lines[at].strip()} is never closed by {fence}")
        return len(lines)

    def _inline(self, text: str) -> str:
        pieces: list[str] = []
        outcome: bool | None = None
        at, branch_end = 0, -1
        for match in _INLINE.finditer(text):
            pieces.append(text[at : match.start()])
            at = match.end()
            content = re.sub(r"` \Z", "`", match["content"])
            if match["name"] == "source":
                pieces.append(self._source(content))
                continue
            if match["name"] == "when":
                parts = _SPLIT.fullmatch(content)
                if not parts:
                    self.result.problems.append(f"{{when}} {content!r}: write CONDITION: text")
                    continue
                outcome, content = self._holds(parts["condition"]), parts["text"]
            elif match.start() != branch_end:
                self.result.problems.append(_alone(match["name"]))
            branch_end = match.end()
            if outcome is _KEEPS[match["name"]]:
                pieces.append(self._inline(content))
        return "".join([*pieces, text[at:]])

    def _holds(self, condition: str) -> bool | None:
        try:
            return conditions.holds(" ".join(condition.split()), self.labs, self._lookup)
        except ConditionError as error:
            self.result.problems.append(str(error))
            return None

    def _lookup(self, name: str) -> Value | None:
        notebook, _, key = name.partition("::")
        value = self._value(notebook, key)
        if value is None and not self._lenient(notebook):
            self.result.problems.append(f"a condition asks for {name}, which no notebook has pasted")
        elif value is None:
            self._lacks(name)
        self.result.notebooks.add(self._path(notebook))
        return value

    def _quoted(self, match: re.Match[str]) -> str:
        if not self._lenient(match["notebook"]):
            return match[0]
        value = self._value(match["notebook"], match["key"])
        if value is None:
            self.result.notebooks.add(self._path(match["notebook"]))
            self._lacks(f"{match['notebook']}::{match['key']}")
            return MISSING
        if isinstance(value, str) and match["format"] and not match["format"].endswith("s"):
            # for instance a crossover that is "not reached" in these results
            return f"{{glue:text}}`{match['notebook']}::{match['key']}:s`"
        return match[0]

    def _table(self, match: re.Match[str]) -> str:
        options = dict(re.findall(r"^ *:([\w-]+):(.*)$", match["options"], re.M))
        if not self._lacks_file(options.get("file", "").strip()):
            return match[0]
        # the caption and the name stay: other pages may point to them
        kept = [f":{name}:{value}" for name, value in options.items() if name == "name"]
        lines = [f"{match['fence']}{{csv-table}}{match['caption']}", *kept, "", '"–"', match["fence"]]
        return "\n".join(f"{match['indent']}{line}" for line in lines)

    def _figure(self, match: re.Match[str]) -> str:
        return f"{match['head']}{MISSING_FIGURE}" if self._lacks_file(match["file"]) else match[0]

    def _lacks_file(self, name: str) -> bool:
        file = self._path(name)
        lab = next((lab for lab in self.labs if file.name.startswith(f"{lab}_")), None)
        if lab is None or self.labs[lab].strict or file.is_file():
            return False
        self._lacks(name)
        self.result.missing_files.add(file)
        return True

    def _lacks(self, name: str) -> None:
        if name not in self.result.missing:
            self.result.missing.append(name)

    def _value(self, notebook: str, key: str) -> Value | None:
        return pasted.read(self._path(notebook)).get(key)

    def _lenient(self, notebook: str) -> bool:
        page = self._path(notebook).relative_to(self.book).as_posix()
        lab = lab_source.owner(self.labs, page)
        return lab is not None and not self.labs[lab].strict

    def _path(self, name: str) -> Path:
        return Path(os.path.normpath(self.file.parent / name))

    def _source(self, content: str) -> str:
        lab, _, part = content.partition(" ")
        if lab not in self.labs or part not in ("", "device", "engine"):
            self.result.problems.append(f"{{source}} {content!r}: write LAB, LAB device or LAB engine")
            return ""
        source = self.labs[lab]
        return {"": source.source, "device": source.device, "engine": source.engine}[part]


def _alone(branch: str) -> str:
    return f"{{{branch}}} stands right behind the {{when}} that it belongs to, and nowhere else"

"""The one error a user of the lab sees: where, what was found, what would do."""

from __future__ import annotations

from pathlib import Path


class UserError(Exception):
    """A mistake that the person at the keyboard can mend; printed as one line, without a traceback.

    Parameters
    ----------
    problem : str
        What was found, with the value.
    remedy : str
        What would do instead.
    file : Path, optional
        The file that holds the mistake.
    key : str, optional
        The key inside that file, dotted (``speculation.method``).
    """

    def __init__(self, problem: str, remedy: str, *, file: Path | None = None, key: str | None = None):
        self.problem, self.remedy, self.file, self.key = problem, remedy, file, key
        where = ": ".join(part for part in (str(file) if file else None, key) if part)
        super().__init__(f"{where}: {problem}; {remedy}" if where else f"{problem}; {remedy}")

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows of this error: IPython asks an exception for these lines by this name."""
        return [f"speclab: {self}"]

"""From records to what a reader asks for: tables of a lab, its results and their source, two results compared."""

from speclab.results.lab import NOTHING, Results, bracketed, marked, models, of, probed, records, text_checks
from speclab.results.source import ResultSource, problems, sources

__all__ = [
    "NOTHING",
    "ResultSource",
    "Results",
    "bracketed",
    "marked",
    "models",
    "of",
    "probed",
    "problems",
    "records",
    "sources",
    "text_checks",
]

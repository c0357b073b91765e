"""From records to what a reader asks for: tables of a lab, its results, two results compared."""

from speclab.results.lab import NOTHING, Results, bracketed, marked, models, of, probed, problems, records, text_checks

__all__ = ["NOTHING", "Results", "bracketed", "marked", "models", "of", "probed", "problems", "records", "text_checks"]

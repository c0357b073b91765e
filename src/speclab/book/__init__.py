"""From notebooks to the book: deterministic execution, numbers for the prose, the Sphinx extension, what is stale."""

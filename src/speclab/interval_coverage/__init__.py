"""How often our 95% intervals hold the truth: labs whose truth is known, simulated many times over."""

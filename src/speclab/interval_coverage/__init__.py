"""How often a 95% interval of ours holds the truth: labs whose truth is known, made many times over."""

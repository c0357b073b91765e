"""Who is in flight when: the closed loop that drives any engine."""

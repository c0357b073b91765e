"""What a pass, a step and an accepted token cost on paper: devices, transformer shapes, roofline, speculation."""

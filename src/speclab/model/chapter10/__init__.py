"""The second source's chapter 10 rebuilt: its devices, workloads and levers as presets, and its tables as functions."""

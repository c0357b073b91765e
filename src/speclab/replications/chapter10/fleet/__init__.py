"""A fleet that serves requests in virtual time: workloads, schedulers, one price a pass, metrics, capacity."""

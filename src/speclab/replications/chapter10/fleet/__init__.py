"""A fleet that serves requests in virtual time: workloads, schedulers, the time of each pass, metrics, capacity."""

"""What the benchmarks share: workloads drawn by seed, processes that are timed, the table."""

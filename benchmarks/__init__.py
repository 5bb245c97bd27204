"""Measures what the simulated IPUs cost: `python -m benchmarks`.

runner        two sides, measured in turns, their outputs compared first
results       what a measurement gives: as a line of the table, and as JSON
rows          rows of validation/benchmarks.csv, of the JSON of several runs
worker        a side that lives in its own process
programs      what is measured: small and large models, and the forms in which they run

lowering_stopwatch  measures the lowering of programs

device_overhead, one_ipu, four_shards, import_time, memory_accounting, lowering_time, training_loops,
parallel_training, keras_fit, large_training, execution_modes: the benchmarks, one a file. Each has `run(settings)`,
which yields results, and runs in its own process.
"""

from __future__ import annotations

BENCHMARKS = (
    "device_overhead",
    "one_ipu",
    "four_shards",
    "import_time",
    "memory_accounting",
    "lowering_time",
    "training_loops",
    "parallel_training",
    "keras_fit",
    "large_training",
    "execution_modes",
)

"""Models pipelines: partitions layers into stages, schedules mini-batches, computes each stage's memory."""

"""Schedules of pipelines: which stage works on which mini-batch when, and what it keeps meanwhile."""

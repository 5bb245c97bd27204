"""Pipeline schedules: which stage processes which mini-batch when, and what it keeps."""

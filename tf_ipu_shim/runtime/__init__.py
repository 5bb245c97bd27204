"""The state of this process: configured devices, attached IPUs, seeds, memory plans, trace events, jobs."""

"""What `ipu.utils` has for running scripts: devices, trace events, variables."""

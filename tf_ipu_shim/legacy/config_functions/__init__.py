"""Implements the `ipu.utils` functions that set an `IpuOptions`, the configuration before `ipu.config.IPUConfig`."""

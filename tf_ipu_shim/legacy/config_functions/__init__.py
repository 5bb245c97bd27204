"""The functions of `ipu.utils` that wrote an `IpuOptions` before there was `ipu.config.IPUConfig`."""

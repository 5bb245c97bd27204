"""The configuration functions of `ipu.utils` on `IpuOptions`, from before `ipu.config.IPUConfig`."""

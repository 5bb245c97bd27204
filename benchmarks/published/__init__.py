"""Scripts whose throughput on real IPUs is published, for `tf-ipu fit`: rows of `docs/explanation/machine_model.md`."""

"""The configuration of the IPU system: options as data, and the effect of each.

`enums`, `types`, `metadata`, `base` and `declared` are the machinery, `table` the options as data, `tree` the
configuration built from it, `translate` its protobuf and the checks across options, `system` what takes effect, and
`effects` what each option changes on a simulated system; `functions` are those of `ipu.utils` from before there was
`IPUConfig`. The options need no TensorFlow; only `system` imports it.
"""

"""Declares every option of the IPU system with its effect; builds, checks and applies `IPUConfig`.

`table` has the options as data. `enums`, `types`, `metadata`, `base` and `declared` make `tree`, the configuration,
from it. `translate` writes its protobuf and checks across options. `system` applies it, and `effects` lists the effect
of each option on a simulated system. `old_functions` names the arguments of `ipu.utils`. The options need no
TensorFlow; only `system` imports it.
"""

"""The only package that imports internal modules of TensorFlow and Keras, or uses their underscore members.

Each file has one subject and each line one entry, with its purpose in a comment. No other file imports an internal
module. `tests/house/test_tf_private.py` refuses others, and tries each entry on the TensorFlow that is installed.
"""

from typing import Any

CHECKED = ("2.15.1", "2.21.0")
"""The versions of TensorFlow on which each entry was checked, where its line does not say otherwise."""


def list_physical_devices() -> list[bytes]:
    """Looks for devices without making TensorFlow's context, which would fix the list before the IPU is in it."""
    from tensorflow.python import pywrap_tfe

    return pywrap_tfe.TF_ListPhysicalDevices()


def unwrapped(module: Any) -> Any:
    """Returns the module behind a deprecation wrapper, whose attributes cannot be set; else the module itself."""
    return getattr(module, "_tfmw_wrapped_module", module)

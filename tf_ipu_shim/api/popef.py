"""`popef`: refuses Graphcore's reader of compiled Poplar executables, which this package never writes."""

from __future__ import annotations

from tf_ipu_shim.names.not_supported_marker import not_supported


class Reader:
    """Refused: models exported here do not contain a Poplar executable.

    Source: `popef.Reader`.

    Example:
        >>> Reader()
        Traceback (most recent call last):
        tf_ipu_shim.errors.UnsupportedError: Reader is not emulated: ...
    """

    @not_supported(
        "is not emulated: it reads executables that Poplar has compiled, and what is exported here has none. Load the "
        "SavedModel with tf.saved_model.load: its graph says what it runs."
    )
    def __init__(self) -> None:
        pass

"""Holds the keys that scripts set to verify host transfers, an option of SDK 1.2 to 2.2 without effect here."""

from __future__ import annotations


class KeyId:
    """A key and the first id of one stream's verified transfers.

    Args:
        key: selects the device key that protects the stream.
        start_id: the id of its first transfer; -1 means the default of the stream.

    Source: `tensorflow.python.ipu.utils`.
    """

    def __init__(self, key: int = 0, start_id: int = -1) -> None:
        self.key = key
        self.start_id = start_id

    def __repr__(self) -> str:
        return f"KeyId(key={self.key}, start_id={self.start_id})"


class VerificationOptions:
    """The keys of every kind of stream; feeds have one for each feed name.

    Source: `tensorflow.python.ipu.utils`.
    """

    def __init__(self) -> None:
        self.inputs = KeyId()
        self.input_parameters = KeyId()
        self.outputs = KeyId()
        self.output_parameters = KeyId()
        self.infeeds: dict[str, KeyId] = {}
        self.outfeeds: dict[str, KeyId] = {}
        self.checkpoint_in = KeyId()
        self.checkpoint_out = KeyId()

    def __repr__(self) -> str:
        return "VerificationOptions()"

"""Declares the options of commands that print sizes: `--bytes`, and the length of lists (`--top`)."""

from __future__ import annotations

import argparse
import os

from tf_ipu_shim.machine.memory import byte_text


def add_arguments(parser: argparse.ArgumentParser, top: int | None = None, listed: str = "") -> None:
    """Declares the options.

    Args:
        top: how many entries are shown; without it there is no `--top`.
        listed: the entries.
    """
    parser.add_argument(
        "--bytes",
        dest="exact_bytes",
        action="store_true",
        help=f"print sizes with all digits, not in KiB, MiB and GiB [env: {byte_text.ENVIRONMENT_VARIABLE}]",
    )
    if top is not None:
        parser.add_argument(
            "--top", metavar="N", type=_parse_count, default=top, help=f"show the N {listed} (default {top})"
        )


def apply(arguments: argparse.Namespace) -> None:
    """Puts `--bytes` into the environment, from which messages of this process read it."""
    if arguments.exact_bytes:
        os.environ[byte_text.ENVIRONMENT_VARIABLE] = "1"


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"it is {text!r}; expected a whole number from 1 on")
    return int(text)

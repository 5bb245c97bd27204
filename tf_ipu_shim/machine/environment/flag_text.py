"""Parses the text of TensorFlow-style flag variables and creates their errors."""

from __future__ import annotations

import errno
import os
import shlex
import stat

from tf_ipu_shim import spelling
from tf_ipu_shim.errors import UnknownFlagError

_MOST_CHARACTERS = 1 << 20  # of a file of flags


def is_file_name(text: str) -> bool:
    """Returns whether the variable names a file of flags instead of containing them."""
    return bool(text.strip()) and not text.lstrip().startswith("-")


def _content(path: str) -> str:
    # A device or a FIFO has no end, or none before somebody writes to it.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(file, encoding="utf-8") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        content = opened.read(_MOST_CHARACTERS + 1)
    if len(content) > _MOST_CHARACTERS:
        raise OSError(errno.EFBIG, f"it has more than {_MOST_CHARACTERS} characters", path)
    return content


def split(text: str, variable: str) -> list[tuple[str, str | None]]:
    """Returns names and values in order; the value of a bare `--name` is None."""
    if is_file_name(text):
        path = os.path.expanduser(text.strip())
        try:
            text = _content(path)
        except (OSError, UnicodeDecodeError) as error:
            raise UnknownFlagError(
                f"{variable} is {path!r}. A value that does not begin with '--' must name a readable text file of "
                f"flags, but it cannot be read: {error}. Write flags as --name=value, separated by blanks."
            ) from None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UnknownFlagError(
            f"{variable} is {text!r}, which cannot be split into flags: {error}. Check its quotation marks."
        ) from None
    flags: list[tuple[str, str | None]] = []
    for word in words:
        name, equals, value = word[2:].partition("=")
        if not word.startswith("--") or not name:
            raise UnknownFlagError(
                f"{variable} holds {word!r}, which is not of the form --name=value or --name. Separate flags by "
                "blanks, and write only '=' between a flag's name and its value."
            )
        flags.append((name, value if equals else None))
    return flags


def unknown(name: str, flag_names: list[str], variable: str) -> UnknownFlagError:
    """Returns the error for an unknown flag."""
    hint = spelling.did_you_mean(name, flag_names, "--{}")
    return UnknownFlagError(f"{variable} holds the unknown flag --{name}.{hint} `tf-ipu env` lists the flags.")


def bad_value(name: str, received: str | None, expected: str) -> UnknownFlagError:
    """Returns the error for an invalid value of a flag."""
    shown = f"--{name}" if received is None else f"--{name}={received}"
    return UnknownFlagError(f"Flag {shown} is wrong: it needs {expected}.")


def boolean(name: str, value: str | None) -> bool:
    """Parses a boolean flag."""
    if value is None or value == "true":
        return True
    if value == "false":
        return False
    raise bad_value(name, value, "true or false (or no value at all, which is true)")


def integer(name: str, value: str | None) -> int:
    """Parses a 64-bit integer."""
    try:
        parsed = int(value) if value is not None and "_" not in value else None
    except ValueError:
        parsed = None
    if parsed is None or not -(2**63) <= parsed < 2**63:
        raise bad_value(name, value, "a whole number, as in --" + name + "=1")
    return parsed


def string(name: str, value: str | None) -> str:
    """Parses a string; an empty one counts as not given."""
    if value is None:
        raise bad_value(name, value, "a value, as in --" + name + "=VALUE")
    return value

"""Registers, applies and undoes every patch of TensorFlow, Keras and Python's import system.

A change is made once however often it is asked for, from whichever thread. The effect of a change may differ from
thread to thread, such as the pipeline stage that a thread entered. The change itself is global.

`applied()` lists the changes. `undo()` restores TensorFlow and Keras to their state before `ipu` was imported.

    python -m tf_ipu_shim.patches [MODULE ...]      prints the changes that `ipu`, and these modules, make when imported
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

CHECKED = ("TensorFlow 2.15.1 with keras 2.15.0", "TensorFlow 2.21.0 with tf_keras 2.21.0")
_ABSENT = object()


class Patch(NamedTuple):
    """A change of an object that is not ours.

    Args:
        checked: the versions on which a check found the target, used as we expect.
        undone: how `undo` reverts it.
    """

    target: str
    why: str
    checked: tuple[str, ...]
    undone: str


_lock = threading.RLock()
# By what is patched: the record, what undoes it, and the patched object, which keeps its id from being used again.
_applied: dict[Hashable, tuple[Patch, Callable[[], None], Any]] = {}


def applied() -> list[Patch]:
    """Returns the patches of this process, in the order in which they were made.

    Example:
        >>> all(patch.why and patch.undone for patch in applied())
        True
    """
    with _lock:
        return [patch for patch, _, _ in _applied.values()]


def replace(owner: Any, name: str, make: Callable[[Any], Any], why: str, checked: tuple[str, ...] = CHECKED) -> None:
    """Replaces an attribute of a class or module of TensorFlow's or Keras'; does nothing if it has been already.

    Example:
        >>> import types
        >>> module = types.ModuleType("stock")
        >>> module.limit = 3
        >>> replace(module, "limit", lambda stock: stock + 1, why="one more")
        >>> module.limit
        4
    """
    key = (id(owner), name)
    with _lock:
        if key in _applied:
            return
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, make(getattr(owner, name, None)))
        after = vars(owner)[name]

        def undo_it() -> None:
            if vars(owner).get(name, _ABSENT) is not after:
                raise RuntimeError(
                    f"{target} has been changed by other code since, and must be unchanged to be undone. Undo "
                    "that change first."
                )
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        module = f"{owner.__module__}." if isinstance(owner, type) else ""
        target = f"{module}{owner.__name__}.{name}"
        undone = "the attribute is removed" if before is _ABSENT else "the stock attribute is restored"
        _applied[key] = (Patch(target, why, checked, undone), undo_it, owner)


def change(
    target: str,
    do: Callable[[], None],
    undo: Callable[[], None],
    why: str,
    undone: str,
    checked: tuple[str, ...] = CHECKED,
) -> None:
    """Makes a change that is more than one attribute; does nothing if it has been made already.

    Example:
        >>> names = []
        >>> change("names", lambda: names.append("a"), names.clear, why="an example", undone="the list is emptied")
        >>> names
        ['a']
    """
    with _lock:
        if target not in _applied:
            do()
            _applied[target] = (Patch(target, why, checked, undone), undo, None)


def undo() -> None:
    """Reverts all patches in reverse order.

    The emulation no longer works in this process.
    """
    with _lock:
        for key in reversed(list(_applied)):
            _applied[key][1]()
            del _applied[key]


def table(patches: Iterable[Patch]) -> str:
    """Returns patches as a table in Markdown, in the order of their targets.

    Example:
        >>> print(table([Patch("stock.limit", "one more", ("1.0",), "it is restored")]))
        | patched | so that | checked on | undone |
        |---|---|---|---|
        | `stock.limit` | one more | 1.0 | it is restored |
    """
    rows = [f"| `{patch.target}` | {patch.why} | {'; '.join(patch.checked)} | {patch.undone} |" for patch in patches]
    return "\n".join(["| patched | so that | checked on | undone |", "|---|---|---|---|", *sorted(rows)])


def main(modules: Iterable[str]) -> None:
    """Prints the changes of a process that imports `ipu` and then some modules.

    Example:
        >>> main([])  # doctest: +SKIP
    """
    for name in ("tf_ipu_shim.ipu", *modules):
        importlib.import_module(name)
    print(table(importlib.import_module("tf_ipu_shim.patches").applied()))  # the one that they register with


if __name__ == "__main__":
    main(sys.argv[1:])

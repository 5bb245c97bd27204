"""Writes tf_ipu_shim/names/emulated_names.json: how each Graphcore name is handled, for `tf-ipu check --static`.

`--check` ends with status 1 if the section of the installed TensorFlow is out of date. Write 2.15's section first.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent


def modules() -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Rows by module and name of what can be imported, and why the other modules cannot."""
    from tf_ipu_shim.names import emulated, graphcore_names

    found: dict[str, dict[str, Any]] = {}
    absent: dict[str, str] = {}
    names = list(graphcore_names.modules())
    for module in names:
        for end in range(1, module.count(".") + 2):
            parent = ".".join(module.split(".")[:end])
            if parent in found:
                continue
            if emulated.is_module(parent):
                if parent in names or is_ours(importlib.import_module(parent)):
                    found[parent] = rows(parent, names)
            elif parent in names:
                absent[parent] = emulated.unsupported_module_reason(parent)
    return found, absent


def is_ours(thing: Any) -> bool:
    """Returns whether a module, class or function is of this package."""
    return str(getattr(thing, "__module__", None) or getattr(thing, "__name__", "")).startswith("tf_ipu_shim.")


def rows(module: str, modules: list[str]) -> dict[str, Any]:
    """Returns a row for each name that a module has, or that is refused with another reason."""
    from tf_ipu_shim.names import emulated, graphcore_names

    inside = [name.removeprefix(f"{module}.").partition(".")[0] for name in modules if name.startswith(f"{module}.")]
    imported = importlib.import_module(module)
    public = [name for name in dir(imported) if name[0] != "_" and is_ours(getattr(imported, name, None))]
    made: dict[str, Any] = {}
    for name in sorted({*graphcore_names.attributes(module), *inside, *public}):
        status = emulated.get_status(module, name)
        row: dict[str, Any] = {}
        if status.state != emulated.EMULATED:
            row = {"state": status.state, "reason": status.reason}
        elif behind := emulated.implementing_module(module, name):
            row = {"module": behind}
        else:
            lineage, arguments = emulated.class_lineage(module, name), emulated.argument_names(module, name)
            row = {"lineage": lineage} if lineage != [name] else {}
            row |= {} if arguments is None else {"arguments": arguments}
        made[name] = row
    return made


def content(before: dict[str, Any]) -> dict[str, Any]:
    """Returns the file with the section of the installed TensorFlow renewed."""
    import tensorflow as tf

    from tf_ipu_shim.check import findings
    from tf_ipu_shim.names import emulated_table

    found, absent = modules()
    if emulated_table.section(tf.version.VERSION) == emulated_table.FIRST:
        methods = sorted(findings.keras_method_names())
        first: dict[str, Any] = {"modules": found, "absent": absent}
        return {**before, "keras_methods": methods, emulated_table.FIRST: first}
    known = before[emulated_table.FIRST]["modules"]
    changed = {
        module: {name: row for name, row in rows.items() if known.get(module, {}).get(name) != row}
        for module, rows in found.items()
    }
    for module in known.keys() & found.keys():
        for name in known[module].keys() - found[module].keys():
            changed[module][name] = {"state": "missing", "reason": f"This TensorFlow's {module} does not have {name}."}
    return {
        **before,
        emulated_table.LATER: {
            "modules": {module: rows for module, rows in changed.items() if rows},
            "absent": {name: why for name, why in absent.items() if name in known},
        },
    }


def _text(content: dict[str, Any]) -> str:
    """JSON with a line for each name, so that changes can be read."""
    return json.dumps(content, indent=0, sort_keys=True).replace(",\n", ", ").replace("}, ", "},\n") + "\n"


def main(arguments: list[str]) -> int:
    """Writes the file, or checks it."""
    from tf_ipu_shim.names import emulated_table

    before = json.loads(emulated_table.FILE.read_text()) if emulated_table.FILE.exists() else {}
    text = _text(content(before))
    if "--check" not in arguments:
        emulated_table.FILE.write_text(text)
        return 0
    if emulated_table.FILE.read_text() == text:
        return 0
    print(f"{emulated_table.FILE} is out of date: run `make coverage`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))

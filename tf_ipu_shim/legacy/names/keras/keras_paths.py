"""Maps Keras module paths of TensorFlow 1.15 to 2.6 to their paths in Keras 2.

Keras split its large modules later (`layers.core` became a package without `Dropout`). So an old path may lead to
several modules, which together have its names. Other paths have not changed. Checked on `keras` 2.15.0 and `tf_keras`
2.21.0.
"""

from __future__ import annotations

from tf_ipu_shim import data_files

MOVED = {row["old"]: row["new"] for row in data_files.rows(__file__, "moved_modules.csv")}
"""Old path -> the modules that have its names now, in order of precedence.

Names below a path with one module are below that module.
"""

# Module of the time that is where it was -> modules that have names which it had too.
BESIDE = {
    "engine.base_layer": "engine.input_spec",
    "engine.base_layer_v1": "engine.input_spec engine.node",
    "engine.compile_utils": "utils.losses_utils",
    "legacy_tf_layers.base": "engine.input_spec",
    "models": "models.cloning",
}
# Packages of the time that no package of the same path stands for today.
PACKAGES = ("layers.legacy_rnn",)


def modules(path: str) -> tuple[str, ...]:
    """Returns the modules of Keras 2 that contain the names of an old module.

    Example:
        >>> modules("layers.embeddings")
        ('layers.core.embedding',)
        >>> modules("engine.training")
        ('engine.training',)
        >>> modules("optimizer_v2.adam")
        ('optimizers.legacy.adam',)
    """
    if path in MOVED:
        return tuple(MOVED[path].split())
    parent, _, name = path.rpartition(".")
    while parent:
        targets = MOVED.get(parent, "").split()
        if len(targets) == 1:
            return (f"{targets[0]}.{name}",)
        parent, _, last = parent.rpartition(".")
        name = f"{last}.{name}"
    return (path,)


def is_moved(path: str) -> bool:
    """Returns whether Keras has moved a module, or a package it was in.

    Example:
        >>> is_moved("engine.training"), is_moved("layers.core")
        (False, True)
    """
    return path in PACKAGES or modules(path) != (path,)

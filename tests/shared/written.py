"""Names as a file writes them."""

from __future__ import annotations

import ast


def written(node: ast.AST) -> str:
    """As `ast.unparse`, which takes ten times as long for a name with dots."""
    names, inner = [], node
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    return ".".join([inner.id, *reversed(names)]) if isinstance(inner, ast.Name) else ast.unparse(node)

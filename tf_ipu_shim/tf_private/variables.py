"""Variables as resources, and the scopes that make them."""

from __future__ import annotations

from tensorflow.python.ops import (
    gen_resource_variable_ops,  # reads and writes of a handle
    resource_variable_ops,  # ResourceVariable's classes, to know and derive them
    variable_scope,  # the scope that get_variable is in
    variable_v1,  # VariableV1, the class of version 1
    variables,  # Variable, the class of version 2
)

"""`tensorflow.python.ipu.test_utils.session_utils`: creates sessions for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tf_ipu_shim.frontend.utilities import variables
from tf_ipu_shim.tf_private.protos import config_pb2, rewriter_config_pb2
from tf_ipu_shim.tf_private.sessions import session


@contextmanager
def ipu_session(disable_grappler_optimizers: Iterable[str] | None = None) -> Iterator[Any]:
    """A session of the default graph.

    Args:
        disable_grappler_optimizers: names of TensorFlow's graph optimizers to switch off, such as
            `"constant_folding"`.

    Raises:
        ValueError: the optimizer is unknown.

    Source: `tensorflow.python.ipu.test_utils.session_utils.ipu_session`.

    Example:
        >>> with ipu_session() as running:
        ...     running.run(tf.compat.v1.global_variables_initializer())
    """
    config = config_pb2.ConfigProto()
    rewriting = config.graph_options.rewrite_options
    for name in disable_grappler_optimizers or ():
        if name not in rewriting.DESCRIPTOR.fields_by_name:
            raise ValueError(
                f"There is no Grappler optimizer {name!r}; expected a name in RewriterConfig. Use one of these names."
            )
        setattr(rewriting, name, rewriter_config_pb2.RewriterConfig.OFF)
    with session.Session(config=config) as running:
        yield running


def move_variable_initialization_to_cpu() -> None:
    """Moves the initialisation of the default graph's variables to the CPU.

    Source: `tensorflow.python.ipu.test_utils.session_utils.move_variable_initialization_to_cpu`.

    Example:
        >>> move_variable_initialization_to_cpu()
    """
    variables.move_variable_initialization_to_cpu()

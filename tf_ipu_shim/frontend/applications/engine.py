"""Runs one embedded-runtime engine: a compiled application with its own graph, session and thread.

A session of an engine has one IPU device, the engine's: the process's configuration does not affect it. It has its own
threads too, because programs that wait for calls would occupy TensorFlow's. Uses the session option
`experimental.session_metadata`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.messages import config_pb2
from tf_ipu_shim.plugin.library import APPLICATION_SESSION
from tf_ipu_shim.runtime import devices
from tf_ipu_shim.runtime.device import IpuDevice
from tf_ipu_shim.tf_private import datasets as tf_datasets
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.datasets import dataset_ops, gen_dataset_ops
from tf_ipu_shim.tf_private.datasets import options as dataset_options
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import config_pb2 as session_options
from tf_ipu_shim.tf_private.sessions import session as session_lib
from tf_ipu_shim.tf_private.tensors import tensor_shape
from tf_ipu_shim.tf_private.variables import gen_resource_variable_ops

_HOST = "/device:CPU:0"
_THREADS = 4  # for ops between waiting ones, which have separate threads


class Engine:
    """Runs an application until it is closed.

    Args:
        executable: the application's `PoplarExecutableProto`.
        weights: the bytes of its tensors.

    Raises:
        tf.errors.InternalError: there are not enough free IPUs.
        tf.errors.InvalidArgumentError: the application is for another chip, or is invalid.
    """

    def __init__(self, name: str, executable: Any, weights: Sequence[bytes]) -> None:
        self.name = name
        self._program = executable.program
        self._signature = executable.embedded_runtime_config.signature
        self._weights = weights
        self._library = plugin.load()
        self._closing = threading.Event()
        options = config_pb2.IpuOptions.FromString(executable.configuration)
        self.device: IpuDevice = devices.add_application(options, executable.embedded_runtime_config.num_ipus)
        try:
            self.outfeed_ids = self._rename_outfeeds()
            self._graph = ops.Graph()
            self._fed: dict[Any, Any] = {}
            with self._graph.as_default():
                self._build()
            self._session = session_lib.Session(graph=self._graph, config=_session_config(self.device.ordinal))
            self._session.run(self._initialise, self._fed)
        except BaseException:
            devices.remove_application(self.device)
            raise
        self._thread = threading.Thread(target=self._run_program, name=f"ipu_engine_{name}", daemon=True)

    def start(self) -> None:
        """Starts the thread, which then accepts calls."""
        self._thread.start()

    def close(self) -> None:
        """Ends the engine: callers that wait for it receive an error. Its IPUs are free afterwards."""
        self._closing.set()
        self._fail(errors_impl.CANCELLED, f"Engine '{self.name}' has ended.", closes=True)
        if self._thread.is_alive():
            self._thread.join()
        self._session.close()
        devices.remove_application(self.device)

    def _run_program(self) -> None:
        while not self._closing.is_set():
            try:
                self._session.run(self._run)
            except Exception as error:
                if self._closing.is_set():
                    return
                code = errors_impl.UNKNOWN if isinstance(error, errors_impl.UnknownError) else errors_impl.INTERNAL
                self._fail(code, getattr(error, "message", str(error)), closes=False)
                if not self._reload():
                    return

    def _reload(self) -> bool:
        """Loads the engine again with its initial inputs, as after a reset of IPUs; without an engine it does
        nothing.
        """
        try:
            self._session.run(self._initialise, self._fed)
        except Exception as error:
            self._fail(errors_impl.INTERNAL, f"Engine '{self.name}' cannot be loaded again: {error}", closes=True)
            return False
        return True

    def _fail(self, code: int, message: str, closes: bool) -> None:
        self._library.fail_application(self.name, code, message, closes)

    def _rename_outfeeds(self) -> list[str]:
        """Renames the outfeeds for this engine: outfeeds are found by name in the whole process."""
        feed_ids = {feed.id: f"{feed.id}/engine_{self.device.ordinal}" for feed in self._program.outfeeds}
        for function in self._program.library.function:
            for node in function.node_def:
                if node.op == vocabulary.OUTFEED_ENQUEUE:
                    node.attr["feed_id"].s = feed_ids[node.attr["feed_id"].s.decode()].encode()
                    node.attr["outfeed_mode"].s = b"all"  # each call has its answer
        return list(feed_ids.values())

    def _build(self) -> None:
        ipu = self.device.name
        initialisers: list[Any] = []
        iterators = [self._infeed(index, initialisers) for index in range(len(self._program.infeeds))]
        arguments = []
        for index, argument in enumerate(self._program.arguments):
            if argument.kind == argument.INFEED:
                arguments.append(iterators[argument.index])
                continue
            value = self._load_argument(argument, index)
            if argument.variable:
                with ops.device(ipu):
                    variable = gen_resource_variable_ops.var_handle_op(
                        dtype=value.dtype, shape=value.shape, shared_name=f"{argument.tensor.name}_{index}"
                    )
                    initialisers.append(gen_resource_variable_ops.assign_variable_op(variable, value))
                value = variable
            arguments.append(value)
        with ops.device(_HOST):
            begin = self._library.ops.ipu_application_begin(engine=self.name)
        with ops.device(ipu), ops.control_dependencies([begin]):
            results = self._library.ops.ipu_program(
                args=arguments,
                Tout=list(self._program.output_types),
                function=self._program.function,
                library=self._program.library.SerializeToString(deterministic=True),
                device_ordinal=self.device.ordinal,
                name=self._program.name,
            )
        self._run = results if isinstance(results, ops.Operation) else results[0].op
        self._initialise = control_flow_ops.group(*initialisers)

    def _load_argument(self, argument: Any, index: int) -> Any:
        dtype = dtypes.as_dtype(argument.tensor.data_type)
        shape = tensor_shape.as_shape(argument.tensor.shape)
        with ops.device(_HOST):
            if argument.kind == argument.INPUT:
                value = self._library.ops.ipu_application_input(dtype=dtype, engine=self.name, index=argument.index)
                value.set_shape(shape)
                return value
            stored = np.frombuffer(self._weights[argument.index], dtype.as_numpy_dtype).reshape(shape.as_list())
            if not argument.variable:
                return ops.convert_to_tensor(stored, dtype)
            # Not a constant: a graph holds at most 2 GB.
            placeholder = array_ops.placeholder(dtype, shape, name=f"weights_{index}")
            self._fed[placeholder] = stored
            return placeholder

    def _infeed(self, index: int, initialisers: list[Any]) -> Any:
        """Returns an iterator, under the name in the program, which yields the inputs of calls."""
        tensors = [tensor for tensor in self._signature.streamed_inputs if tensor.feed == index]
        types = [dtypes.as_dtype(tensor.data_type) for tensor in tensors]
        shapes = [tensor_shape.as_shape(tensor.shape) for tensor in tensors]

        def element(_: Any) -> Any:
            return tuple(
                self._library.ops.ipu_application_infeed(
                    output_types=types, output_shapes=shapes, engine=self.name, feed=index
                )
            )

        with ops.device(_HOST):
            dataset = dataset_ops.DatasetV2.from_tensors(0).repeat().map(element).with_options(_no_prefetch_options())
            iterator = gen_dataset_ops.iterator_v2(
                shared_name=self._program.infeeds[index].id or f"application_infeed_{index}",
                container="",
                output_types=types,
                output_shapes=shapes,
            )
            initialisers.append(gen_dataset_ops.make_iterator(tf_datasets.variant_tensor(dataset), iterator))
        return iterator


def _no_prefetch_options() -> Any:
    """Options of a dataset that disable reading ahead."""
    chosen = dataset_options.Options()
    chosen.autotune.enabled = False
    chosen.experimental_optimization.apply_default_optimizations = False  # they would put a prefetch behind it
    return chosen


def _session_config(ordinal: int) -> Any:
    options = session_options.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=_THREADS)
    options.experimental.session_metadata.name = APPLICATION_SESSION
    options.experimental.session_metadata.version = ordinal
    # No graph rewriting: this graph gains nothing from it.
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    return options

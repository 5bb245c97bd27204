"""`ipu_tensorflow_addons.saved_model_tool.converter.autograph.tfv1graph`: a frozen graph and its pipeline stages."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter.autograph import utils
from tf_ipu_shim.frontend.conversion import graph_nodes, node_graph, stage_functions

_STAGES = "pipeline_mapping"
_DEVICES = "device_mapping"

Stage = stage_functions.Stage


class TensorInfo:
    """A tensor: its name, its shape (None for unknown axes) and the name of its dtype."""

    def __init__(self, name: str = "ops", shape: Sequence[int | None] = (), dtype: str = "float32") -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.shape!r}, {self.dtype!r})"

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}"


class Input(TensorInfo):
    """A tensor that a node reads."""


class Output(TensorInfo):
    """A tensor that a node computes."""


class Node:
    """A node of a graph.

    Args:
        name: the name of the node.
        inputs: the tensors that it reads.
        outputs: the tensors that it computes.
        op_type: its op.
        attributes: further attributes, such as its `node_def`.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.tfv1graph.Node`.

    Example:
        >>> node = Node("add", op_type="AddV2")
        >>> node.add_attr(pipeline_stage=1)
        >>> node.pipeline_stage
        1
    """

    def __init__(
        self,
        name: str = "ops",
        inputs: list[Input] | None = None,
        outputs: list[Output] | None = None,
        op_type: str = "",
        **attributes: Any,
    ) -> None:
        self.node_def: Any = None
        self.name = name
        self.inputs = inputs or []
        self.outputs = outputs or []
        self.op_type = op_type
        self.add_attr(**attributes)

    def add_attr(self, **attr: Any) -> None:
        """Sets attributes of the node."""
        vars(self).update(attr)

    def __repr__(self) -> str:
        return f"Node({self.name!r}, op_type={self.op_type!r})"

    def __str__(self) -> str:
        return f"{self.name} ({self.op_type})"


class Graph(abc.ABC):
    """The parts of a graph that can be split.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.tfv1graph.Graph`.
    """

    @property
    @abc.abstractmethod
    def nodes(self) -> dict[str, Node]:
        """Its nodes by their names."""


class TFv1Graph(Graph):
    """A frozen graph of TensorFlow 1, and the pipeline stage of each of its nodes.

    Constants are copied to each stage that needs them. The first stage receives the inputs and passes them on.

    Args:
        pb_tf_graph: a `tf.Graph`.
        signature_def: names its inputs and outputs. Without one, these are its placeholders and the tensors that no op
            reads.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.tfv1graph.TFv1Graph`.
    """

    def __init__(self, pb_tf_graph: Any, signature_def: Any = None) -> None:
        self.graph = pb_tf_graph
        self.amp = 0.6
        self.device_info: list[int] | None = None
        self.node_list = [_node(operation) for operation in pb_tf_graph.get_operations()]
        self.nxg = node_graph.NodeGraph()
        for node in self.node_list:
            self.nxg.add_node(node.name, node=node)
        for node in self.node_list:
            for name in node.node_def.input:
                self.nxg.add_edge(graph_nodes.node_name(name), node.name)
        self._constants = _constants(self.node_list)
        self._inputs, self._outputs = _interface(pb_tf_graph, signature_def)

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes that compute something from the inputs, by their names: without constants and copies of them."""
        return {node.name: node for node in self.node_list if node.name not in self._constants}

    @property
    def inputs(self) -> list[str]:
        """The names of the first stage's input tensors, in order."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[str]:
        """The names of the last stage's output tensors, in order."""
        return list(self._outputs)

    def set_amp(self, amp: float) -> None:
        """Sets the part of a tile's memory, 0.0 to 1.0, for temporary values of matrix multiplications."""
        self.amp = amp

    def size_of_nodes(self) -> int:
        """Returns how many nodes compute something of the inputs."""
        return len(self.nodes)

    def total_size_of_nodes(self) -> int:
        """Returns the number of nodes."""
        return len(self.nxg)

    def name_mapping4pb_node(self) -> dict[str, Node]:
        """Returns all nodes by their names."""
        return self._gen_name2node_mapping()

    def topology_sort(self, key: Callable[[Node], Any] | None = None) -> Iterator[Node]:
        """Returns the nodes that compute something, each after its inputs; chains stay together.

        Args:
            key: the order in which chains begin, from the last to the first.
        """
        nodes = self.nodes
        name_key = None if key is None else lambda name: key(nodes[name])
        return iter([nodes[name] for name in node_graph.topological_order(self.nxg, nodes, name_key)])

    def auto_assign_ipu_number(self, num_of_ipu: int) -> None:
        """Puts stages on IPUs, one after another, if the caller has not assigned them.

        Args:
            num_of_ipu: how many IPUs there are; with more stages it begins again with the first.

        Raises:
            ValueError: no node has a stage.
        """
        if self.device_info:
            return
        stages = self._stage_list()
        if not stages:
            raise ValueError(
                "The `stage_list` should not be empty: no node has a pipeline_stage. Assign a pipeline_stage "
                "to each node."
            )
        self.device_info = [index % num_of_ipu for index in range(len(stages))]

    def set_pipeline_device_info(self, device_info: Sequence[int]) -> None:
        """Says which IPU each stage is on.

        Raises:
            ValueError: there are more stages, or fewer.
        """
        stages = self._stage_list()
        if stages and len(device_info) != len(stages):
            raise ValueError(
                f"The length of device_info ({len(device_info)}) must be the number of stages ({len(stages)}). Give "
                "one device for each stage."
            )
        self.device_info = list(device_info)

    def clear_device_info(self) -> None:
        """Forgets which IPU each stage is on."""
        self.device_info = None

    def pipeline_stage_funcs(self) -> list[Stage]:
        """Returns a function for each stage, which adds the stage's nodes to the current graph.

        Raises:
            ValueError: a node needs one of a later stage.
            AttributeError: a node has no stage.
        """
        stages = self.stages()
        graph_def = self.graph.as_graph_def()
        parts = stage_functions.split_into_stages(graph_def, stages, self._inputs, self._outputs)
        return [stage_functions.stage_function(graph_def, part) for part in parts]

    def pipelined(self, num_of_ipu: int | None = None) -> tuple[list[Stage], list[int]]:
        """Returns the arguments of `pipelining_ops.pipeline`.

        Args:
            num_of_ipu: how many IPUs there are, if `set_pipeline_device_info` has not assigned the stages.

        Returns:
            The functions of the stages, see `pipeline_stage_funcs`, and the IPU of each.

        Raises:
            ValueError: neither is known, a node needs one of a later stage, or another number of stages was placed.
            AttributeError: a node has no stage.
        """
        if not self.device_info and not num_of_ipu:
            raise ValueError(
                "No pipline device info specified. Please set it, or give num_of_ipu: `device_info` is None, and "
                "must have an IPU for each stage."
            )
        functions = self.pipeline_stage_funcs()
        if not self.device_info and num_of_ipu:
            self.auto_assign_ipu_number(num_of_ipu)
        placed = self.device_info or []
        if len(placed) != len(functions):
            raise ValueError(
                f"The length of the device info given ({len(placed)}) is not the number of stages ({len(functions)})."
                " Give one device for each stage."
            )
        return functions, list(placed)

    def save_pipeline_config(self, file_name: str, device_info: Sequence[int] | None = None) -> None:
        """Writes the stages to a file, which `read_pipeline_config` reads.

        Args:
            file_name: the name of a JSON file.
            device_info: the IPU of each stage; by default the earlier setting, or IPUs in order.

        Raises:
            AttributeError: a node has no stage.
        """
        stages = self.stages()
        for name in self._constants:  # where it is read first
            node = self.nxg.nodes[name]["node"]
            readers = [stages[reader] for reader in self._readers(name) if reader in stages]
            node.add_attr(pipeline_stage=min(readers, default=0))
        devices = list(device_info or self.device_info or range(len(set(stages.values()))))
        mapping = {node.name: vars(node).get("pipeline_stage", 0) for node in self.node_list}
        with open(file_name, "w", encoding="utf-8") as file:
            json.dump({_DEVICES: devices, _STAGES: mapping}, file, indent=2)

    def read_pipeline_config(self, file_name: str) -> None:
        """Reads the stages from a file; stages without an IPU are on consecutive ones.

        Raises:
            ValueError: the file has no `pipeline_mapping`, or another number of stages than of places.
        """
        with open(file_name, encoding="utf-8") as file:
            config = json.load(file)
        if _STAGES not in config:
            raise ValueError(
                f"`{_STAGES}` must be specified in pipeconfig file. {file_name} has {', '.join(config)}. Add it to the "
                "file."
            )
        for name, stage in config[_STAGES].items():
            if name in self.nxg:
                self.nxg.nodes[name]["node"].add_attr(pipeline_stage=stage)
        self.clear_device_info()
        if config.get(_DEVICES):
            self.set_pipeline_device_info(config[_DEVICES])
        else:
            self.auto_assign_ipu_number(len(self._stage_list()))

    def _readers(self, name: str) -> set[str]:
        """Returns the nodes that a constant reaches, through others that pass it on."""
        readers: set[str] = set()
        pending = [name]
        while pending:
            for reader in self.nxg[pending.pop()]:
                if reader in self._constants:
                    pending.append(reader)
                else:
                    readers.add(reader)
        return readers

    def _stage_list(self) -> list[int]:
        fed = {graph_nodes.node_name(name) for name in self._inputs}
        stages = {vars(node).get("pipeline_stage") for name, node in self.nodes.items() if name not in fed}
        return sorted(stage for stage in stages if stage is not None)

    def stages(self) -> dict[str, int]:
        """Returns the stage of each node that was assigned one."""
        fed = {graph_nodes.node_name(name) for name in self._inputs}
        for name, node in self.nodes.items():
            if name not in fed and not hasattr(node, "pipeline_stage"):
                raise AttributeError(
                    f"The node `{name}` of {node.op_type} is not in a pipeline stage: give it one with "
                    "add_attr(pipeline_stage=...)."
                )
        return {name: vars(node)["pipeline_stage"] for name, node in self.nodes.items() if name not in fed}

    def _chosen(self, exclude: Collection[str] | None, include: Collection[str] | None) -> Iterator[Node]:
        for node in self.node_list:
            if (include is None or node.op_type in include) and not (exclude and node.op_type in exclude):
                yield node

    def _gen_name2node_mapping(
        self, exclude_op_type: Collection[str] | None = None, include_op_type: Collection[str] | None = None
    ) -> dict[str, Node]:
        return {node.name: node for node in self._chosen(exclude_op_type, include_op_type)}

    def _gen_output2node_mapping(
        self, exclude_op_type: Collection[str] | None = None, include_op_type: Collection[str] | None = None
    ) -> dict[str, str]:
        chosen = self._chosen(exclude_op_type, include_op_type)
        return {output.name: node.name for node in chosen for output in node.outputs}

    def _gen_input2node_mapping(
        self, exclude_op_type: Collection[str] | None = None, include_op_type: Collection[str] | None = None
    ) -> dict[str, list[str]]:
        node_names: dict[str, list[str]] = {}
        for node in self._chosen(exclude_op_type, include_op_type):
            for input_name in node.inputs:
                node_names.setdefault(input_name.name, []).append(node.name)
        return node_names

    def _subgraph(self, names: Collection[str]) -> tuple[Any, set[str], set[str], set[str]]:
        """Some nodes as a graph."""
        placeholders = {name for name in names if self.nxg.nodes[name]["node"].op_type == "Placeholder"}
        inside = set(names) - placeholders
        part = graph_nodes.subgraph(self.graph.as_graph_def(), inside)
        input_name = (
            input_name for node in part.node for input_name in node.input if not graph_nodes.is_control(input_name)
        )
        reads = {graph_nodes.parse_tensor(name) for name in input_name}
        tensors = {f"{node}:{index}" for node, index in reads if node not in inside}
        return part, tensors, inside, set(names)


def stage_function_factory(
    tfgraph: Any,
    stage_inputs: Sequence[str],
    subgraph_outputs: Sequence[str],
    subgraph_inputs: Sequence[str] | None = None,
    stage_outputs: Sequence[str] | None = None,
) -> Stage:
    """Returns a function that computes tensors of a graph.

    Args:
        tfgraph: a `tf.Graph`.
        stage_inputs: the names of the function's input tensors, in order.
        subgraph_outputs: the names of the tensors that it computes.
        subgraph_inputs: the tensors of `stage_inputs` that the computation reads; all when left out.
        stage_outputs: the names of its output tensors, which may include inputs; by default the tensors that it
            computes.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.tfv1graph.stage_function_factory`.
    """
    graph_def = tfgraph.as_graph_def()
    nodes = graph_nodes.nodes_by_name(graph_def)
    cut = {graph_nodes.node_name(name) for name in (stage_inputs if subgraph_inputs is None else subgraph_inputs)}
    open_nodes = {name: node for name, node in nodes.items() if name not in cut}
    inside = graph_nodes.ancestors(open_nodes, map(graph_nodes.node_name, subgraph_outputs))
    output_names = list(subgraph_outputs if stage_outputs is None else stage_outputs)
    return stage_functions.stage_function(
        graph_def, stage_functions.StagePart(inside, list(stage_inputs), output_names)
    )


def _node(operation: Any) -> Node:
    inputs = [
        Input(tensor.name, _shape(tensor), utils.tf_type_to_str_type(tensor.dtype)) for tensor in operation.inputs
    ]
    outputs = [
        Output(tensor.name, _shape(tensor), utils.tf_type_to_str_type(tensor.dtype)) for tensor in operation.outputs
    ]
    return Node(operation.name, inputs, outputs, operation.type, node_def=operation.node_def)


def _shape(tensor: Any) -> list[int | None]:
    return [] if tensor.shape.rank is None else tensor.shape.as_list()


def _constants(nodes: Sequence[Node]) -> dict[str, None]:
    """Returns the constants, and the nodes that only forward a constant."""
    node_of = {node.name: node for node in nodes}
    constants: dict[str, None] = {}
    for node in nodes:
        last = node
        while last.op_type == "Identity" and last.inputs:
            last = node_of[graph_nodes.node_name(last.inputs[0].name)]
        if last.op_type == "Const":
            constants[node.name] = None
    return constants


def _interface(graph: Any, signature_def: Any) -> tuple[list[str], list[str]]:
    """The names of the input and output tensors: inputs in the graph's order, outputs in the order of their names."""
    if signature_def is None:
        inputs, outputs = utils.analyze_pb_inputs_outputs(graph)
        return [f"{tensor.name}:0" for tensor in inputs], sorted(t.name for output in outputs for t in output.outputs)
    position_of = {operation.name: position for position, operation in enumerate(graph.get_operations())}
    return (
        sorted(
            set(graph_nodes.input_tensors(signature_def)), key=lambda name: position_of[graph_nodes.node_name(name)]
        ),
        sorted(set(graph_nodes.output_tensors(signature_def))),
    )

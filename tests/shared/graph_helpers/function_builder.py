"""FunctionDefs written down by hand."""

import tensorflow as tf
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.core.framework import function_pb2, types_pb2

from tf_ipu_shim.compiler.ir.functions import Functions

FLOAT, RESOURCE = types_pb2.DT_FLOAT, types_pb2.DT_RESOURCE
# Outputs of the ops used here; an input names an argument, or a node whose only output is meant.
OUTPUTS = {
    "Add": "z",
    "AssignAddVariableOp": None,
    "Const": "output",
    "Identity": "output",
    "Mul": "z",
    "Neg": "y",
    "NoOp": None,
    "ReadVariableOp": "value",
    "Shape": "output",
    "StopGradient": "output",
    "Reshape": "output",
    "Tanh": "y",
    "If": "output",
    "PartitionedCall": "output",
    "While": "output",
}


class Function:
    """A FunctionDef in the making.

    Args:
        name: of the function.
        arguments: their names; those in capital letters are variables.
    """

    def __init__(self, name, *arguments):
        self.definition = function_pb2.FunctionDef()
        self.definition.signature.name = name
        self._outputs = {argument: argument for argument in arguments}
        for argument in arguments:
            kind = RESOURCE if argument.isupper() else FLOAT
            self.definition.signature.input_arg.add(name=argument, type=kind)

    def op(self, name, kind, *inputs, shard=None, after=(), host=False, functions=None, **types):
        """Adds an op; `after` are the ops that it waits for."""
        node = self.definition.node_def.add(name=name, op=kind)
        node.input.extend(self._outputs[text] for text in inputs)
        node.input.extend(f"^{other}" for other in after)
        if functions is not None:
            node.attr["T" if kind == "While" else "Tin"].list.type.extend([FLOAT] * (len(inputs) - (kind == "If")))
            node.attr["T" if kind == "While" else "Tout"].list.type.extend([] if kind == "While" else [FLOAT])
            for attribute, function in functions.items():
                node.attr[attribute].func.name = function
        elif kind in ("ReadVariableOp", "AssignAddVariableOp", "Const"):
            node.attr["dtype"].type = types.get("dtype", FLOAT)
        elif kind != "NoOp":
            node.attr["T"].type = types.get("T", FLOAT)
            for attribute in ("out_type", "Tshape"):
                if (kind, attribute) in (("Shape", "out_type"), ("Reshape", "Tshape")):
                    node.attr[attribute].type = types_pb2.DT_INT32
        if kind == "Const":
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(types.get("value", 1.0)))
        if shard is not None:
            mark = xla_data_pb2.OpSharding(type=xla_data_pb2.OpSharding.MAXIMAL, tile_assignment_devices=[shard])
            node.attr["_XlaSharding"].s = mark.SerializeToString()
        if host:
            node.attr["_xla_outside_compilation"].s = b"outside"
        if OUTPUTS[kind] is not None:
            self._outputs[name] = f"{name}:{OUTPUTS[kind]}:0"
        return self

    def returns(self, *names):
        """Ends the function: what it returns, and what has to run."""
        for name in names:
            if name in self._outputs:
                self.definition.signature.output_arg.add(name=f"result_{name}", type=FLOAT)
                self.definition.ret[f"result_{name}"] = self._outputs[name]
            else:
                self.definition.signature.control_output.append(name)
                self.definition.control_ret[name] = name
        return self


def program(*functions):
    """The program that calls the first of some functions."""
    library = {function.definition.signature.name: function.definition for function in functions}
    return Functions(library, functions[0].definition.signature.name)

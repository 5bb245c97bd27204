"""Warns of a bug in the memory model itself, with the versions, program, graph and error to report."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import traceback
import warnings

from google.protobuf import text_format
from tensorflow.compat.v2 import version as versions

import tf_ipu_shim
from tf_ipu_shim import errors, sdk
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.machine.sharing import private_files
from tf_ipu_shim.tf_private.protos import function_pb2, types_pb2

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_DEBUG_DIR"


def warn(request: ProgramRequest, error: Exception, counted: str) -> None:
    """Warns of a bug in the memory model with all that is needed to find it."""
    warnings.warn(report(request, error, counted), errors.AccountingFaultWarning)


def report(request: ProgramRequest, error: Exception, counted: str) -> str:
    """Returns the report of a bug: versions, the program, the error and its graph."""
    arguments = ", ".join(
        f"{types_pb2.DataType.Name(kind)}{list(shape)}" for kind, shape in zip(request.arg_types, request.arg_shapes)
    )
    return "\n".join(
        [
            f"The memory of IPU program {request.name} was counted {counted}, because looking into it failed. The "
            "program runs all the same. This is a bug in tf_ipu_shim: please report it with these lines.",
            f"Versions: tf_ipu_shim {tf_ipu_shim.__version__}, TensorFlow {versions.VERSION}, Python "
            f"{platform.python_version()}, {platform.machine()}; SDK {sdk.current()} is emulated.",
            f"Program: {request.name}, function {request.function}, arguments {arguments or 'none'}.",
            f"Graph: {_graph(request)}",
            "Error:",
            "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip(),
        ]
    )


def _graph(request: ProgramRequest) -> str:
    """Returns where the graph is stored, or how to get it; it may be confidential."""
    directory = os.environ.get(ENVIRONMENT_VARIABLE)
    if not directory:
        return (
            f"run the script again with {ENVIRONMENT_VARIABLE}=DIRECTORY, which writes it there as text, with its "
            "constants and without the values of variables."
        )
    path = pathlib.Path(directory, re.sub(r"[^\w.-]", "_", request.function) + ".pbtxt")
    library = function_pb2.FunctionDefLibrary(function=request.library.values())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        private_files.replace(path, text_format.MessageToString(library).encode())
    except OSError as problem:
        return f"could not be written to {path}: {problem}"
    return f"written to {path}, with its constants and without the values of variables."

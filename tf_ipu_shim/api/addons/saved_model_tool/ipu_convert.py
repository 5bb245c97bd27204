"""`ipu_tensorflow_addons.saved_model_tool.ipu_convert`: loads a SavedModel, converts it for IPUs, saves it."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.api.addons.saved_model_tool.converter.converter_pipeline import ConverterPipeline
from tf_ipu_shim.frontend.conversion import frozen_graph, parameter_checks

_FILE = "conversion_params.json"
_SERVE = (v1.saved_model.tag_constants.SERVING,)
_DEFAULT_SIGNATURE = v1.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class IpuConversionParams:
    """The parameters of a SavedModel conversion.

    Args:
        batch_size: the size of each batch, if the model does not fix it.
        excluded_nodes: regular expressions: nodes in whose names one is found stay on the host.
        num_ipus: the number of IPUs that the model runs on.
        batch_per_step: how many batches a run of the program consumes; 0 for a program without a loop.
        matmul_amp: the part of a tile's memory, 0.0 to 1.0, that matrix multiplications may use while they run.
        conv_amp: the same for convolutions.
        matmul_partial_type: `"float"` or `"half"`: the dtype in which matmuls accumulate.
        conv_partial_type: the same for convolutions.
        ipu_placement: whether nodes are placed on the IPU at all.
        precision_mode: `"FP16"` or `"FP32"`; None leaves dtypes as they are.
        remove_excluded_nodes: whether to remove the excluded nodes, so that their results become inputs of the model.
        merge_subgraphs: whether all nodes on the IPU are compiled as one program.
        gelu_replacement: see `GeluReplacement`.
        precision_conversion_excluded_nodes: regular expressions: nodes that keep their dtype under `precision_mode`.
        manual_sharding: for each IPU a list of regular expressions.
        int64_to_int32_conversion: whether int64 becomes int32.
        pipeline_cfg: how the model becomes a pipeline.
        embedded_runtime_save_config: settings for writing its application for the embedded runtime.

    Source: `ipu_tensorflow_addons.saved_model_tool.ipu_convert.IpuConversionParams`.

    Example:
        >>> IpuConversionParams(precision_mode="FP16").batch_size
        1
    """

    def __init__(
        self,
        batch_size: int = 1,
        excluded_nodes: list[str] | None = None,
        num_ipus: int = 1,
        batch_per_step: int = 0,
        matmul_amp: float = 0.6,
        conv_amp: float = 0.6,
        matmul_partial_type: str = "float",
        conv_partial_type: str = "float",
        ipu_placement: bool = True,
        precision_mode: str | None = None,
        remove_excluded_nodes: bool = False,
        merge_subgraphs: bool = False,
        gelu_replacement: dict[str, Any] | None = None,
        precision_conversion_excluded_nodes: list[str] | None = None,
        manual_sharding: list[list[str]] | None = None,
        int64_to_int32_conversion: bool = False,
        pipeline_cfg: dict[str, Any] | None = None,
        embedded_runtime_save_config: dict[str, Any] | None = None,
    ) -> None:
        self.batch_size = batch_size
        self.excluded_nodes = excluded_nodes
        self.num_ipus = num_ipus
        self.batch_per_step = batch_per_step
        self.matmul_amp = matmul_amp
        self.conv_amp = conv_amp
        self.matmul_partial_type = matmul_partial_type
        self.conv_partial_type = conv_partial_type
        self.ipu_placement = ipu_placement
        self.precision_mode = precision_mode
        self.remove_excluded_nodes = remove_excluded_nodes
        self.merge_subgraphs = merge_subgraphs
        self.gelu_replacement = gelu_replacement
        self.precision_conversion_excluded_nodes = precision_conversion_excluded_nodes
        self.manual_sharding = manual_sharding
        self.int64_to_int32_conversion = int64_to_int32_conversion
        self.pipeline_cfg = pipeline_cfg
        self.embedded_runtime_save_config = embedded_runtime_save_config
        self.pb_md5sum: str | None = None

    def save_to_json_file(self, directory: str) -> None:
        """Writes them to `conversion_params.json`, which `load_from_json_file` reads.

        Args:
            directory: the directory of the file.

        Raises:
            ValueError: it is not a directory, or not writable.
        """
        if not os.path.isdir(directory) or not os.access(directory, os.W_OK):
            raise ValueError(
                f"dir {directory} is not a directory or is not writable. Create the directory, or choose another."
            )
        with open(os.path.join(directory, _FILE), "w", encoding="utf-8") as file:
            json.dump(vars(self), file, indent=2)

    def load_from_json_file(self, config_file: str) -> None:
        """Updates the parameters from a file; parameters that it does not name stay.

        Args:
            config_file: a JSON object with the names of the arguments, or `no_ipu_placement`.

        Raises:
            ValueError: the file is not readable, is not a JSON object, or has a name that is none of these.
        """
        if not os.access(config_file, os.R_OK):
            raise ValueError(f"config_file {config_file} is not readable. Check the path and its permissions.")
        with open(config_file, encoding="utf-8") as file:
            values = json.load(file)
        if not isinstance(values, dict):
            raise ValueError(
                f"config_file {config_file} must hold a JSON object, but it holds a {type(values).__name__}. "
                "Correct the file."
            )
        if "no_ipu_placement" in values:
            values["ipu_placement"] = not values.pop("no_ipu_placement")
        for name, value in values.items():
            if name not in vars(self):
                raise ValueError(
                    f"config_file {config_file} has the key {name!r}; expected one of {', '.join(vars(self))}. "
                    "Remove or correct it."
                )
            setattr(self, name, value)


class IpuGraphConverter:
    """Converts one signature of a SavedModel, or of a session's graph.

    Variables become constants. The result is a SavedModel of the same signature, which this package runs on simulated
    IPUs: a session loads it once a system is configured.

    Args:
        input_saved_model_dir: the SavedModel.
        input_saved_model_tags: selects one of its graphs, a tag or a list of them; the one for serving when left out.
        input_saved_model_signature_key: selects one of its signatures; `"serving_default"` when left out.
        input_meta_graph_def: a `MetaGraphDef` instead of a SavedModel.
        input_sess: a session of its graph, with the values of its variables.
        conversion_params: the target dtype.
        output_saved_model_dir: the directory that `save` writes to if its call names none.

    Raises:
        ValueError: there is not exactly one input; a parameter is wrong.
        TypeError: a parameter is of another type.

    Source: `ipu_tensorflow_addons.saved_model_tool.ipu_convert.IpuGraphConverter`.
    """

    def __init__(
        self,
        input_saved_model_dir: str | None = None,
        input_saved_model_tags: Sequence[str] | None = None,
        input_saved_model_signature_key: str | None = None,
        input_meta_graph_def: Any = None,
        input_sess: Any = None,
        conversion_params: IpuConversionParams | None = None,
        output_saved_model_dir: str | None = None,
    ) -> None:
        if input_meta_graph_def and input_saved_model_dir:
            raise ValueError(
                "Can only specify one of input_meta_graph_def and input_saved_model_dir: both were given. "
                "Leave one out."
            )
        if not input_meta_graph_def and not input_saved_model_dir:
            raise ValueError(
                "Must specify one of input_meta_graph_def and input_saved_model_dir: none was given. Pass one of them."
            )
        if input_meta_graph_def and not input_sess:
            raise ValueError("Must specify input_sess when specify input_meta_graph_def: it is None. Pass a session.")
        self._params = IpuConversionParams() if conversion_params is None else conversion_params
        if not isinstance(self._params, IpuConversionParams):
            raise TypeError(
                f"conversion_params should be an IpuConversionParams, not {conversion_params!r}. Pass an "
                "IpuConversionParams."
            )
        parameter_checks.check_params(self._params)
        self._directory = None if input_saved_model_dir is None else os.fspath(input_saved_model_dir)
        self._meta_graph_def = input_meta_graph_def
        self._session = input_sess
        tags = input_saved_model_tags or _SERVE
        self._tags = [tags] if isinstance(tags, str) else list(tags)
        self._key = input_saved_model_signature_key or _DEFAULT_SIGNATURE
        self._pipeline = ConverterPipeline(self._params, self._key)
        self._output = output_saved_model_dir
        self._frozen: frozen_graph.FrozenGraph | None = None
        self._converted = False

    def convert(self) -> Any:
        """Reads the model and converts it.

        Returns:
            The converted `GraphDef`.

        Raises:
            RuntimeError: it has been converted before.
        """
        if self._converted:
            raise RuntimeError(
                "The model can't be converted multiple times: convert() has already been called. Make "
                "another converter."
            )
        if self._directory:
            self._frozen = frozen_graph.load(self._directory, self._tags, self._key)
            self._params.pb_md5sum = _md5_of(self._directory)
        else:
            self._frozen = frozen_graph.freeze(self._session, self._meta_graph_def, self._key)
        self.call_converter()
        self._converted = True
        return self._frozen.graph_def

    def call_converter(self) -> None:
        """Converts the model that `convert` has read."""
        if self._frozen is None:
            raise RuntimeError("The model has not been read yet. Call convert(), which reads it.")
        graph_def, signature_def = self._pipeline.ApplyConverters(self._frozen.graph_def, self._frozen.signature_def)
        self._frozen = frozen_graph.FrozenGraph(graph_def, signature_def, self._frozen.initializers)

    def save(self, output_saved_model_dir: str | None = None) -> None:
        """Writes the converted model and its conversion parameters.

        Args:
            output_saved_model_dir: a new directory.

        Raises:
            AssertionError: it has not been converted.
            ValueError: no directory is given.
        """
        directory = output_saved_model_dir or self._output
        if not self._converted or self._frozen is None:
            raise AssertionError("The model has not been converted: call convert() first.")
        if not directory:
            raise ValueError(
                "output_saved_model_dir is missing; expected the path of a directory. Pass output_saved_model_dir."
            )
        frozen_graph.save(self._frozen, directory, self._tags, self._key)
        self.save_ipu_config(directory)

    def save_ipu_config(self, output_saved_model_dir: str) -> None:
        """Writes the conversion parameters, see `IpuConversionParams.save_to_json_file`."""
        self._params.save_to_json_file(output_saved_model_dir)


def create_inference_graph(
    batch_size: int = 1,
    input_saved_model_dir: str | None = None,
    input_saved_model_tags: Sequence[str] | None = None,
    input_saved_model_signature_key: str | None = None,
    output_saved_model_dir: str | None = None,
    excluded_nodes: list[str] | None = None,
    num_ipus: int = 1,
    batch_per_step: int = 0,
    matmul_amp: float = 0.6,
    conv_amp: float = 0.6,
    matmul_partial_type: str = "float",
    conv_partial_type: str = "float",
    ipu_placement: bool = True,
    remove_excluded_nodes: bool = False,
    merge_subgraphs: bool = False,
    precision_conversion_excluded_nodes: list[str] | None = None,
    precision_mode: str | None = None,
    manual_sharding: list[list[str]] | None = None,
    int64_to_int32_conversion: bool = False,
    embedded_runtime_save_config: dict[str, Any] | None = None,
    pipeline_cfg: dict[str, Any] | None = None,
    config_file: str | None = None,
) -> Any:
    """Converts a SavedModel, and writes it if a directory is given.

    Args:
        batch_size: see `IpuConversionParams` for this and all others that are not named here.
        input_saved_model_dir: see `IpuGraphConverter` for this, its tags and its signature.
        input_saved_model_tags: selects one of its graphs.
        input_saved_model_signature_key: selects one of its signatures.
        output_saved_model_dir: a new directory.
        excluded_nodes: regular expressions.
        num_ipus: the number of IPUs that the model runs on.
        batch_per_step: how many batches a run consumes.
        matmul_amp: 0.0 to 1.0.
        conv_amp: 0.0 to 1.0.
        matmul_partial_type: `"float"` or `"half"`.
        conv_partial_type: `"float"` or `"half"`.
        ipu_placement: whether nodes are placed on the IPU.
        remove_excluded_nodes: whether the excluded nodes are removed.
        merge_subgraphs: whether all nodes on the IPU become one program.
        precision_conversion_excluded_nodes: regular expressions.
        precision_mode: `"FP16"` or `"FP32"`.
        manual_sharding: for each IPU a list of regular expressions.
        int64_to_int32_conversion: whether int64 becomes int32.
        embedded_runtime_save_config: see `IpuConversionParams`.
        pipeline_cfg: see `IpuConversionParams`.
        config_file: a JSON file that overrides the arguments, see `IpuConversionParams.load_from_json_file`.

    Returns:
        The converted `GraphDef`.

    Raises:
        ValueError: a parameter is wrong.
        TypeError: a parameter is of another type.

    Source: `ipu_tensorflow_addons.saved_model_tool.ipu_convert.create_inference_graph`.
    """
    arguments = locals()
    names = inspect.signature(IpuConversionParams).parameters.keys() & arguments.keys()
    params = IpuConversionParams(**{name: arguments[name] for name in names})
    if config_file:
        params.load_from_json_file(config_file)
    converter = IpuGraphConverter(
        input_saved_model_dir=input_saved_model_dir,
        input_saved_model_tags=input_saved_model_tags,
        input_saved_model_signature_key=input_saved_model_signature_key,
        conversion_params=params,
        output_saved_model_dir=output_saved_model_dir,
    )
    graph_def = converter.convert()
    if output_saved_model_dir:
        converter.save(output_saved_model_dir)
    return graph_def


def _md5_of(directory: str) -> str | None:
    path = os.path.join(directory, "saved_model.pb")
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return hashlib.md5(file.read(), usedforsecurity=False).hexdigest()

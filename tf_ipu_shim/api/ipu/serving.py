"""`tensorflow.python.ipu.serving`: exports models for TensorFlow Serving.

The SavedModel consists of stock ops: TensorFlow Serving and TensorFlow run it on the CPU without this package. In a
process that imports `ipu`, the loaded prediction runs on the IPUs of `/device:IPU:0`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.frontend.serving import exporting
from tf_ipu_shim.frontend.serving.argument_order import accept_either_order, accept_pipeline_depth


@accept_either_order(before=5)
def export_single_step(
    predict_step: Callable[..., Any],
    export_dir: str,
    iterations: int,
    predict_step_signature: Sequence[Any] | None = None,
    input_dataset: Any = None,
    output_names: str | list[str] | None = None,
    preprocessing_step: Callable[..., Any] | None = None,
    preprocessing_step_signature: Sequence[Any] | None = None,
    postprocessing_step: Callable[..., Any] | None = None,
    postprocessing_step_signature: Sequence[Any] | None = None,
    purge_export_dir: bool = False,
    variable_initializer: Callable[[Any], Any] | None = None,
    checkpoint_restore_dir: str | None = None,
    input_signature: Sequence[Any] | None = None,
) -> Callable[..., Any]:
    """Writes a model that is one function.

    A request has the signature of the first step. It comes from its argument, a dataset, or the `input_signature` of
    its `tf.function`.

    Args:
        predict_step: the model; runs on an IPU.
        export_dir: the directory of the SavedModel; it must be empty or not exist.
        iterations: the iterations of the loop in Graphcore's executable, which trades latency for throughput; stored in
            the file. Here a request is computed when it arrives.
        predict_step_signature: a `tf.TensorSpec` for each argument of `predict_step`.
        input_dataset: a `tf.data.Dataset` whose elements are requests.
        output_names: names of the outputs; by default `output_0`, `output_1` and so on.
        preprocessing_step: runs before it on the CPU; a request then has its arguments.
        preprocessing_step_signature: a `tf.TensorSpec` for each of its arguments.
        postprocessing_step: runs after it on the CPU.
        postprocessing_step_signature: a `tf.TensorSpec` for each of its arguments.
        purge_export_dir: whether to empty the directory first.
        variable_initializer: in TensorFlow 1, a function of a session that initialises or restores the graph's
            variables. The SavedModel has constants in their place.
        checkpoint_restore_dir: in TensorFlow 1, a directory with a checkpoint of the variables of the steps on the CPU.
        input_signature: the name of `predict_step_signature` in SDKs up to 2.6.

    Returns:
        A function that runs the exported model: a `tf.function`; in TensorFlow 1 a function that adds it to the graph.
            It
        returns a list, or with `output_names` a dictionary.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the directory is not empty, a signature is missing or given twice, or the steps do not match.
        UnsupportedError: the model has an op that TensorFlow Serving does not have.

    Source: `tensorflow.python.ipu.serving.export_single_step`.

    Example:
        >>> signature = [tf.TensorSpec([2], tf.float32, name="x")]
        >>> run = export_single_step(lambda x: 2.0 * x, "doubled", 16, signature, output_names="y")
        >>> run(tf.constant([1.0, 2.0]))["y"].numpy().tolist()
        [2.0, 4.0]
        >>> served = tf.saved_model.load("doubled").signatures["serving_default"]
        >>> served(x=tf.constant([3.0, 4.0]))["y"].numpy().tolist()
        [6.0, 8.0]
    """
    return exporting.export_single_step(**exporting.resolve_aliases(locals()))


@accept_pipeline_depth
@accept_either_order(before=10)
def export_pipeline(
    computational_stages: Sequence[Any],
    export_dir: str,
    iterations: int,
    inputs: Sequence[Any] | None = None,
    device_mapping: Sequence[Any] | None = None,
    pipeline_schedule: Any = None,
    poplar_options: Sequence[Any] | None = None,
    name: str | None = None,
    predict_step_signature: Sequence[Any] | None = None,
    input_dataset: Any = None,
    output_names: str | list[str] | None = None,
    preprocessing_step: Callable[..., Any] | None = None,
    preprocessing_step_signature: Sequence[Any] | None = None,
    postprocessing_step: Callable[..., Any] | None = None,
    postprocessing_step_signature: Sequence[Any] | None = None,
    purge_export_dir: bool = False,
    variable_initializer: Callable[[Any], Any] | None = None,
    checkpoint_restore_dir: str | None = None,
    input_signature: Sequence[Any] | None = None,
    pipeline_depth: int | None = None,
) -> Callable[..., Any]:
    """Writes a model that is a chain of functions, each on its IPU.

    Args:
        computational_stages: as for `pipelining_ops.pipeline`.
        export_dir: the directory of the SavedModel; it must be empty or not exist.
        iterations: mini-batches of an execution; a multiple of the number that the schedule needs. It is only saved in
            the file: here a request passes through the stages when it arrives.
        inputs: values that the first stage receives before a request's inputs: the same for all requests.
        device_mapping: the IPU of each stage; stage i on IPU i when left out.
        pipeline_schedule: a `PipelineSchedule`; checked, no effect.
        poplar_options: a `PipelineStageOptions` for each stage; checked, no effect.
        name: the name of the pipeline; ops of the model have it in their names.
        predict_step_signature: a `tf.TensorSpec` for each argument of the first stage, or for each value in a request.
        input_dataset: a `tf.data.Dataset` whose elements are requests.
        output_names: names of the outputs; by default `output_0`, `output_1` and so on.
        preprocessing_step: runs before it on the CPU; a request then has its arguments.
        preprocessing_step_signature: a `tf.TensorSpec` for each of its arguments.
        postprocessing_step: runs after it on the CPU.
        postprocessing_step_signature: a `tf.TensorSpec` for each of its arguments.
        purge_export_dir: whether to empty the directory first.
        variable_initializer: in TensorFlow 1, a function of a session that initialises or restores the graph's
            variables.
        checkpoint_restore_dir: in TensorFlow 1, a directory with a checkpoint of the variables of the steps on the CPU.
        input_signature: the name of `predict_step_signature` in SDKs up to 2.6.
        pipeline_depth: in SDK 2.5, mini-batches of one run of the pipeline; an execution then has `iterations` runs.
            There it precedes `iterations`, as it does here if `inputs` would be an integer.

    Returns:
        A function that runs the exported model, as `export_single_step` returns it.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the directory is not empty, the stages or steps do not match, or the number of signatures is not
            one. UnsupportedError: the model has an op that TensorFlow Serving does not have.

    Source: `tensorflow.python.ipu.serving.export_pipeline`.

    Example:
        >>> signature = [tf.TensorSpec([2], tf.float32, name="x")]
        >>> stages = [lambda x: 2.0 * x, lambda y: y + 3.0]
        >>> run = export_pipeline(stages, "piped", 16, predict_step_signature=signature)
        >>> run(tf.constant([1.0, 2.0]))[0].numpy().tolist()  # on a device of two IPUs
        [5.0, 7.0]
    """
    return exporting.export_pipeline(**exporting.resolve_aliases(locals()))


def export_keras(
    model: Any,
    export_dir: str,
    batch_size: int | None = None,
    output_names: str | list[str] | None = None,
    preprocessing_step: Callable[..., Any] | None = None,
    preprocessing_step_signature: Sequence[Any] | None = None,
    postprocessing_step: Callable[..., Any] | None = None,
    postprocessing_step_signature: Sequence[Any] | None = None,
    purge_export_dir: bool = False,
) -> Callable[..., Any]:
    """Writes a Keras model, pipelined or not: the same as the model's `export_for_ipu_serving`.

    Args:
        model: made in the scope of an `IPUStrategy`, and built.
        export_dir: the directory of the SavedModel; it must be empty or not exist.
        batch_size: samples of a request; left out if the model's inputs have it.
        output_names: names of the outputs; by default `output_0`, `output_1` and so on.
        preprocessing_step: runs before it on the CPU; a request then has its arguments.
        preprocessing_step_signature: a `tf.TensorSpec` for each of its arguments.
        postprocessing_step: runs after it on the CPU.
        postprocessing_step_signature: a `tf.TensorSpec` for each of its arguments.
        purge_export_dir: whether to empty the directory first.

    Returns:
        A `tf.function` that runs the exported model. It returns a list, or with `output_names` a dictionary.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the model is not from an IPU strategy's scope, an input dimension is unknown, the directory is not
            empty, or the steps do not match.
        RuntimeError: the model's inputs are unknown: it is not built.

    Source: `tensorflow.python.ipu.serving.export_keras`.

    Example:
        >>> with strategy.scope():
        ...     inputs = tf.keras.Input((2,), batch_size=1, name="x")
        ...     model = tf.keras.Model(inputs, tf.keras.layers.Lambda(tf.abs)(inputs))
        ...     model.compile(steps_per_execution=16)
        >>> run = export_keras(model, "absolute", output_names="y")
        >>> run(tf.constant([[-1.0, 2.0]]))["y"].numpy().tolist()
        [[1.0, 2.0]]
    """
    if not hasattr(model, "export_for_ipu_serving"):
        raise ValueError(
            "Provided model was not created inside an IPU strategy, so it has no export_for_ipu_serving. Create it "
            "inside `with ipu.ipu_strategy.IPUStrategy().scope():`."
        )
    return model.export_for_ipu_serving(
        export_dir,
        batch_size,
        output_names,
        preprocessing_step,
        preprocessing_step_signature,
        postprocessing_step,
        postprocessing_step_signature,
        purge_export_dir,
    )

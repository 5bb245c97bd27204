"""Errors that Graphcore documents of pipelines and of the optimizers that accumulate gradients."""

import documented_errors
import pytest
import tensorflow as tf
from compiling import compile_, placeholder
from feeding import numbers
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import (
    OptimizerFunctionOutput,
    PipelineSchedule,
    PipelineStageOptions,
)
from tf_ipu_shim.ipu.optimizers import ipu_optimizer

from tf_ipu_shim import ipu, keras2

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
keras = keras2.public_module()
CAPTURING = ipu.eager.backprop.GradientCaptureContext
OPTIONS = PipelineStageOptions()


def sgd():
    return v1.train.GradientDescentOptimizer(0.1)


def keras_sgd():
    return keras.optimizers.legacy.SGD(0.1)


def output(opt=sgd, **options):
    return OptimizerFunctionOutput(opt(), tf.constant(1.0), **options)


def variables():
    return [tf.Variable(1.0)]


def setting(name, value, opt=sgd, **options):
    """Sets an attribute; what is made for it is given as functions."""

    def call():
        made = output(opt, **{key: make() for key, make in options.items()})
        setattr(made, name, value() if callable(value) else value)

    return call


OF = "OptimizerFunctionOutput"
OUTPUTS = [
    (OF, TypeError, f"{OF}.apply_gradients_args must be a tuple", setting("apply_gradients_args", [1])),
    (OF, TypeError, f"{OF}.apply_gradients_kwargs must be a dict", setting("apply_gradients_kwargs", 1)),
    (OF, TypeError, f"{OF}.compute_gradients_args must be a tuple", setting("compute_gradients_args", [1])),
    (OF, TypeError, f"{OF}.compute_gradients_kwargs must be a dict", setting("compute_gradients_kwargs", 1)),
    (
        OF,
        ValueError,
        f"{OF}.compute_gradients_args may not be used with OptimizerV2",
        setting("compute_gradients_args", (1,), keras_sgd),
    ),
    (
        OF,
        ValueError,
        f"{OF}.compute_gradients_kwargs may not be used with OptimizerV2",
        setting("compute_gradients_kwargs", {"name": 1}, keras_sgd),
    ),
    (
        OF,
        TypeError,
        f"{OF}.captured_gradient_outfeed must be an instance of IPUOutfeedQueue",
        setting("captured_gradient_outfeed", 1),
    ),
    (
        OF,
        ValueError,
        f"{OF}.captured_gradient_outfeed may not be used when neither",
        setting("captured_gradient_outfeed", IPUOutfeedQueue),
    ),
    (
        OF,
        TypeError,
        f"{OF}.gradient_capture_context must be an ipu.eager.backprop.",
        setting("gradient_capture_context", 1),
    ),
    (
        OF,
        ValueError,
        f"{OF}.gradient_capture_context may not be used when {OF}.tape",
        setting("gradient_capture_context", CAPTURING, keras_sgd, tape=tf.GradientTape),
    ),
    (OF, TypeError, f"{OF}.loss must be a TensorFlow Tensor object", setting("loss", 1.0)),
    (OF, TypeError, f"{OF}.opt must be a TensorFlow Optimizer or", setting("opt", 1.0)),
    (OF, TypeError, f"{OF}.tape must be a GradientTape", setting("tape", 1.0, keras_sgd)),
    (OF, ValueError, f"{OF}.tape may only be used with OptimizerV2", setting("tape", tf.GradientTape)),
    (
        OF,
        ValueError,
        f"{OF}.tape may not be used when {OF}.variables",
        setting("tape", tf.GradientTape, keras_sgd, variables=variables),
    ),
    (
        OF,
        ValueError,
        f"{OF}.tape may not be used when {OF}.gradient_capture_context",
        setting("tape", tf.GradientTape, keras_sgd, gradient_capture_context=CAPTURING),
    ),
    (OF, TypeError, f"{OF}.variables must be a tuple or list", setting("variables", 1, keras_sgd)),
    (OF, ValueError, f"{OF}.variables may only be used with OptimizerV2", setting("variables", variables)),
    (
        OF,
        ValueError,
        f"{OF}.variables must be empty when {OF}.tape is",
        setting("variables", variables, keras_sgd, tape=tf.GradientTape),
    ),
]
STAGE_OPTIONS = [
    (
        "PipelineStageOptions",
        TypeError,
        f"PipelineStageOptions.{name} must be dictionary",
        lambda name=name: PipelineStageOptions(**{name: 1}),
    )
    for name in ("convolution_options", "matmul_options", "slice_options")
]


@documented_errors.cases([*OUTPUTS, *STAGE_OPTIONS])
def test_what_describes_a_pipeline(error, words, call):
    documented_errors.check(error, words, call)


def weighted(x):
    return x * v1.get_variable("weight", [2], use_resource=True)


def minimised(loss):
    return OptimizerFunctionOutput(sgd(), loss)


def last_mode():
    return IPUOutfeedQueue(outfeed_mode=IPUOutfeedMode.LAST)


def pipeline(stages=(tf.abs, tf.negative), count=4, infeed=True, outfeed=IPUOutfeedQueue, **options):
    """A pipeline with feeds."""

    def model():
        pipelining_ops.pipeline(
            list(stages) if isinstance(stages, tuple) else stages,
            count,
            infeed_queue=IPUInfeedQueue(numbers(2, (2,))) if infeed is True else infeed,
            outfeed_queue=outfeed() if callable(outfeed) else outfeed,
            **options,
        )

    return lambda: compile_(model)


def training(stages=(weighted, tf.reduce_sum), optimizer_function=minimised, **options):
    return pipeline(stages, optimizer_function=optimizer_function, **options)


def capturing():
    outside = tf.random.uniform([2])
    return pipeline((lambda x: x * outside, tf.abs))()


def two_outputs(x):
    return tf.reduce_sum(x), x


FORWARD = "forward_propagation_stages_poplar_options"
BACKWARD = "backward_propagation_stages_poplar_options"
PIPELINES = [
    ("count", ValueError, "gradient_accumulation_count must be specified.", pipeline(count=None)),
    ("count", ValueError, "gradient_accumulation_count must be >= 0", pipeline(count=-1)),
    ("count", ValueError, "gradient_accumulation_count must be < max int32", pipeline(count=2**31)),
    (
        "batches in parts",
        ValueError,
        "batch_serialization_iterations != 1 is only supported when",
        training(batch_serialization_iterations=2, reduction_method="mean"),
    ),
    (
        "updates",
        NotImplementedError,
        "Continuous weight updates are currently not supported.",
        pipeline(continuous_weight_updates=True),
    ),
    (
        "schedule",
        TypeError,
        "The given pipeline_schedule is not a member",
        pipeline(pipeline_schedule="Grouped"),
    ),
    (
        "batches in parts",
        NotImplementedError,
        "Batch serialization is only supported with the",
        pipeline(batch_serialization_iterations=2, pipeline_schedule=PipelineSchedule.Grouped),
    ),
    (
        "recomputation",
        TypeError,
        "The given recomputation_mode is not a member",
        pipeline(recomputation_mode=1),
    ),
    ("stages", TypeError, "computational_stages argument needs to be a list", pipeline(tf.abs)),
    ("stages", ValueError, "Pipeline requires at least two computational stages", pipeline((tf.abs,))),
    ("infeed", TypeError, "infeed_queue is not an instance of ipu_infeed_queue.IPUInfeedQueue", pipeline(infeed=1)),
    (
        "outfeed",
        TypeError,
        "outfeed_queue is not an instance of ipu_outfeed_queue.IPUOutfeedQueue",
        pipeline(outfeed=1),
    ),
    ("mapping", TypeError, "device_mapping argument needs to be a list", pipeline(device_mapping=1)),
    ("mapping", ValueError, "Each stage must be mapped to an", pipeline(device_mapping=[0])),
    (
        "mapping",
        NotImplementedError,
        "The pipelining schedule 'Interleaved' does not currently",
        training(device_mapping=[0, 0], pipeline_schedule=PipelineSchedule.Interleaved),
    ),
    (
        "mapping",
        NotImplementedError,
        "When using batch serialization, all the pipeline",
        pipeline(
            device_mapping=[0, 1],
            batch_serialization_iterations=2,
            pipeline_schedule=PipelineSchedule.Sequential,
        ),
    ),
    ("options", TypeError, f"{FORWARD} must be a list or a", pipeline(**{FORWARD: 1})),
    ("options", ValueError, f"{BACKWARD} must be a list or a", pipeline(**{BACKWARD: [OPTIONS]})),
    ("options", TypeError, f"Expected all elements of {FORWARD} to be", pipeline(**{FORWARD: [OPTIONS, 1]})),
    (
        "options",
        TypeError,
        "weight_update_poplar_options to be of type PipelineStageOptions, but",
        training(weight_update_poplar_options=1),
    ),
    (
        "outfeed",
        ValueError,
        "An optimizer_function must be provided when outfeed_mask",
        pipeline(outfeed_mask=[True]),
    ),
    ("outfeed", ValueError, "An optimizer_function must be provided when outfeed_loss", pipeline(outfeed_loss=True)),
    (
        "outfeed",
        ValueError,
        "Only one of `outfeed_loss` and `outfeed_mask` can",
        training(outfeed_loss=True, outfeed_mask=[True]),
    ),
    (
        "outfeed",
        ValueError,
        "An outfeed_queue must be provided when accumulate_outfeed",
        pipeline(outfeed=None, accumulate_outfeed=True),
    ),
    (
        "outfeed",
        ValueError,
        "To accumulate the outfeed, it must be",
        pipeline(outfeed=last_mode, accumulate_outfeed=True),
    ),
    (
        "outfeed",
        ValueError,
        "An outfeed_queue must be provided when outfeed_loss",
        training(outfeed=None, outfeed_loss=True),
    ),
    (
        "outfeed",
        ValueError,
        "The last computational stage has 1 outputs,",
        training(outfeed_mask=[True, False]),
    ),
    (
        "outfeed",
        ValueError,
        "The last computational stage has tensor outputs: … no outfeed_queue",
        training((weighted, two_outputs), lambda loss, _: minimised(loss), outfeed=None, outfeed_mask=[True, False]),
    ),
    ("outfeed", ValueError, "The last computational stage has tensor outputs:", training(outfeed=None)),
    ("outfeed", ValueError, "The last computational stage has tensor outputs:", pipeline(outfeed=None)),
    (
        "optimizer",
        RuntimeError,
        "No variables to optimize.",
        training(optimizer_function=lambda loss: OptimizerFunctionOutput(keras_sgd(), loss)),
    ),
    ("captures", ValueError, "Trying to capture the tensor … which", capturing),
    (
        "sharding",
        ValueError,
        "To use replicated_optimizer_state_sharding, optimizer state must be",
        training(replicated_optimizer_state_sharding=True, offload_weight_update_variables=False),
    ),
]


@documented_errors.cases(PIPELINES)
def test_a_pipeline(ipus, graph, error, words, call):
    ipus(2)
    documented_errors.check(error, words, call)


def accumulating(name, number):
    return getattr(ipu.optimizers, name)(sgd(), number)


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize(
    "name",
    [
        "CrossReplicaGradientAccumulationOptimizer",
        "CrossReplicaGradientAccumulationOptimizerV2",
        "GradientAccumulationOptimizer",
        "GradientAccumulationOptimizerV2",
    ],
)
def test_accumulating_no_mini_batches(name, number):
    words = "num_mini_batches must be a positive number"
    documented_errors.check(ValueError, words, lambda: accumulating(name, number))


def test_accumulation_of_an_unknown_kind():
    words = "Cannot parse middle as one of GradientAccumulationReductionMethod."
    parse = ipu.gradient_accumulation.GradientAccumulationReductionMethod.parse
    documented_errors.check(ValueError, words, lambda: parse("middle"))


def test_state_that_is_shared_and_stays(graph):
    def model(x):
        optimizer = ipu.optimizers.GradientAccumulationOptimizerV2(
            sgd(), 2, offload_weight_update_variables=False, replicated_optimizer_state_sharding=True
        )
        return optimizer.minimize(tf.reduce_sum(weighted(x)))

    words = "To use replicated_optimizer_state_sharding, optimizer state must be"
    documented_errors.check(ValueError, words, lambda: compile_(model, placeholder(2)))


@pytest.mark.parametrize(("release", "where"), [("3.4", "keras.ipu.optimizers"), ("2.4", "ipu.keras.optimizers")])
def test_a_wrapper_around_an_optimizer_of_keras(monkeypatch, release, where):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    words = f"Should use optimizer in {where}"
    documented_errors.check(ValueError, words, lambda: ipu_optimizer.IpuOptimizer(keras_sgd(), "wrapper"))


def test_captured_gradients_are_read_only():
    words = "captured_gradients is read only"
    documented_errors.check(ValueError, words, lambda: setattr(CAPTURING(), "captured_gradients", {}))

"""Arguments that are accepted and change nothing are in the memory report, and once a process in the log."""

import tempfile

import numpy as np
import pytest
import tensorflow as tf
from ipu_tensorflow_addons.saved_model_tool.converter import auto_pipeline, manual_pipeline
from keras_models import keras
from option_runs import COMPILE_ONLY, keras_recurrent, norm, pipeline, recurrent
from tf_ipu_shim.ipu.ops.experimental import popfloat_cast_to_gfloat
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineStageOptions
from tf_ipu_shim.keras.optimizers import ALSOptimizer
from tf_ipu_shim.poplar.ops import gen_pop_datastream_ops, gen_popnn_ops, gen_popops_ops

from tf_ipu_shim import ipu, memory_report
from tf_ipu_shim.configuration import arguments
from tf_ipu_shim.frontend.ops.user_ops import poplar_ops
from tf_ipu_shim.machine.environment.effects import RECORDED
from tf_ipu_shim.poplar_sdk import bridge

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"
POPLAR = {"partialsType": "half"}


def stage_options():
    return PipelineStageOptions(matmul_options={"availableMemoryProportion": "0.1"})


def keras_model():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse", steps_per_execution=2)
    return model


def fitted(**options):
    with ipu.ipu_strategy.IPUStrategy().scope():
        keras_model().fit(np.ones((4, 2), "f"), np.ones((4, 1), "f"), batch_size=2, verbose=0, **options)


def accumulated(**options):
    with ipu.ipu_strategy.IPUStrategy().scope():
        keras_model().set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=2, **options)


def user_op(**options):
    ipu.custom_ops.register_emulation("libsame.so", lambda x: x)
    outs = {"output_types": [tf.float32], "output_shapes": [[2]]}
    ipu.custom_ops.precompiled_user_op([tf.ones([2])], "libsame.so", outs=outs, **options)
    ipu.custom_ops.register_emulation("libsame.so", None)


def user_op_metadata(is_elementwise=False, **options):
    declared = bridge.Metadata(5, (), (), is_elementwise, is_stateless=True, is_hashable=True, **options)
    poplar_ops.note_metadata(declared)


def embedding_by_id(**options):
    table, ops = tf.Variable(tf.ones([4, 2])), gen_pop_datastream_ops
    ordinal = options.pop("device_ordinal", 0)
    ops.ipu_host_embedding_register(table, "recorded", ordinal)
    ops.ipu_device_embedding_lookup([1], "recorded", [4, 2], tf.float32, **options)


def stages_found(ipu_model=True, profiling_root_dir="profiling", profiling_enable=False, fine_tune_iter=5, **options):
    numbers = {"matmul_amp": 0.6, "matmul_partial_type": "float", "conv_amp": 0.6, "conv_partial_type": "float"}
    common = {
        **numbers,
        **options,
        "batch_size": 1,
        "ipu_model": ipu_model,
        "profiling_root_dir": profiling_root_dir,
        "solution_dir": "solution",
    }
    auto_pipeline.AutoPipelineImpl(
        fine_tune_iter=fine_tune_iter, max_ipu_quantity=4, min_ipu_quantity=2, priority="cycle", **common
    )
    manual_pipeline.ManualPipelineImpl(
        num_ipus=2,
        manual_pipeline_config=[["a"], ["b"]],
        device_info=[0, 1],
        profiling_enable=profiling_enable,
        **common,
    )


def served(**options):
    signature = [tf.TensorSpec([2], tf.float32)]
    with tempfile.TemporaryDirectory() as directory:
        if not options:
            ipu.serving.export_single_step(tf.abs, directory, 1, signature)
        else:
            ipu.serving.export_pipeline(
                [tf.abs, tf.abs], directory, device_mapping=[0, 0], predict_step_signature=signature, **options
            )


def old_pipeline(**options):
    with ipu.ipu_strategy.IPUStrategy().scope():
        model = ipu.keras.PipelineSequential(
            [[keras.layers.Dense(2, input_shape=(2,))], [keras.layers.Dense(1)]],
            gradient_accumulation_count=4,
            device_mapping=[0, 0],
            pipeline_schedule=ipu.ops.pipelining_ops.PipelineSchedule.Sequential,
        )
        model.compile("sgd", "mse")
        data = tf.data.Dataset.from_tensors((np.ones((4, 2), "f"), np.ones((4, 1), "f"))).repeat(4)
        model.fit(data, steps_per_epoch=1, verbose=0, **options)


def estimator_spec(**options):
    pytest.importorskip("tensorflow_estimator")  # TensorFlow has it up to 2.15
    from tensorflow.python.ipu.ipu_pipeline_estimator import IPUPipelineEstimatorSpec

    return IPUPipelineEstimatorSpec("infer", [tf.nn.relu], gradient_accumulation_count=4, **options)


def embedding_layer(**options):
    from ipu_tensorflow_addons.keras.layers import Embedding

    return Embedding(4, 2, **options)


def equal_layer(**options):
    from ipu_tensorflow_addons.keras.layers import AssumeEqualAcrossReplicas

    return AssumeEqualAcrossReplicas(**options)


def ipu_optimizer(**options):
    from ipu_tensorflow_addons.keras.optimizers import SGDIpuOptimizer

    return SGDIpuOptimizer(**options)


def infeed(**options):
    with tf.Graph().as_default():
        ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(3), **options)


def iterator(**options):
    return ipu.ipu_infeed_queue.IPUIterator(tf.data.Dataset.from_tensors(3), **options)


def raw_feeds(device_ordinal=0, asynchronous=False, warn_when_unconnected=True, **options):
    ops, kinds, shapes = gen_pop_datastream_ops, [tf.int64], [[]]
    with tf.Graph().as_default():
        data = v1.data.Dataset.range(3)._variant_tensor
        ops.ipu_create_dataset_iterator(data, "raw", kinds, shapes, device_ordinal=device_ordinal, **options)
        (element,) = ops.pop_datastream_infeed_dequeue("raw", kinds, shapes, **options)
        ops.pop_datastream_outfeed_enqueue([element], shapes, "raw out", **options)
        ops.pop_datastream_outfeed_dequeue(
            kinds, shapes, "raw out", warn_when_unconnected=warn_when_unconnected, **options
        )
        ops.ipu_delete_outfeed("raw out", asynchronous=asynchronous)
        ops.ipu_delete_dataset_iterator("raw", device_ordinal=device_ordinal, asynchronous=asynchronous)


def counted(**options):
    def body(x):
        return x + tf.cast(ipu.internal_ops.get_current_iteration_counter(**options), tf.float32)

    with tf.Graph().as_default():
        ipu.loops.repeat(2, body, [tf.constant(1.0)])


def host_embedding(partition_strategy="TOKEN", optimizer_name=None, count=1):
    with tf.Graph().as_default():
        spec = ipu.embedding_ops.HostEmbeddingOptimizerSpec(0.1, optimizer_name)
        table = ipu.embedding_ops.create_host_embedding("table", [4, 2], tf.float32, partition_strategy, spec)
        with ipu.scopes.ipu_scope(IPU):
            ipu.ipu_compiler.compile(lambda: table.lookup(tf.constant([1]), count))


def embedding_lookup(**options):
    return ipu.embedding_ops.embedding_lookup(tf.ones([4, 2]), [1, 2], **options)


def gfloat_cast(**options):
    params = popfloat_cast_to_gfloat.calc_gfloat_params(man=3, exp=4, bias=7)
    packed = popfloat_cast_to_gfloat.cast_native_to_gfloat([3.3], params, out_type=tf.int8, **options)
    both = {name: options[name] for name in ("gfloat_format", "calc_type") if name in options}
    popfloat_cast_to_gfloat.cast_gfloat_to_native(packed, params, **both)


def raw_lstm(is_training=True, **options):
    operands = (tf.ones([3, 1, 2]), tf.zeros([1, 2]), tf.zeros([1, 2]), tf.ones([4, 8]), tf.zeros([4, 2]))
    gen_popnn_ops.popnn_dynamic_lstm_layer(
        *operands, tf.constant([2]), "tanh", "sigmoid", num_channels=2, is_training=is_training, **options
    )


def raw_slice(**options):
    return gen_popops_ops.ipu_multi_slice(tf.ones([4, 2]), tf.constant([1]), **options)


def accumulating(**options):
    descent = v1.train.GradientDescentOptimizer(0.1)
    return ipu.optimizers.GradientAccumulationOptimizer(descent, 2, **options)


def loss_scaled(**options):
    weight = tf.Variable(1.0)
    optimizer = ALSOptimizer(keras.optimizers.SGD(0.1))
    optimizer.apply_gradients([(tf.constant(1.0), weight)], **options)


def configured(**options):
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system(**options)


def processes(cluster_resolver=None):
    from tf_ipu_shim.ipu.distributed.popdist_strategy import PopDistExtendedV1, PopDistStrategy

    return PopDistExtendedV1(PopDistStrategy(), cluster_resolver, IPU, True)


def horovods_optimizer(**options):
    import horovod.tensorflow as hvd  # found only where `ipu` is used

    hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1), **options)


def horovod(**options):
    from tf_ipu_shim.ipu.distributed.basics import HorovodBasics

    return HorovodBasics(**options)


def benchmark(**options):
    return ipu.dataset_benchmark.dataset_benchmark(tf.data.Dataset.range(3), 1, 1, print_stats=False, **options)


def exported(**options):
    with tempfile.TemporaryDirectory() as folder:
        ipu.utils.export_dataset_to_file(tf.data.Dataset.range(3), f"{folder}/file", 1, **options)


def exported_variable(**options):
    with tempfile.TemporaryDirectory() as folder:
        export = ipu.dataset_extractor.export_variables
        export([tf.Variable(1.0)], ["name"], f"{folder}/file", print_stats=False, **options)


# For each call how it is made, and values for all arguments that are recorded.
GIVEN = {
    "pipeline": (
        lambda **options: pipeline(2, 4, **options),
        {
            "weight_update_poplar_options": stage_options(),
        },
    ),
    "group_norm": (norm, {"training": False, "reduction_axes": [0]}),
    "PopnnLSTM": (recurrent, {"training": False}),
    "keras PopnnLSTM": (keras_recurrent, {}),
    "keras Embedding": (embedding_layer, {"input_length": 3}),
    "AssumeEqualAcrossReplicas": (equal_layer, {"inplace": True}),
    "Model.fit": (fitted, {"max_queue_size": 3, "workers": 2, "use_multiprocessing": True}),
    "Model.set_gradient_accumulation_options": (
        accumulated,
        {
            "use_v2_gradient_accumulation_optimizer": True,
            "verify_usage": False,
            "name": "accumulation",
        },
    ),
    "serving": (
        served,
        {
            "iterations": 32,
            "pipeline_schedule": ipu.ops.pipelining_ops.PipelineSchedule.Grouped,
            "poplar_options": [stage_options()] * 2,
        },
    ),
    "PipelineModel.fit": (old_pipeline, {"accumulate_outfeed": True, "accumulate_outfeed_dtype": tf.float16}),
    "IPUPipelineEstimatorSpec": (estimator_spec, {"loss_accumulator_dtype": tf.float16}),
    "IPUInfeedQueue": (infeed, {"optimise_latency": True, "replication_factor": 1}),
    "IPUOutfeedQueue": (
        ipu.ipu_outfeed_queue.IPUOutfeedQueue,
        {"optimise_latency": True, "buffer_depth": 2, "io_batch_size": 2},
    ),
    "IPUIterator": (iterator, {"optimise_latency": True}),
    "gen_pop_datastream_ops": (
        raw_feeds,
        {
            "prefetch_depth": 2,
            "optimise_latency": True,
            "device_ordinal": 1,
            "asynchronous": True,
            "warn_when_unconnected": False,
        },
    ),
    "get_current_iteration_counter": (counted, {"lower_bound": 0, "upper_bound": 2}),
    "fifo": (lambda **options: ipu.internal_ops.fifo(tf.ones([2]), 0, **options), {"offload": True}),
    "nn_ops.softmax": (lambda **options: ipu.nn_ops.softmax(tf.ones([2, 2]), **options), {"stable": True}),
    "nn_ops.multi_conv": (lambda **options: ipu.nn_ops.multi_conv(tf.nn.conv2d, **options), {}),
    "embedding_lookup": (
        embedding_lookup,
        {"indices_are_sorted": True, "one_hot_threshold": 3, "min_encoding_size": 5},
    ),
    "HostEmbedding": (host_embedding, {"partition_strategy": "ENCODING", "optimizer_name": "mine", "count": 2}),
    "precompiled_user_op": (user_op, {"gp_path": "codelets.gp", "separate_gradients": True}),
    "user_op_metadata": (
        user_op_metadata,
        {"is_elementwise": True, "replica_identical_outputs": [0]},
    ),
    "device_embeddings": (embedding_by_id, {"partition_strategy": "TOKEN", "device_ordinal": 1}),
    "pipeline_cfg": (
        stages_found,
        {"ipu_model": False, "profiling_root_dir": "here", "profiling_enable": True, "fine_tune_iter": 1},
    ),
    "AutoPipelineImpl": (
        stages_found,
        {"matmul_amp": 0.2, "matmul_partial_type": "half", "conv_amp": 0.3, "conv_partial_type": "half"},
    ),
    "cast_native_to_gfloat": (
        gfloat_cast,
        {
            "sr_norm_offset": 0.1,
            "sr_norm_scale": 2.0,
            "sr_norm_min": -0.25,
            "sr_norm_max": 0.25,
            "sr_prob": 0.5,
            "gfloat_format": "BF16",
            "calc_type": tf.float16,
        },
    ),
    "gen_popnn_ops": (
        raw_lstm,
        {"is_training": False},
    ),
    "gen_popops_ops": (raw_slice, {"indices_are_sorted": True}),
    "IpuOptimizerBase": (
        ipu_optimizer,
        {"outline_apply_gradients": True, "outline_apply_gradients_kwargs": {"a": 1}},
    ),
    "GradientAccumulationOptimizer": (accumulating, {"verify_usage": False}),
    "op_util.accumulate_gradients": (
        lambda **options: ipu.ops.op_util.accumulate_gradients([], None, **options),
        {"create_accumulator_from_shape": True},
    ),
    "ALSOptimizer.apply_gradients": (loss_scaled, {"global_step": 3}),
    "configure_ipu_system": (configured, {"device": "/cpu:0"}),
    "get_num_of_ipus_in_device": (
        lambda **options: ipu.utils.get_num_of_ipus_in_device(IPU, **options),
        {"device": "/cpu:0"},
    ),
    "reset_ipu_seed": (lambda **options: ipu.utils.reset_ipu_seed(3, **options), {"cpu_device": "/cpu:0"}),
    "dataset_benchmark": (benchmark, {"apply_debug_options": False, "apply_options": False}),
    "export_dataset_to_file": (exported, {"apply_debug_options": False, "apply_options": False}),
    "export_variables": (exported_variable, {"is_input": False}),
    "horovod.DistributedOptimizer": (horovods_optimizer, {"sparse_as_dense": False}),
    "HorovodBasics": (horovod, {"library_path": "libmpi.so"}),
    "PopDistExtendedV1": (processes, {"cluster_resolver": object()}),
}


@pytest.mark.filterwarnings("ignore:non-integer arguments to randrange")  # Keras' own seeds
@pytest.mark.parametrize("call", arguments.CALLS)
def test_arguments_are_in_the_report_and_once_in_the_log(call, environment, logged):
    run, given = GIVEN[call]
    assert set(given) == {entry.name for entry in arguments.effects(call) if entry.effect == RECORDED}
    environment(COMPILE_ONLY if call == "pipeline" else None, ipus=2 if call == "pipeline" else 1)

    def noted():
        return [name for name, _ in memory_report().without_effect if name.startswith(f"{call}(")]

    run()
    assert noted() == [], "as arguments have their defaults"
    for _ in range(2):
        run(**given)
    assert sorted(noted()) == sorted(f"{call}({name})" for name in given)
    for name in noted():
        assert sum(name in line for line in logged) == 1
        assert name in memory_report().to_text()


def test_the_report_keeps_data_and_no_objects_of_the_script(environment):
    environment(ipus=1)
    processes(object())
    recurrent(options={**POPLAR, "a": "1"}, options_bwd={**POPLAR, "b": "2"})
    raw_lstm(options='{"partialsType": "half", "c": "3"}', options_bwd='{"availableMemoryProportion": 0.2}')
    without = dict(memory_report().without_effect)
    assert without["PopDistExtendedV1(cluster_resolver)"] == "object"
    assert without["gen_popnn_ops(options)"] == {"c": "3"} and "gen_popnn_ops(options_bwd)" not in without
    assert without["PopnnLSTM(options_bwd)"] == {"b": "2"}
    assert without["PopnnLSTM(options)"] == {"a": "1"}, "what the cycle model reads changes something"

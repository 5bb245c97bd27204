"""Names of options that PopLibs does not have: the error of a program with ops that read them."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu

from tf_ipu_shim.poplar_sdk import library_options

IMAGE = np.ones([1, 4, 4, 2], np.float32)
ROWS = np.ones([4, 4], np.float32)
PROGRAMS = {
    "convolutions": (lambda x: tf.nn.conv2d(x, tf.ones([3, 3, 2, 2]), 1, "SAME"), IMAGE),
    "matmuls": (lambda x: tf.matmul(x, x), ROWS),
    "pooling": (lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"), IMAGE),
    "slices": (lambda x: tf.gather(x, [2, 0]), ROWS),
}
MISSPELT = {
    "convolutions": ("gatherConvOutptu", "Did you mean 'gatherConvOutput'?"),
    "matmuls": ("partialType", "Did you mean 'partialsType'?"),
    "pooling": ("colour", "Use one of these: poolUseIntrospectiveMapping, "),
    "slices": ("indicesareSorted", "Did you mean 'indicesAreSorted'?"),
}


def run(category):
    function, x = PROGRAMS[category]
    return tf.function(function, jit_compile=True, input_signature=[tf.TensorSpec(x.shape)])(x).numpy()


@pytest.mark.parametrize("category", PROGRAMS)
def test_unknown_names_fail_programs_that_read_them(environment, category):
    name, advice = MISSPELT[category]
    environment({f"{category}.poplar_options": {name: "true"}}, ipus=1)
    with ipu.ipu_strategy.IPUStrategy().scope():
        with pytest.raises(tf.errors.InternalError) as error:
            run(category)
        unaffected = {other: run(other) for other in PROGRAMS if other != category}
    expected = f"[Poplar][Build graph] invalid_option: Unrecognised option '{name}' of "
    assert expected in error.value.message and advice in error.value.message
    for other, result in unaffected.items():
        np.testing.assert_array_equal(result, run(other))


@pytest.mark.parametrize("category", PROGRAMS)
def test_names_of_poplibs_run(environment, category):
    library = library_options.OF_CONFIGURATION[f"{category}.poplar_options"]
    values = {"partialsType": "half", "availableMemoryProportion": "0.3"}
    options = {name: values.get(name, "1") for name in library_options.names(library)}
    environment({f"{category}.poplar_options": options}, ipus=1)
    with ipu.ipu_strategy.IPUStrategy().scope():
        result = run(category)
    np.testing.assert_array_equal(result, run(category))


def test_options_of_a_multi_convolution(ipus):
    @ipu.nn_ops.multi_conv(options={"invalidFlag": "yes"})
    def convolutions(x):
        return tf.nn.conv2d(x, tf.ones([1, 1, 2, 2]), 1, "SAME")

    ipus(1)
    with ipu.ipu_strategy.IPUStrategy().scope():
        program = tf.function(convolutions, jit_compile=True)
        with pytest.raises(tf.errors.InternalError, match=r"\[Build graph\] invalid_option: Unrecognised option '"):
            program(tf.constant(IMAGE))


def test_options_of_stages(ipus):
    options = ipu.ops.pipelining_ops.PipelineStageOptions(slice_options={"partialsType": "half"})

    def pipeline(x):
        return ipu.pipelining_ops.pipeline(
            [lambda x: x + 1.0, lambda x: tf.gather(x, [0])],
            gradient_accumulation_count=4,
            inputs=[x],
            outfeed_queue=ipu.ipu_outfeed_queue.IPUOutfeedQueue(),
            forward_propagation_stages_poplar_options=[options, options],
        )

    ipus(2)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            compiled = ipu.ipu_compiler.compile(pipeline, [tf.constant(ROWS)])
        with pytest.raises(tf.errors.InternalError, match="Did you mean 'partialType'?"):
            session.run(compiled)

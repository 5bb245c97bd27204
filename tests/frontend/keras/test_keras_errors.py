"""What Keras users do by mistake: the errors they know, with what to change."""

import numpy as np
import pytest
import tensorflow as tf
from keras_models import X, Y, compiled, functional, keras, sequential, strategy, subclassed

from tf_ipu_shim import ipu, keras2, sdk
from tf_ipu_shim.frontend.keras.training import polling_thread

# Keras draws its own seeds with a float.
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]


@pytest.fixture(autouse=True)
def one_ipu(ipus):
    ipus(1)


def generator():
    yield X[:8], Y[:8]


def batches(remainder=True, size=8):
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(size, drop_remainder=remainder)


def of_unknown_length(x, y):
    return x[:, : tf.shape(tf.where(tf.equal(x, x)))[0]], y


@pytest.mark.parametrize(
    ("data", "options", "match"),
    [
        ((X, Y), {"batch_size": 12}, "partial batch: 4 samples are left over where batch_size is 12. .* that divides"),
        ((X[:8], Y[:8]), {}, "partial batch: 8 samples .* batch_size is 32, which it is unless you give one"),
        ((X, Y), {"batch_size": 16, "steps_per_epoch": 3}, r"`steps_per_execution` \(2\) must be a divisor .* \(3\)"),
        ((X, Y), {"batch_size": 16, "steps_per_epoch": 6}, "at least 6 batches .* only generate 4"),
        ((batches(),), {"steps_per_epoch": 6, "epochs": 2}, r"at least 12 batches .* only generate 8"),
        ((batches(False, 12),), {}, "contains a shape .* not fully defined.*drop_remainder=True"),
        ((batches().map(of_unknown_length),), {}, r"contains a shape \(8, None\) .*map with tf\.ensure_shape"),
        ((batches().filter(lambda x, y: True),), {}, "Could not infer the size of the data"),
        ((generator(),), {"steps_per_epoch": 2}, r"unsupported type: generator.*from_generator\(\)`"),
        ((batches().take(0),), {}, "non-empty"),
        ((X, Y), {"batch_size": 0}, "batch_size is 0; expected a positive number"),
        ((X, Y), {"steps_per_epoch": 0}, "`steps_per_epoch` .* is 0"),
        ((X, Y), {"steps_per_epoch": -1}, "`steps_per_epoch` .* is -1"),
        ((X, Y), {"steps_per_epoch": 2.5}, "`steps_per_epoch` .* is 2.5; expected a whole number"),
        ((X, Y), {"steps_per_epoch": float("nan")}, "`steps_per_epoch` .* is nan; expected a whole number"),
        ((batches().repeat(),), {}, "specify the number of steps"),
    ],
)
def test_data_that_cannot_be_fed(data, options, match):
    with strategy().scope():
        model = compiled(sequential(), steps_per_execution=2)
        with pytest.raises(ValueError, match=match):
            model.fit(*data, verbose=0, **options)


def test_validation_data_that_cannot_be_fed():
    with strategy().scope():
        model = compiled(sequential(), steps_per_execution=2)
        with pytest.raises(ValueError, match="contains a shape .*drop_remainder=True.*raised by the validation in fit"):
            model.fit(batches(), validation_data=batches(False, 12), verbose=0)


def test_a_partial_execution_of_older_sdks(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.5")
    with strategy().scope():
        model = compiled(sequential(), steps_per_execution=2)
        with pytest.raises(ValueError, match=r"`steps_per_execution` must .*provided\. The inferred .* \(3\)"):
            model.fit(X, Y, batch_size=16, steps_per_epoch=3, verbose=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.fit(X, Y, batch_size=8, verbose=0),
        lambda model: model.evaluate(X, Y, batch_size=8, verbose=0),
        lambda model: model.predict(X, batch_size=8, verbose=0),
        lambda model: model.train_on_batch(X, Y),
    ],
    ids=["fit", "evaluate", "predict", "train_on_batch"],
)
def test_a_graph_of_tensorflow_1(call):
    with tf.Graph().as_default(), strategy().scope():
        model = compiled(sequential())
        with pytest.raises(RuntimeError, match="does not run on IPUs in a graph of TensorFlow 1.*ipu_compiler.compile"):
            call(model)


def test_executions_of_less_than_a_step():
    with strategy().scope():
        with pytest.raises(ValueError, match="steps_per_execution is -1; expected a positive number"):
            compiled(sequential(), steps_per_execution=-1).fit(X, Y, batch_size=8, verbose=0)


def test_a_model_made_outside_the_scope():
    """It predicts as outside, with plain ops on the IPU. TensorFlow fuses them on the CPU alone: last digits differ."""
    model = compiled(sequential())
    expected = model.predict(X, verbose=0)
    with strategy().scope():
        for call in (model.fit, model.evaluate):
            with pytest.raises(ValueError, match="made outside the scope of the IPUStrategy .*with strategy.scope"):
                call(X, Y)
        np.testing.assert_allclose(model.predict(X, verbose=0), expected, rtol=1e-5, atol=1e-6)


def test_accumulation_error_in_words_of_sdk_2_4(monkeypatch):
    monkeypatch.setenv(sdk.ENVIRONMENT_VARIABLE, "2.4")
    with strategy().scope():
        model = compiled(sequential(), steps_per_execution=2)
        model.set_gradient_accumulation_options(4)
        words = (
            r"\(set to 2\) is not divisible by `gradient_accumulation_steps_per_replica \* number of replicas` "
            r"\(`gradient_accumulation_steps_per_replica` is set to 4 and there are 1 replicas\)"
        )
        with pytest.raises(RuntimeError, match=words):
            model.fit(X, Y, verbose=0)


def test_models_that_cannot_be_run():
    with strategy().scope():
        with pytest.raises(RuntimeError, match="must compile your model"):
            sequential().fit(X, Y)
        with pytest.raises(RuntimeError, match="cannot run eagerly"):
            compiled(sequential(), run_eagerly=True).fit(X, Y)
        model = compiled(functional([0, 0, 1, 1]))
        with pytest.raises(ValueError, match="1 IPUs attached, however .* Set auto_select_ipus of the IPUConfig to 2"):
            model.fit(X, Y, verbose=0)
        model.set_pipelining_options(4, device_mapping=[0, 4])
        far = (
            r"multiple of 8 IPUs: device_mapping=\[0, 4\] of its options puts a stage on IPU 4, and the last .* IPU 0."
        )
        with pytest.raises(
            ValueError, match=f"{far} Set auto_select_ipus of .* to 8 .* or name only IPUs that the device has"
        ):
            model.fit(X, Y, verbose=0)
        model.set_pipelining_options(device_mapping=[0, 0])
        with pytest.raises(ValueError, match="attempting to train is pipelined, however"):
            model.fit(X, Y, verbose=0)
        model.set_pipelining_options(4, device_mapping=[0, 0])
        with pytest.raises(RuntimeError, match="The pipelined model has been configured to use gradient accumulation"):
            model.fit(X, Y, verbose=0)
        model = compiled(sequential(), steps_per_execution=2)
        model.set_gradient_accumulation_options(4)
        with pytest.raises(RuntimeError, match=r"value \(set to 2\) is not divisible by .* \(4\)"):
            model.fit(X, Y, batch_size=8, verbose=0)
        with pytest.raises(RuntimeError, match=r"value \(set to 1\) is not divisible by .* \(4\)"):
            model.train_on_batch(X, Y)
        with pytest.raises(TypeError, match="Invalid keyword arguments"):
            model.evaluate(X, Y, nonsense=1)

    for call in (
        lambda: model.fit(X, Y),
        lambda: model.train_on_batch(X, Y),
        lambda: model.evaluate(X, Y),
        lambda: model.predict(X),
    ):
        with strategy().scope(), pytest.raises(RuntimeError, match="inside a `tf.function`"):
            tf.function(call, autograph=False)()

    class Own(keras.Sequential):
        def make_train_function(self, force=False):
            return None

        def test_step(self, data):
            return {}

    with strategy().scope():
        model = compiled(Own([keras.layers.Dense(3, input_shape=(6,)), keras.layers.Dense(3)]))
        with pytest.raises(RuntimeError, match="`make_train_function` for the model .* overridden"):
            model.fit(X, Y, verbose=0)
        model.set_pipeline_stage_assignment([0, 1])
        model.set_pipelining_options(1, device_mapping=[0, 0])
        with pytest.raises(RuntimeError, match="`test_step` for the model .* overridden"):
            model.evaluate(X, Y, verbose=0)
        with pytest.raises(RuntimeError, match="`make_train_function` for the model .* overridden"):
            model.fit(X, Y, verbose=0)


def test_a_call_that_stages_would_leave_out():
    functional_kind = keras2.module("engine.functional").Functional

    class Doubled(functional_kind):
        def call(self, inputs, **kwargs):
            return 2.0 * super().call(inputs, **kwargs)

    class DoubledInTurn(keras.Sequential):
        def call(self, inputs, **kwargs):
            return 2.0 * super().call(inputs, **kwargs)

    class Empty(keras.Model):
        pass

    with strategy().scope():
        inputs, layers = keras.Input((6,)), [keras.layers.Dense(3), keras.layers.Dense(3)]
        for model in (Doubled(inputs, layers[1](layers[0](inputs))), DoubledInTurn([inputs, *layers])):
            compiled(model)
            twice = model.predict(X, batch_size=8)
            np.testing.assert_allclose(twice, 2.0 * layers[1](layers[0](X)), rtol=1e-5, atol=1e-6)
            stages = model.get_pipeline_stage_assignment()
            for number, stage in enumerate(stages):
                stage.pipeline_stage = number
            model.set_pipeline_stage_assignment(stages)
            model.set_pipelining_options(4, device_mapping=[0, 0])
            with pytest.raises(RuntimeError, match="The function `call` for the model .* pipelined models"):
                model.predict(X, batch_size=8)
        unwritten = "The function `call` for the model empty has not been implemented"
        with pytest.raises(NotImplementedError, match=unwritten):
            compiled(Empty()).fit(X, Y, batch_size=8, verbose=0)
        of_keras = keras.experimental.LinearModel(3, kernel_initializer="ones")  # a class of Keras' own
        compiled(of_keras)
        np.testing.assert_allclose(of_keras.predict(X, batch_size=8), X.sum(1, keepdims=True) * np.ones(3), rtol=1e-5)


def test_mini_batches_a_pipeline_cannot_run_by_keras_names():
    with strategy().scope():
        model = compiled(functional([0, 0, 1, 1]), steps_per_execution=1)
        model.set_pipelining_options(1, device_mapping=[0, 0])
        many = r"must be a multiple of {}, but it is 1. It is `{}` of {}\(\): change that, or use PipelineSchedule.Seq"
        with pytest.raises(
            tf.errors.FailedPreconditionError,
            match=many.format(4, "gradient_accumulation_steps_per_replica", "set_pipelining_options"),
        ):
            model.fit(X, Y, batch_size=16, verbose=0)
        for call in (lambda: model.evaluate(X, Y, batch_size=16, verbose=0), lambda: model.predict(X, batch_size=16)):
            with pytest.raises(
                tf.errors.FailedPreconditionError, match=many.format(2, "steps_per_execution", "compile")
            ):
                call()


@pytest.mark.parametrize("wrap", [lambda made: made, keras.mixed_precision.LossScaleOptimizer])
def test_accumulation_with_an_optimizer_that_minimizes_by_itself(wrap):
    class Own(keras.optimizers.legacy.SGD):
        def minimize(self, *args, **kwargs):
            return super().minimize(*args, **kwargs)

    with strategy().scope():
        model = compiled(sequential(), lambda: wrap(Own(0.1)), steps_per_execution=8)
        model.fit(X, Y, batch_size=8, verbose=0)
        model.set_gradient_accumulation_options(4)
        staged = compiled(functional([0, 0, 1, 1]), lambda: wrap(Own(0.1)), steps_per_execution=8)
        staged.set_pipelining_options(4, device_mapping=[0, 0])
        for one in (model, staged):
            with pytest.raises(ValueError, match="must not override OptimizerV2.minimize.*`Own.minimize`"):
                one.fit(X, Y, batch_size=8, verbose=0)


def test_a_model_from_outside_has_no_extensions():
    model = compiled(subclassed())
    with strategy().scope(), pytest.raises(AttributeError, match="set_pipelining_options"):
        model.set_pipelining_options(4)


@pytest.mark.parametrize(
    ("method", "options", "error", "match"),
    [
        ("gradient_accumulation", {"gradient_accumulation_steps_per_replica": 0}, ValueError, "positive integer"),
        ("gradient_accumulation", {"gradient_accumulation_steps_per_replica": 2.0}, ValueError, "positive integer"),
        (
            "gradient_accumulation",
            {"opt": 1},
            ValueError,
            "Found `opt` key in `gradient_accumulation_optimizer_kwargs`",
        ),
        ("gradient_accumulation", {"num_mini_batches": 1}, ValueError, "Found `num_mini_batches` key"),
        ("gradient_accumulation", {"experimental_normalize_gradients": True}, ValueError, "Found `experimental_norm"),
        ("gradient_accumulation", {"nonsense": True}, TypeError, "takes no argument 'nonsense'"),
        (
            "gradient_accumulation",
            {"gradient_accumulation_steps_per_replica": 2, "gradient_accumulation_count": 2},
            TypeError,
            "takes no argument 'gradient_accumulation_count'",
        ),
        ("gradient_accumulation", {"gradient_accumulation_reduction_method": "x"}, ValueError, "Cannot parse x as"),
        ("gradient_accumulation", {"use_v2_gradient_accumulation_optimizer": "no"}, TypeError, "use_v2_.* not .no"),
        ("gradient_accumulation", {"offload_weight_update_variables": "False"}, TypeError, "offload_weight_.* 'False'"),
        ("gradient_accumulation", {"replicated_optimizer_state_sharding": 2}, TypeError, "replicated_opt.* not 2"),
        ("pipelining", {"accumulate_outfeed": "False"}, TypeError, "accumulate_outfeed must be True or False"),
        ("pipelining", {"gradient_accumulation_steps_per_replica": -1}, ValueError, "positive integer"),
        ("pipelining", {"device_mapping": 1}, ValueError, "`device_mapping` to be a list of integers"),
        ("pipelining", {"device_mapping": ["0"]}, ValueError, "`device_mapping` to be a list of integers"),
        (
            "pipelining",
            {"gradient_accumulation_count": 1},
            ValueError,
            "Set the `gradient_accumulation_steps_per_replica`",
        ),
        (
            "pipelining",
            {"repeat_count": 1},
            ValueError,
            "Found `repeat_count` key in `pipelining_kwargs`. This argument",
        ),
        ("pipelining", {"batch_serialization_iterations": 1}, ValueError, "Found `batch_serialization_iterations`"),
        ("pipelining", {"experimental_normalize_gradients": True}, ValueError, "Found `experimental_normalize"),
        (
            "pipelining",
            {"nonsense": 1},
            TypeError,
            "The pipeline takes no argument 'nonsense'; expected one of gradient_acc",
        ),
        (
            "infeed_queue",
            {"prefetch": 1},
            TypeError,
            "The infeed takes no argument 'prefetch'; expected one of prefetch_depth",
        ),
        ("infeed_queue", {"kwargs": 1}, TypeError, "The infeed takes no argument 'kwargs'"),
        (
            "outfeed_queue",
            {"prefetch_depth": 1},
            TypeError,
            "The outfeed takes no argument.*; expected one of buffer_depth",
        ),
        ("infeed_queue", {"dataset": 1}, ValueError, "Found `dataset` key in `kwargs`"),
        ("infeed_queue", {"feed_name": 1}, ValueError, "Found `feed_name` key in `kwargs`"),
        ("outfeed_queue", {"outfeed_mode": 1}, ValueError, "Found `outfeed_mode` key in `kwargs`"),
        ("outfeed_queue", {"feed_name": 1}, ValueError, "Found `feed_name` key in `kwargs`"),
    ],
)
def test_wrong_options(method, options, error, match):
    with strategy().scope():
        with pytest.raises(error, match=match):
            getattr(sequential(), f"set_{method}_options")(**options)


def test_a_count_of_no_accumulation_is_left_out_with_a_warning(caplog):
    with strategy().scope(), caplog.at_level("WARNING", "tensorflow"):
        model = sequential()
        model.set_gradient_accumulation_options(gradient_accumulation_count=6)
    assert "has no argument `gradient_accumulation_count`: the model accumulates no gradients" in caplog.text
    assert model._ipu.options.accumulation_kwargs == {}


def test_asynchronous_is_a_switch():
    with strategy().scope(), pytest.raises(TypeError, match="asynchronous must be True or False, not 'no'"):
        sequential().set_asynchronous_callbacks("no")


def test_queue_options_reach_the_queues(monkeypatch):
    depths = []
    prefetch = tf.data.Dataset.prefetch

    def seen(dataset, buffer_size, *arguments, **keywords):
        depths.append(buffer_size)
        return prefetch(dataset, buffer_size, *arguments, **keywords)

    monkeypatch.setattr(tf.data.Dataset, "prefetch", seen)
    with strategy().scope():
        model = compiled(sequential())
        expected = model.evaluate(X, Y, verbose=0)
        assert 3 in depths and 7 not in depths  # the default
        model.set_infeed_queue_options(prefetch_depth=7, optimise_latency=True)
        assert model.evaluate(X, Y, verbose=0) == expected and 7 in depths
        model.set_outfeed_queue_options(buffer_depth=0)
        with pytest.raises(ValueError, match="buffer depth cannot be less than one, but 0"):
            model.evaluate(X, Y, verbose=0)
        model.set_outfeed_queue_options(buffer_depth=2, io_batch_size=1)
        assert model.evaluate(X, Y, verbose=0) == expected
        model.set_infeed_queue_options(prefetch_depth=256)
        with pytest.raises(ValueError, match="prefetch_depth must be less than 256"):
            model.evaluate(X, Y, verbose=0)


def test_names_and_arguments_of_older_sdks(monkeypatch):
    from tf_ipu_shim.ipu.keras.extensions import functional_extensions, sequential_extensions

    assert functional_extensions.PipelineStage is keras.ipu.PipelineStage
    with strategy().scope():
        model = sequential()
        assert isinstance(model, sequential_extensions.SequentialExtension)
        monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
        model.set_gradient_accumulation_options(4, experimental_normalize_gradients=True)
        compiled(model, steps_per_execution=8)
        weights = model.get_weights()
        model.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
        got = model.get_weights()
    stock = compiled(sequential())
    stock.set_weights(weights)
    stock.fit(X, Y, batch_size=32, shuffle=False, verbose=0)
    for one, other in zip(got, stock.get_weights()):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def test_a_batch_whose_parts_differ_in_length():
    for method in ("train_on_batch", "test_on_batch"):
        with strategy().scope(), pytest.raises(ValueError, match="Data cardinality is ambiguous"):
            getattr(compiled(functional()), method)(X[:8], Y[:9])


def test_targets_may_be_missing_where_a_model_adds_its_loss():
    """As in Keras 2.6; a regulariser is no loss that a model could be trained with."""

    def model(adds_loss):
        inputs = keras.Input((6,))
        outputs = keras.layers.Dense(1, kernel_initializer="ones", kernel_regularizer="l2", use_bias=False)(inputs)
        made = keras.Model(inputs, outputs)
        if adds_loss:
            made.add_loss(tf.reduce_sum(outputs))
        made.compile("sgd", "mse")
        return made

    with strategy().scope():
        trained = model(True)
        before = trained.get_weights()[0]
        trained.fit(X[:16], batch_size=8, verbose=0, shuffle=False)
        assert not np.allclose(before, trained.get_weights()[0])
        with pytest.raises(ValueError, match="Target data is missing"):
            model(False).fit(X[:16], batch_size=8, verbose=0)


@pytest.mark.parametrize(("asynchronous", "method"), [(False, "dequeue"), (True, "start"), (True, "join")])
def test_what_ctrl_c_left_is_not_the_next_call_s(monkeypatch, asynchronous, method):
    """Ctrl-C before results are taken, and while the thread that takes them is started or waited for."""
    owner = polling_thread.PollingThread if asynchronous else ipu.ipu_outfeed_queue.IPUOutfeedQueue
    with strategy().scope():
        model = compiled(sequential(), steps_per_execution=4)
        model.set_asynchronous_callbacks(asynchronous)

        def results():
            return model.predict(X, batch_size=8), model.evaluate(X, Y, batch_size=8, verbose=0)

        def interrupted(self):
            monkeypatch.undo()
            if method == "start":
                self.start()
            raise KeyboardInterrupt

        expected = results()
        for call in (lambda: model.predict(X * 2.0, batch_size=8), lambda: model.evaluate(X * 2.0, Y, batch_size=8)):
            monkeypatch.setattr(owner, method, interrupted)
            with pytest.raises(KeyboardInterrupt):
                call()
            for one, other in zip(results(), expected):
                np.testing.assert_allclose(one, other, rtol=1e-5)

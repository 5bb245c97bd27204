"""Extensions that a script registers for Keras classes: which methods they answer in the place of, and for whom."""

import importlib

import pytest
import tensorflow as tf
from keras_models import keras, strategy

from tf_ipu_shim import ipu, keras2
from tf_ipu_shim.frontend.strategies import delegation

# Keras' own seeds
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]
extensions = importlib.import_module("tf_ipu_shim.api.keras.extensions")


class Plus(keras.layers.Layer):
    @delegation.extension_delegate
    def call(self, x, training=False):
        if tf.reduce_sum(x) > 100.0:  # autograph's to convert, as in any layer
            x = -x
        return x + (2.0 if training else 1.0)


class Times(delegation.KerasExtension):
    factor = 3.0

    def _call_supported(self, x, training=False):
        return not training

    def _call_delegate(self, x, training=False):
        return self.factor * self.call(x, __extension_delegate=False)


def on_ipu(place, layer, *arguments, **keywords):
    return float(place.run(tf.function(lambda x: layer(x, **keywords), jit_compile=True), args=arguments))


def registering(kind, extension):
    place = strategy()
    place._register_keras_extension(kind, delegation.KerasExtension, extension)
    return place


def test_a_layers_call(ipus):
    ipus(1)
    place = registering(Plus, Times)
    outside = Plus()
    with place.scope():
        layer = Plus(name="inside")
        assert isinstance(layer, Plus) and isinstance(layer, Times) and layer.name == "inside"
        assert on_ipu(place, layer, tf.constant(4.0)) == 15.0
        assert on_ipu(place, layer, tf.constant(104.0)) == -309.0
        assert on_ipu(place, layer, tf.constant(4.0), training=True) == 6.0  # it does not take part
        place._delete_keras_extension(Plus, delegation.KerasExtension)
        plain = Plus()
        assert not isinstance(plain, Times) and on_ipu(place, plain, tf.constant(4.0)) == 5.0
    assert float(outside(tf.constant(4.0))) == 5.0


def test_registering_as_up_to_sdk_2_5(ipus):
    ipus(1)
    place = strategy()
    place._register_keras_extension(Plus, Times)
    with place.scope():
        assert on_ipu(place, Plus(), tf.constant(4.0)) == 15.0
        place._delete_keras_extension(Plus)
        assert not isinstance(Plus(), Times)


def test_an_extension_needs_both_methods(ipus):
    class Half(delegation.KerasExtension):
        def _call_supported(self, x, training=False):
            return True

    ipus(1)
    place = registering(Plus, Half)
    with place.scope():
        assert on_ipu(place, Plus(), tf.constant(4.0)) == 5.0


def test_class_methods():
    class Owner(keras.layers.Layer):
        @classmethod
        @delegation.extension_delegate
        def size(cls, number):
            return [cls.__name__, number]

    class Heir(Owner):
        pass

    class Longer(delegation.KerasExtension):
        @classmethod
        def _size_supported(cls, number):
            return number > 1

        @classmethod
        def _size_delegate(cls, number):
            return [*cls.size(number, __extension_delegate=False), "longer"]

    place = registering(Owner, Longer)
    with place.scope():
        assert [Owner.size(2), Heir.size(3), Owner.size(1)] == [
            ["Owner", 2, "longer"],
            ["Heir", 3, "longer"],
            ["Owner", 1],
        ]
    assert Owner.size(2) == ["Owner", 2]


def remembering(base):
    class Remembering(base):
        def __init__(self):
            base.__init__(self)
            self.note = "none"

        def _get_config_supported(self):
            return True

        def _get_config_delegate(self):
            return {**super()._get_config_delegate(), "note": self.note}

        def _deserialize_from_config_supported(self, config):
            return "note" in config

        def _deserialize_from_config_delegate(self, config):
            super()._deserialize_from_config_delegate(config)
            self.note = config["note"]

    return Remembering


def functional():
    x = keras.Input((3,))
    return keras.Model(x, keras.layers.Dense(2)(x))


def sequential():
    return keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])


@pytest.mark.parametrize(
    ("kind", "base", "make"),
    [
        ("functional.Functional", "functional_extensions.FunctionalExtension", functional),
        ("sequential.Sequential", "sequential_extensions.SequentialExtension", sequential),
    ],
)
def test_a_model_keeps_what_its_extension_writes(ipus, tmp_path, kind, base, make):
    ipus(1)
    module, _, name = kind.partition(".")
    stock = getattr(keras2.module(f"engine.{module}", keras2.root_of_class(keras.Model)), name)
    module, _, name = base.partition(".")
    base = getattr(getattr(extensions, module), name)
    extension = remembering(base)
    place = registering(stock, extension)
    with place.scope():
        model = make()
        assert isinstance(model, extension) and isinstance(model, base) and model.note == "none"
        model.note = "kept"
        model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=4)
        config = model.get_config()
        assert config["note"] == "kept"
        assert "note" not in model.get_config(__extension_delegate=False)
        copy = type(model).from_config(config)
        assert copy.note == "kept" and copy._ipu.options.accumulation_steps == 4
        assert keras.models.model_from_json(model.to_json()).note == "kept"
        model.save(tmp_path / "model", save_format="tf")
        assert keras.models.load_model(tmp_path / "model").note == "kept"
        place._delete_keras_extension(stock, delegation.KerasExtension)
        assert isinstance(make(), base) and not isinstance(make(), extension)


class Wide(keras.Model):
    def __init__(self, width=2):
        super().__init__()
        self.width, self.only = width, keras.layers.Dense(width)

    def call(self, x):
        return self.only(x)

    def get_config(self):
        return {**super().get_config(), "width": self.width}


def test_a_subclassed_model_is_made_of_constructor_arguments(ipus):
    ipus(1)
    stock = keras2.module("engine.training", keras2.root_of_class(keras.Model)).Model
    extension = remembering(extensions.model_extensions.ModelExtension)
    with registering(stock, extension).scope():
        model = Wide(5)
        model.note = "kept"
        config = {**model.get_config(), "note": "kept"}
        copy = Wide.from_config(config)
        assert (copy.width, copy.note) == (5, "kept")


def test_names_and_refusals():
    layers = keras2.module("engine.base_layer", keras2.root_of_class(keras.Model))
    assert layers.KerasExtension is delegation.KerasExtension
    assert layers.extension_delegate is delegation.extension_delegate
    place = ipu.ipu_strategy.IPUStrategyV1()
    with pytest.raises(ValueError, match="must be a subclass of KerasExtension"):
        place._register_keras_extension(Plus, delegation.KerasExtension, dict)
    with pytest.raises(ValueError, match="registered under KerasExtension"):
        place._register_keras_extension(Plus, dict, dict)
    with pytest.raises(ValueError, match="No extension is registered for Plus; there are for: none"):
        place._delete_keras_extension(Plus, delegation.KerasExtension)

"""Stages of Keras models that are saved, cloned or changed."""

import numpy as np
import pytest
from keras_models import X, Y, compiled, functional, keras, sequential, strategy
from slow_cases import slowly
from staged_models import Own, assign, flat, nested, pipelined

# Keras' own seeds
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]


@pytest.fixture(autouse=True)
def two_ipus(ipus):
    ipus(2)


@pytest.mark.parametrize(
    ("make", "name"),
    [slowly(lambda: functional([0, 0, 1, 1]), "model.h5"), (nested, "model.keras")],
)
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_saved_models_keep_their_stages(tmp_path, make, name):
    path = str(tmp_path / name)
    with strategy().scope():
        model = pipelined(make())
        if make is nested:
            assign(model, [0, 1, 1, 1])
        model.save(path)
        loaded = keras.models.load_model(path)
        stages = [[one.pipeline_stage for one in flat(m.get_pipeline_stage_assignment())] for m in (model, loaded)]
        assert stages[0] == stages[1] and None not in stages[0]
        again = keras.models.model_from_json(model.to_json())
        again.set_weights(model.get_weights())
        for one in (loaded, again):
            compiled(one, steps_per_execution=8)
        got = [one.fit(X, Y, batch_size=8, shuffle=False, verbose=0).history["loss"] for one in (model, loaded, again)]
        np.testing.assert_allclose(got[1:], [got[0]] * 2, rtol=1e-5)
        assert "ipu_extension" not in functional().get_config()
    np.testing.assert_allclose(keras.models.load_model(path).predict(X, verbose=0).shape, (64, 3))


@pytest.mark.parametrize("make", [slowly(functional), nested, slowly(sequential)])
def test_a_saved_model_and_clones_keep_their_stages(tmp_path, make):
    with strategy().scope():
        model = pipelined(make())
        stages = [0, 0, 1, 1, 1] if make is functional else [0, 0, 1, 1]
        assign(model, stages)
        model.save(tmp_path / "model", save_format="tf")
        others = [
            keras.models.load_model(tmp_path / "model"),
            keras.models.clone_model(model),
            keras.models.clone_model(model, input_tensors=keras.Input((6,))),
            keras.models.clone_model(model, clone_function=lambda layer: type(layer).from_config(layer.get_config())),
        ]
        for one in others:
            assert [each.pipeline_stage for each in flat(one.get_pipeline_stage_assignment())] == stages
            assert one.get_config()["ipu_extension"] == model.get_config()["ipu_extension"]
        if make is sequential:
            fitted = [
                one.fit(X, Y, batch_size=8, shuffle=False, verbose=0).history["loss"]
                for one in (model, compiled(others[0], steps_per_execution=8))
            ]
            np.testing.assert_allclose(*fitted, rtol=1e-5)
        assert not keras.models.clone_model(functional())._is_pipelined()
    outside = keras.models.load_model(tmp_path / "model")
    assert not hasattr(outside, "_ipu") and outside.predict(X, verbose=0).shape == (64, 3)


def test_a_built_subclassed_model_is_saved_with_its_stages(tmp_path):
    path, known = tmp_path / "model", {"Own": Own}
    with strategy().scope():
        model = Own(5)
        model.build((8, 6))
        plain = tmp_path / "plain"
        model.save(plain, save_format="tf")
        assert not keras.models.load_model(plain, custom_objects=known)._is_pipelined()
        pipelined(model).set_pipelining_options(4, device_mapping=[1, 0], gradient_accumulation_reduction_method="mean")
        assign(model, [0, 1])
        model.save(path, save_format="tf")
        loaded = keras.models.load_model(path, custom_objects=known)
        assert [one.pipeline_stage for one in loaded.get_pipeline_stage_assignment()] == [0, 1]
        assert [one.layer for one in loaded.get_pipeline_stage_assignment()] == [loaded.first, loaded.last]
        assert loaded._pipelining_device_mapping == [1, 0]
        got = [
            one.fit(X, Y, batch_size=8, shuffle=False, verbose=0).history["loss"]
            for one in (model, compiled(loaded, steps_per_execution=8))
        ]
        np.testing.assert_allclose(*got, rtol=1e-5)
    outside = keras.models.load_model(path, custom_objects=known)
    assert not hasattr(outside, "_ipu") and outside(X).shape == (64, 3)


def test_a_changed_sequential_model_forgets_its_stages():
    with strategy().scope():
        model = sequential()
        model.set_pipeline_stage_assignment([0, 0, 1, 1])
        assert model._pipeline_stage_assignment_valid
        model.add(keras.layers.Dense(3))
        assert not model._pipeline_stage_assignment_valid
        assert [one.pipeline_stage for one in model.get_pipeline_stage_assignment()] == [None] * 5
        model.set_pipeline_stage_assignment([0, 0, 1, 1, 2])
        model.pop()
        assert not model._pipeline_stage_assignment_valid

"""Keywords that public programs pass to estimators, against TensorFlow's own estimator on the CPU."""

import glob

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from estimator_models import Runs, dataset, of_ipu, stock_model_fn

pytestmark = [pytest.mark.estimator, pytest.mark.one_version]
pytest.importorskip("tensorflow_estimator")  # TensorFlow has it up to 2.15

RUN = {"save_checkpoints_steps": 4, "keep_checkpoint_max": 2, "log_step_count_steps": 4, "save_summary_steps": 4}


def of_stock(folder, **options):
    config = tf.estimator.RunConfig(**options.pop("run", {}))
    return tf.estimator.Estimator(stock_model_fn, str(folder), config, **options)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Twelve steps of each, in loops of four on the IPU."""
    made = [make(tmp_path_factory.mktemp("trained"), run=RUN) for make in (of_stock, of_ipu)]
    return [estimator.train(input_fn=dataset, steps=12) for estimator in made]


def checkpoints(estimator):
    return [
        path.rsplit("-")[-1] for path in tf.train.get_checkpoint_state(estimator.model_dir).all_model_checkpoint_paths
    ]


def test_checkpoints_are_as_many_as_asked_for(both):
    assert [checkpoints(estimator) for estimator in both] == [["8", "12"]] * 2


def test_evaluation_of_an_older_checkpoint(both):
    stock, ours = (
        estimator.evaluate(input_fn=dataset, steps=4, checkpoint_path=f"{estimator.model_dir}/model.ckpt-8")
        for estimator in both
    )
    assert ours["global_step"] == 8
    np.testing.assert_allclose([ours[name] for name in stock], list(stock.values()), 1e-5)


def test_hooks_of_evaluation_and_prediction(both):
    """One run is a loop of four on the IPU."""
    _, ours = both
    evaluated, predicted = Runs(), Runs()
    ours.evaluate(input_fn=dataset, steps=8, hooks=[evaluated])
    rows = list(ours.predict(input_fn=lambda: dataset(repeat=False), hooks=[predicted], predict_keys=["y"]))
    assert (evaluated.number, predicted.number) == (2, 3)
    assert len(rows) == 24 and set(rows[0]) == {"y"}


def settings(folder):
    return tf.estimator.WarmStartSettings(ckpt_to_initialize_from=folder, vars_to_warm_start="weight")


@pytest.mark.parametrize("chosen", [str, settings], ids=["folder", "settings"])
def test_training_begins_from_another_model(both, chosen, tmp_path):
    begun = [
        make(tmp_path / make.__name__, warm_start_from=chosen(both[0].model_dir)).train(input_fn=dataset, max_steps=4)
        for make in (of_stock, of_ipu)
    ]
    for name in ("weight", "bias"):
        stock, ours = (estimator.get_variable_value(name) for estimator in begun)
        np.testing.assert_allclose(ours, stock, 1e-5)


def test_steps_a_second_come_each_so_many_steps(both):
    """TensorFlow's hook looks after each run, and goes by the step before it."""
    assert [rates(estimator) for estimator in both] == [[5, 9], [12]]


def rates(estimator):
    """The steps at which events say how fast training is: none before there is a time to measure."""
    events = (
        event for file in glob.glob(f"{estimator.model_dir}/*tfevents*") for event in tf.train.summary_iterator(file)
    )
    return [event.step for event in events if any(value.tag == "global_step/sec" for value in event.summary.value)]

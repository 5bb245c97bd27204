"""Two actions at once, where none is enough alone: what is said they need, beside what the script needs that does both.

The chip is a GC200 with four tiles. Programs are lowered and planned, and not run.
"""

import re

import numpy as np
import pytest
import tensorflow as tf
from advice_models import compiled, deep, few_tiles, fitted, planned, staged  # noqa: F401 - a fixture
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineSchedule

from tf_ipu_shim import ipu
from tf_ipu_shim.memory_model.advice import recommendations

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
ODD = 1501  # of which there are no equal parts


def told(plan):
    """The action that fits, and what the fullest IPU is said to need then."""
    (pair,) = [one for one in plan.savings if one.fits]
    assert ", and " in pair.action
    assert all(one.bytes > 0 for one in plan.savings) and len(plan.savings) > 2
    return pair.action, max(one.peak_bytes for one in plan.ipus) - pair.bytes


def needed(plan):
    assert plan.fits
    return max(one.peak_bytes for one in plan.ipus)


def pipeline(batch, cut=(7,), ipus=2, recompute=False, floats="float32", **options):
    return planned(fitted(deep, batch, options=staged(cut, **options), floats=floats), ipus, recompute)


def test_recomputation_and_half_precision(monkeypatch):
    monkeypatch.setattr(recommendations, "_pipeline_changes", lambda *_: iter(()))
    action, expected = told(pipeline(ODD))
    assert "float16" in action and "recomputation" in action
    after = pipeline(ODD, recompute=True, floats="float16")
    assert expected == pytest.approx(needed(after), rel=0.01)


def test_recomputation_and_other_stages(monkeypatch):
    """The cut is that of a pipeline which recomputes: another one than without."""
    monkeypatch.setattr(recommendations, "_tensor_changes", lambda *_: iter(()))
    monkeypatch.setattr(recommendations, "_pipeline_changes", lambda *_: iter(()))
    before = pipeline(1151)
    action, expected = told(before)
    ipus, names = re.search(
        r"^recomputation .*, and (?:other stages on the same|) ?(\d) IPUs .*, stages? 1.* from (.*) on$", action
    ).groups()
    cut = [int(name.removeprefix("layer")) for name in names.split(", ")]
    assert expected == needed(pipeline(1151, cut, int(ipus), recompute=True))
    alone = next(one.action for one in before.savings if "stage 1 from" in one.action and ", and " not in one.action)
    assert "from layer2 on" in alone and cut != [2]


@pytest.mark.slow
def test_a_part_of_the_mini_batch_and_another_schedule(monkeypatch):
    """Half of the mini-batch was all that was tried alone: more would not have been enough."""
    monkeypatch.setattr(recommendations, "_BATCH_PARTS", (2, 4))
    wide = 3200
    before = pipeline(wide)
    action, expected = told(before)
    part = int(re.search(r"a mini-batch of ([\d,]+) instead of 3,200", action)[1].replace(",", ""))
    options = {}
    if "Interleaved" in action:
        options["pipeline_schedule"] = PipelineSchedule.Interleaved
    if "Sequential" in action:
        options["pipeline_schedule"] = PipelineSchedule.Sequential
    if "offload_activations" in action:
        options["offload_activations"] = True
    floats = "float16" if "float16" in action else "float32"
    after = pipeline(part, recompute="recomputation" in action, floats=floats, **options)
    assert expected == pytest.approx(needed(after), rel=0.01)


@pytest.mark.slow
def test_layers_on_other_shards_and_half_precision():
    def sharded(split, dtype):
        def model(x):
            for number, shard in enumerate(map(int, split)):
                with ipu.scopes.ipu_shard(shard):
                    x = tf.tanh(tf.matmul(x, v1.get_variable(f"w{number}", [480, 480], dtype, use_resource=True)))
            with ipu.scopes.ipu_shard(shard):
                loss = tf.reduce_sum(x)
            return ipu.sharded_optimizer.ShardedOptimizer(v1.train.MomentumOptimizer(0.1, 0.9)).minimize(loss)

        return compiled(model, np.zeros([7, 480], dtype.as_numpy_dtype))

    action, expected = told(planned(sharded("000000", tf.float32)))
    assert re.search(r"^float16 instead of float32 \(.*\), and 4 IPUs to a replica .*, shards 1 to 3 from ", action)
    starts = re.search(r"shards 1 to 3 from (MatMul_(\d), MatMul_(\d), MatMul_(\d)) ", action).groups()[1:]
    split = "".join(str(sum(number >= int(start) for start in starts)) for number in range(6))
    assert expected == pytest.approx(needed(planned(sharded(split, tf.float16), 4)), rel=0.01)

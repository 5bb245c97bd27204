"""The memory plan of random models: it comes without a warning, and its figures agree with each other."""

import harness
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from random_graphs import descriptions, examples, model_of

from tf_ipu_shim.runtime import plans

pytestmark = [pytest.mark.slow, pytest.mark.one_version]


@examples(15)
@given(description=descriptions())
def test_figures_agree(ipus, description):
    ipus(4)
    plans.forget()
    run = harness.run_session(model_of(description), description.inputs(), on_ipu=True)
    for _, programs in plans.recorded().values():
        for plan in programs:
            for ipu in plan.ipus:
                assert sum(ipu.tile_bytes) == sum(ipu.categories.values()) == ipu.peak_bytes
                assert sum(owner.bytes for owner in ipu.owners) <= ipu.peak_bytes
            modelled = {name: size for (_, name), size in plan.variables.items()}
            values = {name: np.asarray(value).nbytes for name, value in run.variables.items()}
            assert modelled == {name: values[name] for name in modelled}
            kinds = ("weight", "optimizer_state", "accumulator")
            assert sum(modelled.values()) == sum(ipu.categories[kind] for ipu in plan.ipus for kind in kinds)
    tf.compat.v1.reset_default_graph()

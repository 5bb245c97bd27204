"""Arithmetic options: exceptions, rounding, normalisation."""

from __future__ import annotations

from typing import Union

from tf_ipu_shim.configuration.enums import StochasticRoundingBehaviour
from tf_ipu_shim.configuration.table.option import Option
from tf_ipu_shim.machine.environment.effects import RESULTS

_ESR_2_4 = Union[StochasticRoundingBehaviour, bool]

OPTIONS: tuple[Option, ...] = (
    Option(
        "experimental.enable_prng_stability",
        False,
        "Keep the replicas' random numbers in step, so that they drift apart less under stochastic rounding.",
        "enable_experimental_prng_stability",
        since=(2, 3),
        effect=RESULTS,
        meaning="with stochastic rounding, replicas round what they have in common alike",
    ),
    Option(
        "floating_point_behaviour.inv",
        False,
        "Stop at an invalid operation.",
        "floating_point_behaviour.inv",
        effect=RESULTS,
        meaning="a program stops at the op that meets it",
    ),
    Option(
        "floating_point_behaviour.div0",
        False,
        "Stop at a division by zero.",
        "floating_point_behaviour.div0",
        effect=RESULTS,
        meaning="a program stops at the op",
    ),
    Option(
        "floating_point_behaviour.oflo",
        False,
        "Stop at an overflow.",
        "floating_point_behaviour.oflo",
        effect=RESULTS,
        meaning="a program stops at the op",
    ),
    Option(
        "floating_point_behaviour.esr",
        StochasticRoundingBehaviour.OFF,
        "Where float16 results round stochastically.",
        older=(((2, 3), bool, False), ((2, 4), _ESR_2_4, StochasticRoundingBehaviour.OFF)),
        effect=RESULTS,
        meaning="float16 results are rounded up or down at random, by the seed of `reset_ipu_seed`",
    ),
    Option(
        "floating_point_behaviour.nanoo",
        False,
        "A float16 overflow gives NaN instead of the largest number.",
        "floating_point_behaviour.nanoo",
        effect=RESULTS,
        meaning="a float16 overflow gives NaN where it is True, and is clipped to 65504 where it is False",
    ),
    Option(
        "floating_point_behaviour.set_all",
        False,
        "Switch on everything in this category.",
        effect=RESULTS,
        meaning="a program stops at the op, and float16 results are rounded stochastically",
    ),
    Option(
        "norms.use_stable_statistics",
        False,
        "Subtract the mean before the variance is computed: slower and steadier.",
        "use_stable_norm_statistics",
        meaning="TensorFlow's own kernels compute them; group norms always subtract the mean first",
    ),
    Option(
        "norms.experimental.distributed_batch_norm_replica_group_size",
        1,
        "Number of replicas that share batch-normalisation statistics in training.",
        "experimental_distributed_batch_norm_replica_group_size",
        effect=RESULTS,
        meaning="groups of so many neighbouring replicas normalise batches by the mean and variance of all "
        "their samples",
    ),
)

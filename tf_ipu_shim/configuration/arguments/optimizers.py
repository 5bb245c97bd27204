"""Effects of the arguments of optimizers."""

from __future__ import annotations

from tf_ipu_shim.configuration.arguments.call import Call, recorded

_OUTLINE = "sharing code between updates changes no value"
_USAGE = "all optimizers train as they should: there is no wrong usage to find"

CALLS = {
    "IpuOptimizerBase": Call(
        "optimizers of `ipu_tensorflow_addons`",
        {
            "outline_apply_gradients": recorded(_OUTLINE, False),
            "outline_apply_gradients_kwargs": recorded(_OUTLINE),
        },
    ),
    "GradientAccumulationOptimizer": Call("`GradientAccumulationOptimizer`", {"verify_usage": recorded(_USAGE, True)}),
    "op_util.accumulate_gradients": Call(
        "`op_util.accumulate_gradients`",
        {"create_accumulator_from_shape": recorded("the sum of a variable is made from its shape in any case", False)},
    ),
    "ALSOptimizer.apply_gradients": Call(
        "`ALSOptimizer.apply_gradients`", {"global_step": recorded("Keras counts `iterations`")}
    ),
}

"""The `set_..._options` methods of Keras models; most of them recompile at the next call."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.keras.options import options
from tf_ipu_shim.frontend.keras.options.replication import ReplicatedMetricReductionMethod
from tf_ipu_shim.frontend.validation import booleans


class OptionSetters:
    """Methods that set a model's `ModelOptions`."""

    _ipu: Any

    @argument_order(1, "experimental_normalize_gradients", until=(2, 5))
    def set_gradient_accumulation_options(
        self,
        gradient_accumulation_steps_per_replica: int | None = None,
        gradient_accumulation_reduction_method: Any = "sum",
        use_v2_gradient_accumulation_optimizer: bool = False,
        **gradient_accumulation_optimizer_kwargs: Any,
    ) -> None:
        """Sets gradient accumulation for models that are not pipelined.

        Args:
            gradient_accumulation_steps_per_replica: mini-batches for each update; None or 1: each one updates.
            gradient_accumulation_reduction_method: `"sum"`, `"mean"` or `"running_mean"`.
            use_v2_gradient_accumulation_optimizer: no effect: both of Graphcore's optimizers compute the same weights.
            **gradient_accumulation_optimizer_kwargs: `dtype` of the accumulators; others choose the memory of state.

        Raises:
            TypeError: a flag is not a bool.
            ValueError: an argument is out of range, or is set by another method.
        """
        gradient_accumulation_reduction_method = options.reduction_from_normalise(
            gradient_accumulation_optimizer_kwargs, gradient_accumulation_reduction_method
        )
        steps = options.check_steps(gradient_accumulation_steps_per_replica)
        keywords = options.checked_accumulation_kwargs(gradient_accumulation_optimizer_kwargs, steps)
        booleans.check_boolean("use_v2_gradient_accumulation_optimizer", use_v2_gradient_accumulation_optimizer)
        note_arguments(
            "Model.set_gradient_accumulation_options",
            use_v2_gradient_accumulation_optimizer=use_v2_gradient_accumulation_optimizer,
            verify_usage=keywords.get("verify_usage"),
            name=keywords.get("name"),
        )
        GradientAccumulationReductionMethod.parse(gradient_accumulation_reduction_method)
        self._set(
            accumulation_steps=steps,
            accumulation_reduction=gradient_accumulation_reduction_method,
            accumulation_kwargs=keywords,
            use_v2_accumulation=use_v2_gradient_accumulation_optimizer,
        )

    @argument_order(3, "experimental_normalize_gradients", until=(2, 5))
    def set_pipelining_options(
        self,
        gradient_accumulation_steps_per_replica: int | None = None,
        device_mapping: list[int] | None = None,
        accumulate_outfeed: bool | None = None,
        gradient_accumulation_reduction_method: Any = "sum",
        **pipelining_kwargs: Any,
    ) -> None:
        """Says how a pipelined model runs.

        Args:
            gradient_accumulation_steps_per_replica: mini-batches for each update.
            device_mapping: the IPU of each stage; stage i on IPU i when left out.
            accumulate_outfeed: whether metrics of the mini-batches of an update are summed on the IPU.
            gradient_accumulation_reduction_method: `"sum"`, `"mean"` or `"running_mean"`.
            **pipelining_kwargs: keyword arguments of `ipu.ops.pipelining_ops.pipeline`.

        Raises:
            TypeError: a flag is not a bool.
            ValueError: an argument is out of range, or is set by another method.
        """
        gradient_accumulation_reduction_method = options.reduction_from_normalise(
            pipelining_kwargs, gradient_accumulation_reduction_method
        )
        steps = options.check_steps(gradient_accumulation_steps_per_replica)
        mapping = options.check_device_mapping(device_mapping)
        options.check_pipelining_kwargs(pipelining_kwargs)
        booleans.check_boolean("accumulate_outfeed", accumulate_outfeed)
        GradientAccumulationReductionMethod.parse(gradient_accumulation_reduction_method)
        self._set(
            pipelining_steps=steps,
            device_mapping=mapping,
            accumulate_outfeed=accumulate_outfeed,
            pipelining_reduction=gradient_accumulation_reduction_method,
            pipelining_kwargs=dict(pipelining_kwargs),
        )

    def set_infeed_queue_options(self, **kwargs: Any) -> None:
        """Sets arguments of the model's infeeds.

        Raises:
            ValueError: the model sets the argument itself, or it cannot be set.
        """
        options.check_infeed_kwargs(kwargs)
        self._set(infeed_kwargs=dict(kwargs))

    @property
    def _infeed_kwargs(self) -> dict[str, Any]:
        """The arguments of `set_infeed_queue_options`, under the name that scripts of SDK 2.4 and newer read."""
        return dict(self._ipu.options.infeed_kwargs)

    @property
    def _outfeed_kwargs(self) -> dict[str, Any]:
        """The arguments of `set_outfeed_queue_options`."""
        return dict(self._ipu.options.outfeed_kwargs)

    def set_outfeed_queue_options(self, **kwargs: Any) -> None:
        """Sets arguments of the model's outfeeds.

        Raises:
            ValueError: the argument cannot be set.
        """
        options.check_outfeed_kwargs(kwargs)
        self._set(outfeed_kwargs=dict(kwargs))

    def set_asynchronous_callbacks(self, asynchronous: bool = False) -> None:
        """Says whether callbacks are called for each mini-batch while a program runs.

        Args:
            asynchronous: if not, or if `accumulate_outfeed` is set, they are called once for each execution, after it
                ends.

        Raises:
            TypeError: it is not a bool.
        """
        booleans.check_boolean("asynchronous", asynchronous)
        self._ipu.options.asynchronous_callbacks = asynchronous  # takes no other program

    def set_replication_options(self, replicated_metric_reduction_method: Any = "NONE") -> None:
        """Sets how metrics of replicas are reduced.

        Raises:
            ValueError: the method is unknown.
        """
        method = ReplicatedMetricReductionMethod.parse(replicated_metric_reduction_method)
        self._ipu.options.metric_reduction = method  # takes no other program

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self._ipu.options, name, value)
        self._ipu.forget_programs()

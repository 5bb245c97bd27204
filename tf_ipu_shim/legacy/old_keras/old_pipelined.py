"""The base class of the pipelined `ipu.keras` models of SDK 1.2 to 2.1."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.legacy.old_keras.old_arguments import chosen_count, remember
from tf_ipu_shim.legacy.old_keras.old_model import OldModel

# Arguments of the constructors that say so.
OPTIONS = (
    "gradient_accumulation_dtype",
    "batch_serialization_iterations",
    "device_mapping",
    "pipeline_schedule",
    "recomputation_mode",
    "forward_propagation_stages_poplar_options",
    "backward_propagation_stages_poplar_options",
    "weight_update_poplar_options",
    "offload_weight_update_variables",
    "replicated_optimizer_state_sharding",
    "offload_activations",
    "offload_gradient_accumulation_buffers",
    "replicated_weight_sharding",
    "offload_weights",
)
OLDER_COUNTS = ("pipeline_depth", "accumulation_count")  # names of gradient_accumulation_count in older SDKs


class Pipelined(OldModel):
    """Base class of both kinds of pipelined models."""

    gradient_accumulation_count: int
    batch_serialization_iterations: int
    _older_kind = "IPU models"

    def _remember_pipeline(self, count: Any, older: dict[str, Any], options: dict[str, Any]) -> None:
        name = type(self).__name__
        count = chosen_count(name, count, older)
        remember(self, gradient_accumulation_count=count, **options)
        mapping = options.pop("device_mapping")
        if mapping is None and self.batch_serialization_iterations > 1:
            mapping = [0] * self._stage_count()  # pieces of a mini-batch stay on one IPU
        set_options = {key: value for key, value in options.items() if value not in (None, False)}
        self._set(
            pipelining_steps=count,
            device_mapping=None if mapping is None else list(mapping),
            pipelining_kwargs=set_options,
        )

    def _is_pipelined(self) -> bool:
        return True

    def _accumulation(self) -> int:
        return self.gradient_accumulation_count * self.batch_serialization_iterations

    def fit(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        *,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = 1,
        callbacks: Any = None,
        shuffle: Any = True,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        accumulate_outfeed: bool = False,
        accumulate_outfeed_dtype: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Trains the model on the IPUs; see `OldModel.fit`.

        Args:
            x: inputs: arrays, tensors, or a dataset of pairs of inputs and targets.
            y: targets, if `x` is not a dataset.
            batch_size: samples of one mini-batch; 32 when left out.
            epochs: number after the last epoch's.
            verbose: 0, 1 or 2.
            callbacks: Keras callbacks; batch callbacks are called once a run.
            shuffle: whether samples of arrays are in a new order each epoch.
            initial_epoch: number of the first epoch.
            steps_per_epoch: steps of an epoch; all the data when left out.
            steps_per_run: steps of one run of the compiled program; the whole epoch when left out.
            prefetch_depth: elements that the infeed holds ready.
            accumulate_outfeed: whether the real device accumulates the values that it sends. The reported value is the
                mean over mini-batches in both cases.
            accumulate_outfeed_dtype: the dtype of those sums.
            **kwargs: refused by name.

        Returns:
            The history, with one entry an epoch.
        """
        _note_outfeed(accumulate_outfeed, accumulate_outfeed_dtype)
        return super().fit(
            x,
            y,
            batch_size=batch_size,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            shuffle=shuffle,
            initial_epoch=initial_epoch,
            steps_per_epoch=steps_per_epoch,
            steps_per_run=steps_per_run,
            prefetch_depth=prefetch_depth,
            **kwargs,
        )

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        *,
        batch_size: int | None = None,
        verbose: Any = 1,
        steps: int | None = None,
        callbacks: Any = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        accumulate_outfeed: bool = False,
        accumulate_outfeed_dtype: Any = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Computes loss and metrics on the IPUs; the arguments of `fit`.

        Returns:
            A list of the loss and the metrics, in the order of `metrics_names`.
        """
        _note_outfeed(accumulate_outfeed, accumulate_outfeed_dtype)
        return super().evaluate(
            x,
            y,
            batch_size=batch_size,
            verbose=verbose,
            steps=steps,
            callbacks=callbacks,
            steps_per_run=steps_per_run,
            prefetch_depth=prefetch_depth,
            **kwargs,
        )


def _note_outfeed(accumulate: bool, dtype: Any) -> None:
    if dtype is not None and not accumulate:
        raise ValueError(
            "accumulate_outfeed_dtype was set without accumulate_outfeed, which it needs: it is the "
            "dtype of sums. Set accumulate_outfeed=True, too."
        )
    note_arguments("PipelineModel.fit", accumulate_outfeed=accumulate, accumulate_outfeed_dtype=dtype)

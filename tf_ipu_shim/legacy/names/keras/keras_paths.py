"""Maps Keras module paths of TensorFlow 1.15 to 2.6 to their paths in Keras 2.

Keras split its large modules later (`layers.core` became a package without `Dropout`). So an old path may lead to
several modules, which together have its names. Other paths have not changed. Checked on `keras` 2.15.0 and `tf_keras`
2.21.0.
"""

from __future__ import annotations

# Path of the time -> modules that have its names now, the one that wins first. Names below a path with one module are
# below that module.
MOVED = {
    "combinations": "testing_infra.test_combinations",
    "distribute.sidecar_evaluator": "utils.sidecar_evaluator",
    "engine.network": "engine.functional",
    "engine.topology": "engine.base_layer engine.input_spec engine.input_layer engine.node",  # Keras, to 2.3
    "initializers.initializers_v2": "initializers.initializers",
    "keras_parameterized": "testing_infra.test_combinations",
    "layers.advanced_activations": "layers.activation layers.activation.softmax",
    "layers.convolutional": "layers.convolutional layers.reshaping layers.pooling layers.convolutional.base_conv "
    "layers.convolutional.base_separable_conv",
    "layers.convolutional_recurrent": "layers.rnn.base_conv_rnn layers.rnn.base_conv_lstm layers.rnn",
    "layers.core": "layers.core layers.regularization layers.reshaping layers.core.tf_op_layer",
    "layers.cudnn_recurrent": "layers.rnn.cudnn_gru layers.rnn.cudnn_lstm layers.rnn.base_cudnn_rnn",
    "layers.dense_attention": "layers.attention layers.attention.base_dense_attention",
    "layers.einsum_dense": "layers.core.einsum_dense",
    "layers.embeddings": "layers.core.embedding",
    "layers.legacy_rnn.rnn_cell_impl": "layers.rnn.legacy_cells layers.rnn.legacy_cell_wrappers",
    "layers.legacy_rnn.rnn_cell_wrapper_impl": "layers.rnn.legacy_cell_wrappers",
    "layers.local": "layers.locally_connected layers.locally_connected.locally_connected_utils",
    "layers.merge": "layers.merging layers.merging.base_merge",
    "layers.multi_head_attention": "layers.attention.multi_head_attention",
    "layers.noise": "layers.noise layers.regularization",
    "layers.normalization": "layers.normalization layers.normalization.batch_normalization_v1 "
    "layers.normalization.layer_normalization layers.normalization.batch_normalization",
    "layers.normalization_v2": "layers.normalization.batch_normalization",
    "layers.pooling": "layers.pooling layers.pooling.base_pooling1d layers.pooling.base_pooling2d "
    "layers.pooling.base_pooling3d layers.pooling.base_global_pooling1d layers.pooling.base_global_pooling2d "
    "layers.pooling.base_global_pooling3d",
    "layers.recurrent": "layers.rnn.lstm_v1 layers.rnn.gru_v1 layers.rnn layers.rnn.dropout_rnn_cell_mixin "
    "layers.rnn.rnn_utils",
    "layers.recurrent_v2": "layers.rnn.lstm layers.rnn.gru layers.rnn.gru_lstm_utils",
    "layers.rnn_cell_wrapper_v2": "layers.rnn.cell_wrappers",
    "layers.wrappers": "layers.rnn.base_wrapper layers.rnn.bidirectional layers.rnn.time_distributed",
    "optimizer_v1": "optimizers.optimizer_v1",
    "optimizer_v2.learning_rate_schedule": "optimizers.schedules.learning_rate_schedule",
    "optimizer_v2.legacy_learning_rate_decay": "optimizers.legacy_learning_rate_decay",
    "optimizer_v2.utils": "optimizers.utils",
    "optimizer_v2": "optimizers.legacy",
    "premade": "premade_models",
    "preprocessing.dataset_utils": "utils.dataset_utils",
    "preprocessing.image_dataset": "utils.image_dataset",
    "preprocessing.text_dataset": "utils.text_dataset",
    "preprocessing.timeseries": "utils.timeseries_dataset",
    "saving.hdf5_format": "saving.legacy.hdf5_format",
    "saving.model_config": "saving.legacy.model_config",
    "saving.save": "saving.legacy.save",
    "saving.saved_model": "saving.legacy.saved_model",
    "saving.saving_utils": "saving.legacy.saving_utils",
    "testing_utils": "testing_infra.test_utils",
    "utils.all_utils": "utils",
    "utils.generic_utils": "utils.generic_utils saving.legacy.serialization saving.object_registration",
}
# Module of the time that is where it was -> modules that have names which it had too.
BESIDE = {
    "engine.base_layer": "engine.input_spec",
    "engine.base_layer_v1": "engine.input_spec engine.node",
    "engine.compile_utils": "utils.losses_utils",
    "legacy_tf_layers.base": "engine.input_spec",
    "models": "models.cloning",
}
# Packages of the time that no package of the same path stands for today.
PACKAGES = ("layers.legacy_rnn",)


def modules(path: str) -> tuple[str, ...]:
    """Returns the modules of Keras 2 that contain the names of an old module.

    Args:
        path: the path of the module, below the package.

    Example:
        >>> modules("layers.embeddings")
        ('layers.core.embedding',)
        >>> modules("engine.training")
        ('engine.training',)
        >>> modules("optimizer_v2.adam")
        ('optimizers.legacy.adam',)
    """
    if path in MOVED:
        return tuple(MOVED[path].split())
    parent, _, name = path.rpartition(".")
    while parent:
        targets = MOVED.get(parent, "").split()
        if len(targets) == 1:
            return (f"{targets[0]}.{name}",)
        parent, _, last = parent.rpartition(".")
        name = f"{last}.{name}"
    return (path,)


def is_moved(path: str) -> bool:
    """Returns whether Keras has moved a module, or a package it was in.

    Example:
        >>> is_moved("engine.training"), is_moved("layers.core")
        (False, True)
    """
    return path in PACKAGES or modules(path) != (path,)

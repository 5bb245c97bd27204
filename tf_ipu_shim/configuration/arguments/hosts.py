"""Effects of the arguments of host-side calls: devices, processes, measurements."""

from __future__ import annotations

from tf_ipu_shim.configuration.arguments.call import Call, recorded

_HOST = "there is no op of Graphcore's that a CPU device would run"
_OPTIONS = "a dataset's options always count"
_PROFILES = "no model is run to measure it; tf_ipu_shim.memory_report() has the memory"
_FILES = "a file of exported variables is the same for both"

CALLS = {
    "configure_ipu_system": Call("`configure_ipu_system`", {"device": recorded(_HOST, "cpu")}),
    "get_num_of_ipus_in_device": Call("`get_num_of_ipus_in_device`", {"device": recorded(_HOST, "cpu")}),
    "reset_ipu_seed": Call("`reset_ipu_seed`", {"cpu_device": recorded(_HOST, "cpu")}),
    "dataset_benchmark": Call(
        "`dataset_benchmark`",
        {"apply_debug_options": recorded(_OPTIONS, True), "apply_options": recorded(_OPTIONS)},
    ),
    "export_dataset_to_file": Call(
        "`export_dataset_to_file`",
        {"apply_debug_options": recorded(_OPTIONS, True), "apply_options": recorded(_OPTIONS)},
    ),
    "pipeline_cfg": Call(
        "`pipeline_cfg` of the SavedModel tool",
        {
            "ipu_model": recorded("all IPUs are simulated", True),
            "profiling_root_dir": recorded(_PROFILES, "profiling"),
            "profiling_enable": recorded(_PROFILES, False),
            "fine_tune_iter": recorded("the stages that are found first are the best of these estimates", 5),
        },
    ),
    "AutoPipelineImpl": Call(
        "`AutoPipelineImpl` of the SavedModel tool",
        {
            name: recorded("which stage a node is in does not depend on it", default)
            for name, default in (
                ("matmul_amp", 0.6),
                ("matmul_partial_type", "float"),
                ("conv_amp", 0.6),
                ("conv_partial_type", "float"),
            )
        },
    ),
    "export_variables": Call("`export_variables` and `import_variables`", {"is_input": recorded(_FILES, True)}),
    "horovod.DistributedOptimizer": Call(
        "`horovod.tensorflow.DistributedOptimizer` and `DistributedGradientTape`",
        {"sparse_as_dense": recorded("gradients of embeddings are always made dense", True)},
    ),
    "HorovodBasics": Call("`HorovodBasics`", {"library_path": recorded("there is no library of Horovod's")}),
    "PopDistExtendedV1": Call(
        "`PopDistExtendedV1`",
        {"cluster_resolver": recorded("the launcher's environment names the processes")},
    ),
}

"""Messages of Graphcore's `config_pb2`: the configuration of the IPU system.

`ipu.config.IPUConfig` and the older functions of `ipu.utils` both fill an `IpuOptions`; `runtime.devices` reads it.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import option_flag_pb2 as _option_flag
from tf_ipu_shim.messages import schema as _schema
from tf_ipu_shim.messages import threestate_pb2 as _threestate

FILE = "tensorflow/compiler/plugin/poplar/driver/config.proto"

globals().update(
    _schema.load(
        FILE,
        "xla.poplarplugin",
        """
        enum IpuSelectionOrder { AUTO = 0; ZIGZAG = 1; SNAKE = 2; HOOF = 3; }
        enum IpuExecutionProfileType { NO_PROFILE = 0; DEVICE_PROFILE = 1; IPU_PROFILE = 2; TILE_PROFILE = 3; }
        enum IpuDeviceConnectionType { ALWAYS = 0; ON_DEMAND = 1; NEVER = 2; PRE_COMPILE = 3; }
        enum IpuSchedulingAlgorithm {
          CHOOSE_BEST = 0; CLUSTERING = 1; POST_ORDER = 2; LOOK_AHEAD = 3; SHORTEST_PATH = 4;
        }
        enum StochasticRoundingBehaviour {
          StochasticRounding_Off = 0; StochasticRounding_On = 1; StochasticRounding_ReplicaIdenticalOnly = 2;
        }
        enum IpuOptionsCreator { IPU_UTILS = 0; IPU_CONFIG = 1; }

        message IpuOptions {
          message IpuModelConfig {
            bool compile_ipu_code = 1;
            int64 tiles_per_ipu = 2;             // 0: the chip's own
            string ipu_model_version = 3;        // ipu1, ipu2, ipu21
          }
          message DeviceConfig {                 // one TensorFlow device
            oneof selection {
              uint64 auto_count = 1;             // the first free device with so many IPUs
              uint64 cfg_index = 2;              // the device with this Poplar id
            }
          }
          message Profiling {
            bool enable_compilation_trace = 1;
            bool enable_io_trace = 2;
            IpuExecutionProfileType execution_trace_type = 3;
            bool enable_poplar_reports_text = 4;
            bool enable_poplar_reports_cbor = 5;
            bool enable_poplar_graph = 6;
            bool enable_ipu_trace_events = 7;
            int64 report_every_nth_execution = 8;
            int64 max_report_size = 9;           // bytes
            string report_directory = 10;
            repeated PoplarOptionFlag graph_options = 11;
            repeated PoplarOptionFlag execution_options = 12;
            bool auto_assign_report_subdirectories = 13;
          }
          message FloatingPointBehaviour {
            bool flags_set = 1;
            bool inv = 2;
            bool div0 = 3;
            bool oflo = 4;
            StochasticRoundingBehaviour esr = 5;
            bool nanoo = 6;
          }
          message SpeedSizeConfig {
            bool allow_recompute = 1;
            IpuSchedulingAlgorithm scheduler_selection = 2;
            bool always_rearrange_copies_on_the_host = 3;
            bool disable_graph_outlining = 4;
            bool merge_infeed_io_copies = 5;
          }
          message AlgebraicSimplifierConfig {
            bool enable_fast_math = 1;
            bool enable_dot_strength = 2;
          }
          message KeyId {
            uint64 key = 1;
            int64 start_id = 2;
          }
          message FeedKeyId {
            string feed_name = 1;
            KeyId key_id = 2;
          }
          message VerifiedTransfers {
            bool enabled = 1;
            KeyId inputs = 2;
            KeyId input_parameters = 3;
            KeyId outputs = 4;
            KeyId output_parameters = 5;
            KeyId checkpoint_in = 6;
            KeyId checkpoint_out = 7;
            repeated FeedKeyId infeeds = 8;
            repeated FeedKeyId outfeeds = 9;
          }

          IpuOptionsCreator creator_id = 1;
          repeated DeviceConfig device_config = 2;
          IpuModelConfig ipu_model_config = 3;
          Profiling profiling = 4;
          FloatingPointBehaviour floating_point_behaviour = 5;
          SpeedSizeConfig speed_size_config = 6;
          AlgebraicSimplifierConfig algebraic_simplifier_config = 7;
          VerifiedTransfers verified_transfers = 8;

          IpuSelectionOrder selection_order = 10;
          IpuDeviceConnectionType device_connection_type = 11;
          string ipu_version = 12;               // the target to compile for without a device
          bool enable_remote_buffers_without_device = 13;
          string serialization_folder = 14;

          repeated PoplarOptionFlag compilation_options = 20;
          repeated PoplarOptionFlag convolution_options = 21;
          repeated PoplarOptionFlag matmul_options = 22;
          repeated PoplarOptionFlag pooling_options = 23;
          repeated PoplarOptionFlag slice_options = 24;
          repeated PoplarOptionFlag gcl_options = 25;

          bool clear_matmul_pass_type = 30;
          bool use_stable_norm_statistics = 31;
          int64 experimental_distributed_batch_norm_replica_group_size = 32;
          int64 num_io_tiles = 33;
          bool place_ops_on_io_tiles = 34;
          double io_tile_available_memory_proportion = 35;
          int64 multi_replica_process_index = 36;
          int64 multi_replica_process_count = 37;
          bool enable_experimental_remote_buffer_embedding = 39;
          bool enable_experimental_prng_stability = 40;

          bool prefetch_data_streams = 50;
          bool enable_multi_slice_combiner = 51;
          bool enable_matmul_combiner = 52;
          int64 max_cross_replica_sum_buffer_size = 55;
          int64 max_reduce_scatter_buffer_size = 56;
          int64 max_inter_ipu_copies_buffer_size = 57;
          int64 max_send_recv_cluster_size = 58;
          int64 max_reduce_many_buffer_size = 59;
          int64 max_all_gather_buffer_size = 60;
          int64 minimum_remote_tensor_size = 61;
          ThreeState remote_buffer_merging_mode = 62;
          bool disable_gather_simplifier = 63;
          int64 triangular_solve_expander_block_size = 64;
          int64 cholesky_block_size = 65;
          bool enable_fast_math = 66;
          bool enable_dynamic_slice_replacement = 67;
          int64 max_scheduler_lookahead_depth = 68;
          int64 max_scheduler_search_space_size = 69;
          bool disable_graph_convolution_caching = 70;
        }
        """,
        imports=(_option_flag.FILE, _threestate.FILE),
    )
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no message, enum or enum value {name!r}.")

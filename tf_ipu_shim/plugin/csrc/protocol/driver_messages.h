// The messages between the plugin's ops and the driver in Python. Python declares the same fields in
// `messages/driver_pb2.py`, and the same calls in `runtime/driver.py`; a test compares them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/first_use.h"
#include "protocol/wire.h"

namespace tf_ipu_shim {

template <>
struct Wire<Use> {
  static constexpr WireType kType = WireType::kVarint;
  static std::string Kind() { return "tf_ipu_shim.DeviceUse.Use"; }
  static bool IsDefault(Use value) { return value == Use::kRun; }
  static bool Read(WireCursor* from, Use* value, std::string* problem) {
    int32_t number;
    if (!Wire<int32_t>::Read(from, &number, problem)) return false;
    *value = static_cast<Use>(number);
    return number >= static_cast<int32_t>(Use::kRun) && number <= static_cast<int32_t>(Use::kUnattached);
  }
  static bool Append(Use value, std::string* bytes) {
    return Wire<int32_t>::Append(static_cast<int32_t>(value), bytes);
  }
};

struct Nothing {
  static constexpr char kName[] = "tf_ipu_shim.Nothing";

  template <class Self, class Visitor>
  static void Fields(Self&, Visitor&) {}
};

struct DeviceQuestion {
  static constexpr char kName[] = "tf_ipu_shim.DeviceQuestion";
  int32_t ordinal = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "ordinal", self.ordinal);
  }
};

struct UseQuestion {
  static constexpr char kName[] = "tf_ipu_shim.UseQuestion";
  int32_t ordinal = 0;
  bool attach = false;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "ordinal", self.ordinal);
    visit(2, "attach", self.attach);
  }
};

struct DeviceUse {
  static constexpr char kName[] = "tf_ipu_shim.DeviceUse";
  Use use = Use::kRun;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "use", self.use);
  }
};

struct DeviceSize {
  static constexpr char kName[] = "tf_ipu_shim.DeviceSize";
  int64_t ipus = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "ipus", self.ipus);
  }
};

struct SeedOrder {
  static constexpr char kName[] = "tf_ipu_shim.SeedOrder";
  int32_t ordinal = 0;
  int64_t seed = 0;
  bool identical_replicas = false;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "ordinal", self.ordinal);
    visit(2, "seed", self.seed);
    visit(3, "identical_replicas", self.identical_replicas);
  }
};

struct SyntheticQuestion {
  static constexpr char kName[] = "tf_ipu_shim.SyntheticQuestion";
  int64_t category = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "category", self.category);
  }
};

struct YesOrNo {
  static constexpr char kName[] = "tf_ipu_shim.YesOrNo";
  bool yes = false;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "yes", self.yes);
  }
};

struct ConfigureOrder {
  static constexpr char kName[] = "tf_ipu_shim.ConfigureOrder";
  ByteString options;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "options", self.options);
  }
};

struct Configurations {
  static constexpr char kName[] = "tf_ipu_shim.Configurations";
  std::vector<ByteString> options;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "options", self.options);
  }
};

// An embedded application to start.
struct ApplicationStart {
  static constexpr char kName[] = "tf_ipu_shim.ApplicationStart";
  std::string engine, file;
  int64_t inputs = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "engine", self.engine);
    visit(2, "file", self.file);
    visit(3, "inputs", self.inputs);
  }
};

// A tensor that goes to, or comes from, an application.
struct ApplicationTensor {
  static constexpr char kName[] = "tf_ipu_shim.ApplicationTensor";
  int32_t type = 0;
  std::vector<int64_t> shape;
  int32_t feed = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "type", self.type);
    visit(2, "shape", self.shape);
    visit(3, "feed", self.feed);
  }
};

// The started application: a call's input tensors, its results, and their outfeeds.
struct ApplicationStarted {
  static constexpr char kName[] = "tf_ipu_shim.ApplicationStarted";
  std::vector<ApplicationTensor> infeeds, outfeeds;
  std::vector<std::string> outfeed_ids;
  int32_t replicas = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "infeeds", self.infeeds);
    visit(2, "outfeeds", self.outfeeds);
    visit(3, "outfeed_ids", self.outfeed_ids);
    visit(4, "replicas", self.replicas);
  }
};

// The values of this instance's replicas for a collective over all instances.
struct ReplicaValues {
  static constexpr char kName[] = "tf_ipu_shim.ReplicaValues";
  std::string name;
  int32_t type = 0;
  std::vector<int64_t> shape;
  ByteString values;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "name", self.name);
    visit(2, "type", self.type);
    visit(3, "shape", self.shape);
    visit(4, "values", self.values);
  }
};

struct AllReplicaValues {
  static constexpr char kName[] = "tf_ipu_shim.AllReplicaValues";
  ByteString values;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "values", self.values);
  }
};

struct CompileError {
  static constexpr char kName[] = "tf_ipu_shim.CompileError";
  int64_t call = 0;
  std::string text;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "call", self.call);
    visit(2, "text", self.text);
  }
};

struct CompileErrorText {
  static constexpr char kName[] = "tf_ipu_shim.CompileErrorText";
  std::string text;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "text", self.text);
  }
};

// A call: Python's name of its handler, what that is asked, what it answers.
template <class Asked, class Answered>
struct DriverCall {
  using Request = Asked;
  using Answer = Answered;
};

struct AttachCall : DriverCall<UseQuestion, DeviceUse> {
  static constexpr char kHandler[] = "attach";
};
struct ConfigureCall : DriverCall<ConfigureOrder, Nothing> {
  static constexpr char kHandler[] = "configure";
};
struct ResetDevicesCall : DriverCall<Nothing, Nothing> {
  static constexpr char kHandler[] = "reset_devices";
};
struct ResetSeedCall : DriverCall<SeedOrder, Nothing> {
  static constexpr char kHandler[] = "reset_seed";
};
struct ModelUsedCall : DriverCall<Nothing, YesOrNo> {
  static constexpr char kHandler[] = "model_used";
};
struct ConfigurationCall : DriverCall<Nothing, Configurations> {
  static constexpr char kHandler[] = "configuration";
};
struct NumIpusCall : DriverCall<DeviceQuestion, DeviceSize> {
  static constexpr char kHandler[] = "num_ipus";
};
struct StartApplicationCall : DriverCall<ApplicationStart, ApplicationStarted> {
  static constexpr char kHandler[] = "start_application";
};
struct GatherInstancesCall : DriverCall<ReplicaValues, AllReplicaValues> {
  static constexpr char kHandler[] = "gather_instances";
};
struct ExplainCompileErrorCall : DriverCall<CompileError, CompileErrorText> {
  static constexpr char kHandler[] = "explain_compile_error";
};
struct SyntheticDataCall : DriverCall<SyntheticQuestion, YesOrNo> {
  static constexpr char kHandler[] = "synthetic_data";
};

}  // namespace tf_ipu_shim

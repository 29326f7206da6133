// WeightStream: weights on their way between the processes of a cluster. The policy's process
// publishes them in shared memory, or in parts through sockets; the process of the algorithm passes
// them on to the receivers.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "actors/protocol/train.h"
#include "actors/roles/weight_assembly.h"
#include "actors/runtime/actor_ref.h"
#include "engine/base/json/fields.h"

namespace troupe::algorithms {

/// automatic: where the system has any.
enum class SharedMemoryUse { automatic, off };
constexpr std::array<std::string_view, 2> names_of(SharedMemoryUse) {
  return {"auto", "off"};
}

/// The section `weights` of a run file.
struct WeightsConfig {
  actors::protocol::WeightCoding format = actors::protocol::WeightCoding::f32;
  std::int64_t chunk_mib = 64;
  SharedMemoryUse shared_memory = SharedMemoryUse::automatic;

  static void each_field(auto& self, auto&& field) {
    field("format", self.format,
          "cluster, mpirun: how weights are sent through sockets: f32; bf16, 2 bytes where the "
          "rollouts "
          "compute in bf16 (train.dtype); delta, the difference to the version that the receiver "
          "has; never changes results");
    field("chunk_mib", self.chunk_mib, Range{1, 1024},
          "cluster, mpirun: weights are sent through sockets in parts of this many MiB of f32 "
          "values");
    field("shared_memory", self.shared_memory,
          "cluster, mpirun: auto, processes of one host read weights in shared memory, and sockets "
          "are used "
          "where that fails; off: always sockets");
  }
};

class WeightStream {
 public:
  using Address = transports::Address;
  using Weights = actors::protocol::Weights;
  using Receiver = actors::ActorRef<actors::protocol::LoadWeights, actors::protocol::MapWeights>;
  using Source = actors::ActorRef<actors::protocol::Publish, actors::protocol::ReadWeights>;

  struct Options {
    WeightsConfig config;
    std::size_t values = 1;  ///< trained values of the model, which bound the memory
    bool bf16 = false;       ///< the receivers compute in bf16
    std::chrono::steady_clock::duration timeout = std::chrono::hours(1);
  };
  explicit WeightStream(Options options) : options_(std::move(options)) {}

  /// The policy's weights as `version`. Throws Failure: the errors of the policy, bad_input for
  /// another number of values than the model's, corrupt.
  actors::Task<Weights> fetch(Source policy, std::uint64_t version);
  /// Brings the values of `weights`, which outlive the task, to a receiver, for a PrepareWeights
  /// without values. Throws Failure.
  actors::Task<void> send(Receiver to, const Weights& weights);
  /// The receiver uses these weights from now on: the next delta refers to them.
  void committed(const Address& receiver, const Weights& weights);
  /// Another process has the receiver's place: no delta refers to what the former one had.
  void forget(const Address& receiver) { used_.erase(to_string(receiver)); }

  /// The policy's weights are rounded to bf16.
  bool rounds() const {
    return options_.bf16 && options_.config.format != actors::protocol::WeightCoding::f32;
  }
  /// Bytes of values that went through sockets, in both directions.
  std::uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  bool deltas() const { return options_.config.format == actors::protocol::WeightCoding::delta; }
  /// Values of a part.
  std::size_t part_values() const {
    return static_cast<std::size_t>(options_.config.chunk_mib) * (1u << 20) / sizeof(float);
  }
  bool mapped(Weights& weights);
  actors::Task<SharedArray<float>> read(Source policy, std::uint64_t version);
  actors::protocol::ReadWeights part(std::uint64_t version, std::size_t first,
                                     std::uint64_t base) const;
  void use_sockets(const std::string& who, const Error& why);

  Options options_;
  std::uint64_t sent_bytes_ = 0;
  actors::roles::BaseWeights fetched_;                      ///< deltas: the newest ones
  std::map<std::string, actors::roles::BaseWeights> used_;  ///< deltas: by each receiver
  std::set<std::string> apart_;  ///< do not reach the shared memory of the others
};

}  // namespace troupe::algorithms

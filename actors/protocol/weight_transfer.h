// Messages that bring weights from the policy's process to those of the receivers, in parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "engine/base/memory/shared_array.h"
#include "engine/base/memory/shared_memory.h"

namespace troupe::actors::protocol {

/// How the values of a part are written; each is exact (actors/roles/weight_coding.h).
enum class WeightCoding { f32, bf16, delta };
constexpr std::array<std::string_view, 3> names_of(WeightCoding) {
  return {"f32", "bf16", "delta"};
}

/// Values [first, first + count) of the array of Weights.
struct WeightPart {
  std::uint64_t version = 0;
  std::uint64_t first = 0, count = 0;
  WeightCoding coding = WeightCoding::f32;
  std::uint64_t base = 0;  ///< delta: the version that the receiver has
  SharedArray<std::byte> bytes;
  std::uint64_t checksum = 0;  ///< of the decoded values (engine/checkpoint/manifest.h)
};
inline auto fields(WeightPart& p) {
  return std::tie(p.version, p.first, p.count, p.coding, p.base, p.bytes, p.checksum);
}

/// Replies with a part of the weights that were published last for readers of other processes. It
/// is written as bf16 where `coding` is delta and the values of `base` are not there any more.
/// Errc::bad_input: another version was published, or values that it does not have.
struct ReadWeights {
  using Reply = WeightPart;
  static constexpr std::string_view name = "read_weights";
  std::uint64_t version = 0;
  std::uint64_t first = 0, count = 0;
  WeightCoding coding = WeightCoding::f32;
  std::uint64_t base = 0;
};
inline auto fields(ReadWeights& m) {
  return std::tie(m.version, m.first, m.count, m.coding, m.base);
}

/// Stores a part for the PrepareWeights of its version. Parts arrive in the order of their values;
/// one that begins with the first value replaces everything that was stored. Errors: another order,
/// more values than the model's, or a base that the receiver does not have (Errc::bad_input); bytes
/// that are damaged (corrupt).
struct LoadWeights {
  using Reply = void;
  static constexpr std::string_view name = "load_weights";
  WeightPart part;
};
inline auto fields(LoadWeights& m) {
  return std::tie(m.part);
}

/// Maps the values of a version for its PrepareWeights. The errors of SharedMemory::open().
struct MapWeights {
  using Reply = void;
  static constexpr std::string_view name = "map_weights";
  std::uint64_t version = 0;
  SharedMemoryName memory;
};
inline auto fields(MapWeights& m) {
  return std::tie(m.version, m.memory);
}

}  // namespace troupe::actors::protocol

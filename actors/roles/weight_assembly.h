// WeightAssembly: the values of a version while they arrive in parts, or as shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "actors/protocol/weight_transfer.h"
#include "engine/base/errors/error.h"

namespace troupe::actors::roles {

/// Values that a receiver has, which a delta refers to.
struct BaseWeights {
  std::uint64_t version = 0;
  SharedArray<float> values;  ///< none: no delta is understood
};

/// The part of `values` that `request` asks for, as bf16 if it is a delta and `base` is another
/// version. Errc::bad_input if they do not have it.
Result<protocol::WeightPart> weight_part(const protocol::ReadWeights& request,
                                         std::span<const float> values, const BaseWeights& base);

class WeightAssembly {
 public:
  /// `count`: values of the model, which bounds the memory.
  explicit WeightAssembly(std::size_t count) : count_(count) {}

  /// The errors of LoadWeights.
  Result<> load(const protocol::WeightPart& part, const BaseWeights& base);
  /// The errors of MapWeights.
  Result<> map(const protocol::MapWeights& message);
  /// Returns all values of a version and forgets them. Errc::bad_input: parts are missing.
  Result<SharedArray<float>> take(std::uint64_t version);

 private:
  void begin(std::uint64_t version);

  std::size_t count_, filled_ = 0;
  std::uint64_t version_ = 0;
  SharedArray<float> values_;
  std::span<float> into_;
};

}  // namespace troupe::actors::roles

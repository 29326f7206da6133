// OtherRanks: what a service tells the other ranks that share its decoder (models::ModelPart). Each
// of them has a generator of its own, which gets the same calls in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/generate/generator.h"
#include "engine/serving/pooling_batch.h"

namespace troupe::engine::serving {

/// From what another rank makes those members of a Request that are functions or objects.
struct RequestSource {
  bool skips_special = true;  ///< Request::decode leaves out special tokens
  std::shared_ptr<const std::string> constraint = nullptr;  ///< Request::constraint
};

/// All functions are called by the thread of the service. They throw where a rank cannot be
/// reached.
class OtherRanks {
 public:
  virtual ~OtherRanks() = default;

  /// Before the functions of Generator with these names. `sampled`: GeneratorStats before the step.
  virtual void submit(const generate::Request& request, const RequestSource& source) = 0;
  virtual void cancel(std::uint64_t id) = 0;
  virtual void step(std::int64_t sampled) = 0;
  /// Before pooled_values().
  virtual void pool(const PoolingBatch& batch) = 0;
  /// Ends all ranks: this one failed and cannot continue with them.
  virtual void abort(const std::string& why) noexcept = 0;
};

}  // namespace troupe::engine::serving

// ArenaReader: another thread that reads weights and optimizer state while training continues: a
// checkpoint that is being written.
#pragma once

#include <cstdint>

namespace troupe::engine::nn {

class ArenaReader {
 public:
  virtual ~ArenaReader() = default;
  /// Waits until it has read value `begin` of the arena of the trained parameters, with its moments
  /// and average; returns the end of the values from `begin` on that it has read. Throws Failure
  /// (Errc::timeout) if it reads none for ten minutes.
  virtual std::int64_t wait_for(std::int64_t begin) = 0;
  /// The same for all values, on every rank. Collective.
  virtual void wait_for_all() = 0;
};

}  // namespace troupe::engine::nn

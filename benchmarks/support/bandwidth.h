// Memory bandwidth, measured by passes over buffers larger than the caches: the ceiling of
// memory-bound operations.
#pragma once

#include <cstddef>
#include <memory>

namespace troupe::benchmarks {

/// Bandwidth of `threads` threads in GB/s (1e9 bytes/s), the best of three passes per call.
/// Allocates its memory at the first call.
class Bandwidth {
 public:
  /// `small`: buffers of 1 MB, for tests of the programs.
  explicit Bandwidth(int threads, bool small = false);
  ~Bandwidth();

  double read();    ///< 512 MiB are read
  double update();  ///< a[i] = a[i] * s + b[i], 256 MiB each: bytes of two reads and a write
  double copy();  ///< 256 MiB by memcpy; bytes copied, each of which is read once and written once

 private:
  template <class Pass>
  double best(double bytes, Pass pass);
  void take();

  int threads_;
  std::size_t bytes_;
  std::unique_ptr<std::byte, void (*)(std::byte*)> memory_;
};

}  // namespace troupe::benchmarks

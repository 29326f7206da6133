// How fast memory is, by plain passes over buffers that no cache holds: the ceiling of everything
// that is not made of products.
#pragma once

#include <cstddef>
#include <memory>

namespace troupe::benchmarks {

/// GB/s (1e9 bytes) of `threads` threads, the best of three passes each time. Memory is taken at
/// the first call.
class Bandwidth {
 public:
  /// `small`: buffers of a megabyte, for tests of the programs.
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

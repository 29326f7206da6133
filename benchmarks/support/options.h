// The command line that all benchmarks share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/support/shapes.h"
#include "engine/base/error.h"
#include "engine/ops/device.h"

namespace troupe::benchmarks {

struct Options {
  ModelShape shape;
  engine::ops::Precision precision = engine::ops::Precision::f32;
  int threads = 1;
  std::string isa;         ///< ops::CpuOptions; empty: the best that the processor has
  std::int64_t batch = 0;  ///< sequences; 0 was replaced by what the program takes for this shape
  int rounds = 5;
  bool peer = false;
  bool table = false;              ///< gemm: the products of results.md too
  bool int8 = false;               ///< decode, generate: weights are read in 8 bits
  std::vector<std::string> words;  ///< tokenize: a folder and texts

  bool bf16() const { return precision == engine::ops::Precision::bf16; }
  const char* dtype() const { return bf16() ? "bf16" : "f32"; }
  /// GB of all matrices, the head once, as a pass of generation reads them.
  double weights_read() const {
    return 1e-9 * static_cast<double>(shape.weights() * (int8 ? 1 : bf16() ? 2 : 4));
  }
  bool tiny() const { return shape.name == "tiny"; }
};

/// What a program takes beside the common flags.
struct Takes {
  std::int64_t batch = 0;     ///< without --batch; 0: the shape's own
  std::int64_t multiple = 1;  ///< of which --batch must be one
  bool table = false, words = false, int8 = false;
};

/// The fast one, with these threads and instructions. Failure where the processor lacks them.
std::unique_ptr<engine::ops::Device> make_device(const Options& options);

/// `words` without the program's own name. Errc::usage, in one sentence.
Result<Options> read_options(std::span<const char* const> words, const Takes& takes);

}  // namespace troupe::benchmarks

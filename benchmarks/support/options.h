// Command-line options shared by all benchmarks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/support/shapes.h"
#include "engine/base/errors/error.h"
#include "engine/ops/device.h"

namespace troupe::benchmarks {

struct Options {
  ModelShape shape;
  engine::ops::Precision precision = engine::ops::Precision::f32;
  int threads = 1;
  std::string isa;             ///< ops::CpuOptions; empty: the best of the processor
  std::int64_t batch = 0;      ///< sequences; 0 is replaced by the program's default for the shape
  std::int64_t sequence = 0;   ///< tokens per sequence; 0: the shape's
  std::int64_t head_size = 0;  ///< attention: 0: the shape's
  int rounds = 5;
  bool peer = false;
  bool table = false;              ///< gemm: also the products of results.md
  bool int8 = false;               ///< decode, generate: int8 weights
  std::int64_t vocabulary = 0;     ///< train_step: 0: the shape's
  std::int64_t kept = 0;           ///< train_step: tokens of each sampling mask; 0: no masks
  std::vector<std::string> words;  ///< tokenize: a folder and texts

  bool bf16() const { return precision == engine::ops::Precision::bf16; }
  const char* dtype() const { return bf16() ? "bf16" : "f32"; }
  /// GB of all matrices, the head once, as one pass of generation reads them.
  double weights_read() const {
    return 1e-9 * static_cast<double>(shape.weights() * (int8 ? 1 : bf16() ? 2 : 4));
  }
  bool tiny() const { return shape.name == "tiny"; }
};

/// Options that a program accepts besides the common flags.
struct Takes {
  std::int64_t batch = 0;     ///< default of --batch; 0: the shape's
  std::int64_t multiple = 1;  ///< --batch must be a multiple of this
  bool table = false, words = false, int8 = false, head_size = false, masks = false;
};

/// Creates the CPU device with these threads and instructions. Failure if the processor lacks them.
std::unique_ptr<engine::ops::Device> make_device(const Options& options);

/// Parses `words`, the arguments without the program's name. Errc::usage.
Result<Options> read_options(std::span<const char* const> words, const Takes& takes);

}  // namespace troupe::benchmarks

// RotaryTable: cosines and sines of the rotary embedding (Su et al. 2021, arXiv:2104.09864), grown
// as positions ask for them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/nn/forward_context.h"
#include "engine/ops/device.h"

namespace troupe::engine::nn {

/// How far each pair of channels turns a position. Two kinds of scaling depend on how long a
/// sequence is: then every row of a sequence turns by its length, as transformers does it, and a
/// generator whose sequence grows computes its keys again (models::Decoder).
struct RotarySpec {
  std::vector<double> inverse_frequencies;  ///< [K/2] radians per position, scaling already
                                            ///< applied; 0: a pair that does not turn
  double factor =
      1;  ///< multiplies cosines and sines of the pairs that turn (YaRN's attention factor)
  std::int64_t trained = 0;  ///< up to this length the frequencies above hold; 0: for every length
  std::vector<double>
      longer;  ///< [K/2] those of longer sequences (LongRoPE, Ding et al. 2024, arXiv:2402.13753)
  /// Where there are none of `longer`: base multiplied by (stretch * length / trained - (stretch -
  /// 1))^(d / (d - 2)), d channels that turn ("dynamic NTK").
  double stretch = 1;

  /// Which set of frequencies a sequence of this length has; equal numbers, equal sets.
  std::int64_t set_of(std::int64_t length) const;
  /// The frequencies of one set, [K/2].
  std::vector<double> frequencies(std::int64_t set) const;
};

class RotaryTable {
 public:
  RotaryTable(ops::Device& device, RotarySpec spec);
  RotaryTable(ops::Device& device, std::vector<double> inverse_frequencies)
      : RotaryTable(device, RotarySpec{std::move(inverse_frequencies)}) {}

  /// Makes positions 0 .. count-1 available to sequences of the first set.
  void reserve(std::int64_t count);
  /// Makes every row of a pass available.
  void reserve(const Pass& pass);
  /// Turns every head of x [T, heads*K] in place, each row by its position and the length of its
  /// sequence, or back. The pass is reserved.
  void turn(Tensor& x, const Pass& pass, int heads, bool inverse) const;

  const Tensor& cos() const { return cos_; }  ///< [P, K/2]; of the first set, row p is position p
  const Tensor& sin() const { return sin_; }

 private:
  struct Block {
    std::int64_t first = 0, rows = 0;
  };
  void build();

  ops::Device* device_;
  RotarySpec spec_;
  std::map<std::int64_t, Block> blocks_;  // by set
  Tensor cos_, sin_;
};

}  // namespace troupe::engine::nn

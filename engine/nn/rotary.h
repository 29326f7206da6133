// RotaryTable: cosines and sines of the rotary embedding (Su et al. 2021, arXiv:2104.09864), grown
// as positions require.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/nn/forward_context.h"
#include "engine/ops/device.h"

namespace troupe::engine::nn {

/// Rotation angle per position of each pair of channels. Two kinds of scaling depend on the length
/// of the sequence: all its rows are then rotated by its current length, as in transformers, and a
/// generator recomputes its keys as it grows (models::Decoder).
struct RotarySpec {
  /// [K/2] radians per position, scaling applied; 0: the pair is not rotated.
  std::vector<double> inverse_frequencies;
  /// Multiplies cosines and sines of the rotated pairs (YaRN's attention factor).
  double factor = 1;
  /// Longest sequence that uses inverse_frequencies; 0: all sequences do.
  std::int64_t original_length = 0;
  /// [K/2] of longer sequences (LongRoPE, Ding et al. 2024, arXiv:2402.13753).
  std::vector<double> long_inverse_frequencies;
  /// Dynamic NTK, where there are no long_inverse_frequencies: the base is multiplied by
  /// (ntk_factor * length / original_length - (ntk_factor - 1))^(d / (d - 2)), d rotated channels.
  double ntk_factor = 1;

  /// Number of the set of frequencies for a sequence of this length; equal numbers, equal sets.
  std::int64_t frequency_set(std::int64_t length) const;
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
  void reserve(const ForwardContext& pass);
  /// Rotates every head of x [T, heads*K] in place, each row by its position and the length of its
  /// sequence; `inverse` rotates back. The pass must be reserved.
  void apply(Tensor& x, const ForwardContext& pass, int heads, bool inverse) const;

  const Tensor& cos() const { return cos_; }  ///< [P, K/2]; in the first set, row p is position p
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

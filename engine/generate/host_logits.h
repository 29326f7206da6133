// HostLogits: whole rows of logits on the host, for sampling and for the most likely tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/models/decoder.h"

namespace troupe::engine::generate {

/// The n largest logits as log-probabilities at temperature 1; ties by id. `lse`: log of the sum
/// of exp(logits).
std::vector<Alternative> top_alternatives(std::span<const float> logits, float lse, int count);

/// 1 for the largest logit; among equals the smaller id comes first.
std::int32_t rank_of(std::span<const float> logits, std::int32_t id);

/// Rows of logits [M, V/tp] on the host. Ranks of a tensor-parallel group gather whole rows first,
/// so that every rank samples the same tokens.
class HostLogits {
 public:
  HostLogits(models::Decoder& decoder, const Tensor& logits)
      : device_(decoder.device()),
        logits_(logits),
        width_(static_cast<std::size_t>(decoder.spec().vocabulary)),
        gathered_(decoder.tp() != nullptr ? decoder.head().gather_logits(logits)
                                          : std::vector<float>()) {}

  /// Number of rows to compute at a time: 64 MB, but at least one row.
  static std::size_t block_rows(const models::DecoderSpec& spec) {
    return static_cast<std::size_t>(
        std::max<std::int64_t>(1, (std::int64_t{1} << 24) / spec.vocabulary));
  }

  /// Calls visit(i, row i [V]) for several rows at once. When all are done, rethrows the exception
  /// of the first row that threw.
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(logits_.shape()[0]));
    const auto try_row = [&](std::int64_t i, std::span<const float> row) {
      try {
        visit(static_cast<std::size_t>(i), row);
      } catch (...) {
        thrown[static_cast<std::size_t>(i)] = std::current_exception();
      }
    };
    if (gathered_.empty()) device_.visit_rows(logits_, try_row);
    for (std::size_t at = 0; at < gathered_.size(); at += width_)
      try_row(static_cast<std::int64_t>(at / width_), std::span(gathered_).subspan(at, width_));
    const auto first = std::ranges::find_if(
        thrown, [](const std::exception_ptr& each) { return each != nullptr; });
    if (first != thrown.end()) std::rethrow_exception(*first);
  }

 private:
  ops::Device& device_;
  const Tensor& logits_;
  std::size_t width_;
  std::vector<float> gathered_;
};

}  // namespace troupe::engine::generate

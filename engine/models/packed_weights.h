// PackedWeights: a second copy of a decoder's weights, packed for the GEMMs of generation.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/models/decoder.h"

namespace troupe::engine::models {

/// Format of the weights that generation reads. With int8, probabilities approximate those of the
/// full weights.
enum class WeightFormat : std::uint8_t { full, int8 };
constexpr std::array<std::string_view, 2> names_of(WeightFormat) {
  return {"full", "int8"};
}

/// Holds packed weights for its lifetime (ops::Device::pack), where products are in bf16 or weights
/// are read as int8: generation then reads half or a quarter of the bytes. Otherwise it does
/// nothing.
class PackedWeights {
 public:
  PackedWeights(Decoder& model, ops::Precision precision, WeightFormat format = WeightFormat::full)
      : model_(precision == ops::Precision::bf16 || format == WeightFormat::int8 ? &model
                                                                                 : nullptr),
        type_(format == WeightFormat::int8 ? DType::int8_packed : DType::bf16_packed) {}
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;
  /// Packs the weights. Call it before the first pass and whenever the weights have changed.
  void refresh();
  /// Whether passes should read packed weights (nn::ForwardContext::packed).
  bool in_use() const { return model_ != nullptr; }

 private:
  Decoder* model_;
  DType type_;
};

}  // namespace troupe::engine::models

#include "engine/train/shared_prefixes.h"

#include <algorithm>

namespace troupe::engine::train {

std::optional<nn::SharedRows> shared_prefixes(const data::Experience& part,
                                              const models::DecoderSpec& spec) {
  if (spec.keys_depend_on_length()) return std::nullopt;
  nn::SharedRows rows;
  rows.inverse.reserve(part.tokens.size());
  for (std::size_t n = 0; n + 1 < part.offsets.size(); ++n) {
    const auto begin = part.tokens.begin() + part.offsets[n],
               end = part.tokens.begin() + part.offsets[n + 1];
    const auto before = part.tokens.begin() + part.offsets[n == 0 ? 0 : n - 1];
    const auto shared = n == 0 ? 0 : std::mismatch(begin, end, before, begin).first - begin;
    for (std::ptrdiff_t i = 0; i < shared; ++i)
      rows.inverse.push_back(
          rows.inverse[static_cast<std::size_t>(before - part.tokens.begin() + i)]);
    for (std::ptrdiff_t i = shared; i < end - begin; ++i) {
      rows.inverse.push_back(static_cast<std::int32_t>(rows.index.size()));
      rows.index.push_back(static_cast<std::int32_t>(begin - part.tokens.begin() + i));
    }
  }
  if (8 * (rows.inverse.size() - rows.index.size()) < rows.inverse.size() || rows.inverse.empty())
    return std::nullopt;
  return rows;
}

}  // namespace troupe::engine::train

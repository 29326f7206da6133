#include "engine/train/shared_prefixes.h"

#include <algorithm>

namespace troupe::engine::train {

std::optional<nn::SharedRows> shared_prefixes(const data::Experience& part,
                                              const models::DecoderSpec& spec) {
  if (spec.keys_change()) return std::nullopt;
  nn::SharedRows rows;
  rows.whole.reserve(part.tokens.size());
  for (std::size_t n = 0; n + 1 < part.offsets.size(); ++n) {
    const auto begin = part.tokens.begin() + part.offsets[n],
               end = part.tokens.begin() + part.offsets[n + 1];
    const auto before = part.tokens.begin() + part.offsets[n == 0 ? 0 : n - 1];
    const auto shared = n == 0 ? 0 : std::mismatch(begin, end, before, begin).first - begin;
    for (std::ptrdiff_t i = 0; i < shared; ++i)
      rows.whole.push_back(rows.whole[static_cast<std::size_t>(before - part.tokens.begin() + i)]);
    for (std::ptrdiff_t i = shared; i < end - begin; ++i) {
      rows.whole.push_back(static_cast<std::int32_t>(rows.first.size()));
      rows.first.push_back(static_cast<std::int32_t>(begin - part.tokens.begin() + i));
    }
  }
  if (8 * (rows.whole.size() - rows.first.size()) < rows.whole.size() || rows.whole.empty())
    return std::nullopt;
  return rows;
}

}  // namespace troupe::engine::train

#include "engine/data/megatron/split.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "engine/base/text.h"

namespace troupe::engine::data::megatron {

Result<SplitWeights> parse_split(std::string_view text) {
  const auto problem = [&] {
    return fail(Errc::usage, cat("split ", quote(text), ": expected one to three weights for ",
                                 "training, validation and test data, such as \"969, 30, 1\""));
  };
  SplitWeights weights{};
  std::size_t count = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++count) {
    const auto comma = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, comma - begin);
    begin = comma + 1;
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    item = item.substr(0, item.find_last_not_of(' ') + 1);
    if (count == split_count) return problem();
    const auto [end, code] =
        std::from_chars(item.data(), item.data() + item.size(), weights[count]);
    const bool whole = code == std::errc() && end == item.data() + item.size();
    if (!whole || !std::isfinite(weights[count]) || weights[count] < 0) return problem();
  }
  const double sum = weights[0] + weights[1] + weights[2];
  if (!(sum > 0) || !std::isfinite(sum)) return problem();
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::array<std::optional<SequenceRange>, split_count> split_ranges(const SplitWeights& weights,
                                                                   std::int64_t sequences) {
  std::array<std::optional<SequenceRange>, split_count> out;
  const auto all = static_cast<double>(sequences);
  // nearbyint rounds half to even, as Python's round().
  const auto place = [&](double share) { return std::llrint(std::nearbyint(share * all)); };
  double before = 0;
  for (std::size_t i = 0; i < split_count; ++i) {
    const double after = before + weights[i];
    if (after > before)
      out[i] = SequenceRange{place(before), std::min<std::int64_t>(place(after), sequences)};
    before = after;
  }
  return out;
}

}  // namespace troupe::engine::data::megatron

// The tape's passages between tokens [T], sequences [N] and pairs [N/2].
#include <algorithm>
#include <numeric>

#include "engine/loss/node.h"

namespace troupe::engine::loss {
namespace {

std::vector<std::int32_t> every_second(const Expr& x, std::int32_t first) {
  check(x.size() % 2 == 0, "chosen/rejected: the number of sequences is odd");
  std::vector<std::int32_t> index;
  for (auto n = first; n < static_cast<std::int32_t>(x.size()); n += 2) index.push_back(n);
  return index;
}

Array sums(const Array& x, const std::vector<std::int32_t>& offsets) {
  check(!offsets.empty() && offsets.back() == x.size(),
        "by sequence: offsets do not cover the array");
  Array out = Array::Zero(static_cast<Eigen::Index>(offsets.size()) - 1);
  for (std::size_t n = 0; n + 1 < offsets.size(); ++n)
    for (auto t = offsets[n]; t < offsets[n + 1]; ++t) out[static_cast<Eigen::Index>(n)] += x[t];
  return out;
}

Array spread_out(const Array& x, const std::vector<std::int32_t>& offsets) {
  check(static_cast<Eigen::Index>(offsets.size()) == x.size() + 1,
        "spread: one number per sequence is needed");
  Array out(offsets.back());
  for (std::size_t n = 0; n + 1 < offsets.size(); ++n)
    for (auto t = offsets[n]; t < offsets[n + 1]; ++t) out[t] = x[static_cast<Eigen::Index>(n)];
  return out;
}

}  // namespace

Expr sum_by_sequence(const Expr& x, const std::vector<std::int32_t>& offsets) {
  return make(
      sums(x.node().value, offsets), false, {x},
      [offsets](std::size_t, const Array& upstream) { return spread_out(upstream, offsets); });
}

Expr mean_by_sequence(const Expr& x, const std::vector<float>& mask,
                      const std::vector<std::int32_t>& offsets) {
  const Expr length = max(sum_by_sequence(mask, offsets), 1.0);
  return sum_by_sequence(where(mask, x, 0.0) * mask, offsets) / length;
}

Expr spread(const Expr& x, const std::vector<std::int32_t>& offsets) {
  return make(spread_out(x.node().value, offsets), false, {x},
              [offsets](std::size_t, const Array& upstream) { return sums(upstream, offsets); });
}

Expr gather(const Expr& x, const std::vector<std::int32_t>& index) {
  const Array& from = x.node().value;
  Array out(static_cast<Eigen::Index>(index.size()));
  for (std::size_t i = 0; i < index.size(); ++i) {
    check(0 <= index[i] && index[i] < from.size(), "gather: an index outside the array");
    out[static_cast<Eigen::Index>(i)] = from[index[i]];
  }
  const auto pull = [index, size = from.size()](std::size_t, const Array& upstream) -> Array {
    Array back = Array::Zero(size);
    for (std::size_t i = 0; i < index.size(); ++i)
      back[index[i]] += upstream[static_cast<Eigen::Index>(i)];
    return back;
  };
  return make(std::move(out), false, {x}, pull);
}

Expr chosen(const Expr& x) {
  return gather(x, every_second(x, 0));
}
Expr rejected(const Expr& x) {
  return gather(x, every_second(x, 1));
}

Expr sorted(const Expr& x) {
  std::vector<std::int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const Array& v = x.node().value;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return v[a] < v[b]; });
  return gather(x, order);
}

}  // namespace troupe::engine::loss

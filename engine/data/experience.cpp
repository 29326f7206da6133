#include "engine/data/experience.h"

#include "engine/base/errors/check.h"

namespace troupe::engine::data {
namespace {

template <class T>
void copy_range(const std::vector<T>& from, std::size_t begin, std::size_t end,
                std::vector<T>& to) {
  if (!from.empty())
    to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
              from.begin() + static_cast<std::ptrdiff_t>(end));
}

void copy_range(const IdSets& from, std::size_t begin, std::size_t end, IdSets& to) {
  if (!from.empty()) to.append(from, begin, end);
}

// The columns of each kind, so that slice, select and validate are one loop each.
template <class F>
void each_token_column(F&& f) {
  f(&Experience::mask);
  f(&Experience::answer);
  f(&Experience::old_logp);
  f(&Experience::rollout_logp);
  f(&Experience::reference_logp);
  f(&Experience::advantage);
  f(&Experience::value);
  f(&Experience::returns);
  f(&Experience::classes);
  f(&Experience::token_version);
  f(&Experience::sampling_mask);
}

template <class F>
void each_sequence_column(F&& f) {
  f(&Experience::reward);
  f(&Experience::label);
  f(&Experience::sample_id);
  f(&Experience::version);
  f(&Experience::number);
}

void copy_sequence(const Experience& from, std::size_t n, Experience& to) {
  const auto begin = static_cast<std::size_t>(from.offsets[n]),
             end = static_cast<std::size_t>(from.offsets[n + 1]);
  copy_range(from.tokens, begin, end, to.tokens);
  each_token_column([&](auto column) { copy_range(from.*column, begin, end, to.*column); });
  each_sequence_column([&](auto column) { copy_range(from.*column, n, n + 1, to.*column); });
  to.offsets.push_back(to.offsets.back() + static_cast<std::int32_t>(end - begin));
}

Experience with_constants_of(const Experience& from) {
  Experience to;
  to.sequences_per_group = from.sequences_per_group;
  to.count = from.count;
  to.scale = from.scale;
  return to;
}

}  // namespace

void Experience::append(const std::vector<std::int32_t>& ids, const std::vector<float>& weights) {
  check(ids.size() == weights.size(), "Experience::append: one weight per token");
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  mask.insert(mask.end(), weights.begin(), weights.end());
  if (!ids.empty()) mask[mask.size() - ids.size()] = 0;
  offsets.push_back(offsets.back() + static_cast<std::int32_t>(ids.size()));
}

void Experience::append(const Experience& other) {
  const auto agree = [&](auto column) {
    check(sequences() == 0 || (this->*column).empty() == (other.*column).empty() ||
              other.sequences() == 0,
          "Experience::append: batches with different columns");
  };
  each_token_column(agree);
  each_sequence_column(agree);
  for (std::size_t n = 0; n + 1 < other.offsets.size(); ++n) copy_sequence(other, n, *this);
}

Experience Experience::slice(std::int32_t begin, std::int32_t end) const {
  check(0 <= begin && begin <= end && end <= sequences(), "Experience::slice: outside the batch");
  Experience out = with_constants_of(*this);
  for (auto n = begin; n < end; ++n) copy_sequence(*this, static_cast<std::size_t>(n), out);
  return out;
}

Experience Experience::select(const std::vector<std::int32_t>& order) const {
  Experience out = with_constants_of(*this);
  for (const auto n : order) {
    check(0 <= n && n < sequences(), "Experience::select: no such sequence");
    copy_sequence(*this, static_cast<std::size_t>(n), out);
  }
  return out;
}

void Experience::validate(std::int64_t vocabulary) const {
  check(!offsets.empty() && offsets.front() == 0, "Experience: offsets start at 0");
  for (std::size_t n = 1; n < offsets.size(); ++n)
    check(offsets[n] >= offsets[n - 1], "Experience: offsets must not fall");
  check(tokens.size() == static_cast<std::size_t>(token_count()),
        "Experience: tokens and offsets disagree");
  const auto fits = [&](std::size_t length) {
    return [this, length](auto column) {
      check((this->*column).empty() || (this->*column).size() == length,
            "Experience: a column has another length");
    };
  };
  each_token_column(fits(tokens.size()));
  each_sequence_column(fits(static_cast<std::size_t>(sequences())));
  value_or_throw(sampling_mask.validate());
  for (const auto token : tokens)
    check(0 <= token && token < vocabulary, "Experience: a token outside the vocabulary");
}

std::vector<std::int32_t> micro_batches(const Experience& batch, std::int32_t token_budget) {
  std::vector<std::int32_t> bounds{0};
  const auto size = [&](std::int32_t a, std::int32_t b) {
    return batch.offsets[static_cast<std::size_t>(b)] - batch.offsets[static_cast<std::size_t>(a)];
  };
  for (std::int32_t n = 0; n < batch.sequences(); n += batch.sequences_per_group) {
    if (n > bounds.back() && size(bounds.back(), n + batch.sequences_per_group) > token_budget)
      bounds.push_back(n);
  }
  if (batch.sequences() > 0) bounds.push_back(batch.sequences());
  return bounds;
}

}  // namespace troupe::engine::data

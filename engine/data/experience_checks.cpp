#include "engine/data/experience_checks.h"

#include <cmath>
#include <limits>

#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

BadValue bad(std::string field, const std::string& what) {
  std::string sentence = cat(field, ": ", what);
  return {std::move(field), std::move(sentence)};
}

BadValue bad_length(const char* field, std::size_t expected, std::size_t found) {
  return bad(field,
             cat("expected ", expected, " values, one for each of token_ids, found ", found));
}

std::optional<BadValue> find_bad_length(const SampleColumns& sample, const SampleBounds& bounds) {
  const std::size_t length = sample.tokens.size();
  if (std::ssize(sample.tokens) > bounds.longest)
    return bad("token_ids", cat("expected at most ", bounds.longest,
                                " tokens (train.max_length), found ", length));
  if (sample.mask.size() != length) return bad_length("loss_mask", length, sample.mask.size());
  if (sample.logp.size() != length) return bad_length("logprobs", length, sample.logp.size());
  if (sample.versions.size() != length)
    return bad_length("weight_versions", length, sample.versions.size());
  return std::nullopt;
}

std::optional<BadValue> find_bad_token(const SampleColumns& sample, const SampleBounds& bounds,
                                       std::size_t t) {
  const auto name = [&](const char* field) { return cat(field, '[', t, ']'); };
  const std::int64_t token = sample.tokens[t], mask = sample.mask[t];
  if (token < 0 || token >= bounds.vocabulary)
    return bad(name("token_ids"),
               cat("expected a token id, 0 to ", bounds.vocabulary - 1, ", found ", token));
  if (mask != 0 && mask != 1) return bad(name("loss_mask"), cat("expected 0 or 1, found ", mask));
  if (mask == 0) return std::nullopt;  // what others wrote has neither
  if (!is_logp(sample.logp[t]))
    return bad(name("logprobs"),
               cat("expected a log-probability, at most 0, because loss_mask is 1, found ",
                   to_text(sample.logp[t])));
  if (sample.versions[t] < 0 || sample.versions[t] > bounds.newest)
    return bad(name("weight_versions"),
               cat("expected a version that there is, 0 to ", bounds.newest,
                   ", because loss_mask is 1, found ", sample.versions[t]));
  return std::nullopt;
}

}  // namespace

bool is_logp(double value) {
  return value <= largest_logp && value >= double{std::numeric_limits<float>::lowest()};
}

bool is_reward(double value) {
  return std::abs(value) <= double{std::numeric_limits<float>::max()};
}

std::optional<BadValue> find_bad_value(const SampleColumns& sample, const SampleBounds& bounds) {
  if (auto found = find_bad_length(sample, bounds)) return found;
  for (std::size_t t = 0; t < sample.tokens.size(); ++t)
    if (auto found = find_bad_token(sample, bounds, t)) return found;
  if (sample.reward && !is_reward(*sample.reward))
    return bad("reward",
               cat("expected a finite number of float32, found ", to_text(*sample.reward)));
  return std::nullopt;
}

}  // namespace troupe::engine::data

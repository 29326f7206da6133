#include "algorithms/losses/correction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;

// Calls f(n, first token, last token + 1) for every sequence.
template <class F>
void each_sequence(const Experience& b, F&& f) {
  for (std::size_t n = 0; n + 1 < b.offsets.size(); ++n)
    f(n, static_cast<std::size_t>(b.offsets[n]), static_cast<std::size_t>(b.offsets[n + 1]));
}

// The sum, the mean or the maximum of x over the trained tokens of [begin, end).
double over(FilterOver level, const std::vector<double>& x, const Experience& b, std::size_t begin,
            std::size_t end) {
  double sum = 0, count = 0, maximum = 0;
  for (std::size_t t = begin; t < end; ++t)
    if (b.mask[t] != 0) {
      sum += x[t];
      count += 1;
      maximum = std::max(maximum, x[t]);
    }
  if (level == FilterOver::greatest) return maximum;
  return level == FilterOver::geometric && count > 0 ? sum / count : sum;
}

// [T] x aggregated at `level` and broadcast to the tokens.
std::vector<double> spread_over(FilterOver level, const std::vector<double>& x,
                                const Experience& b) {
  if (level == FilterOver::token) return x;
  std::vector<double> out(x.size(), 0);
  if (level == FilterOver::none) return out;
  each_sequence(b, [&](std::size_t, std::size_t begin, std::size_t end) {
    const double whole = over(level, x, b, begin, end);
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(begin),
              out.begin() + static_cast<std::ptrdiff_t>(end), whole);
  });
  return out;
}

// FilterOver begins with the enumerators of Over, in the same order.
FilterOver filter_over(Over level) {
  return static_cast<FilterOver>(level);
}

double ratio_of(double log_w) {
  return std::exp(std::clamp(log_w, -20.0, 20.0));
}

}  // namespace

Result<> Correction::validate(std::string_view section) const {
  const auto bounds = [&](const char* key, double from, double to, bool open) -> Result<> {
    if ((open && to == 0) || to > from) return {};
    return fail(Errc::usage,
                cat(section, ".", key, ": expected 0 <= ", key, "_low < ", key, "_high",
                    open ? " (0: no upper bound)" : "", ", found ", from, " and ", to));
  };
  RETURN_IF_ERROR(bounds("correction", low, high, true));
  if (filter_by != FilterBy::k1) return {};
  if (filter == FilterOver::token)
    return fail(Errc::usage, cat(section,
                                 ".filter: expected none, sequence or geometric (ratios of whole "
                                 "samples; tokens with filter_by k2 or k3), "
                                 "found token; to leave tokens out by their ratio set correction: "
                                 "token with correction_outside: mask"));
  if (filter == FilterOver::greatest)
    return fail(Errc::usage,
                cat(section, ".filter: greatest is of a distance: set filter_by to k2 or k3"));
  return bounds("filter", filter_low, filter_high, false);
}

std::vector<char> Correction::passes(const std::vector<double>& difference,
                                     const Experience& b) const {
  std::vector<double> x = difference;
  if (filter_by != FilterBy::k1)
    for (double& each : x) {
      each = std::clamp(each, -20.0, 20.0);
      each = filter_by == FilterBy::k2 ? each * each / 2 : std::exp(each) - 1 - each;
    }
  std::vector<char> out;
  for (const double found : spread_over(filter, x, b)) {
    const bool within = ratio_of(found) >= filter_low && ratio_of(found) <= filter_high;
    out.push_back(filter_by == FilterBy::k1 ? within : found <= filter_high);
  }
  return out;
}

std::vector<double> Correction::operator()(const std::vector<double>& proximal,
                                           const std::vector<float>& behaviour, const Experience& b,
                                           engine::loss::Report& report) const {
  check(behaviour.size() == b.tokens.size() && proximal.size() == b.tokens.size(),
        "Correction: a column of log-probabilities is missing");
  std::vector<double> difference(proximal.size(), 0);
  for (std::size_t t = 0; t < difference.size(); ++t)
    if (b.mask[t] != 0) difference[t] = proximal[t] - static_cast<double>(behaviour[t]);
  const auto log_w = spread_over(filter_over(weight), difference, b);
  const auto passed = passes(difference, b);
  const double maximum = high > 0 ? high : std::numeric_limits<double>::infinity();
  std::vector<double> out(difference.size(), 1);
  double count = 0, distance = 0, sum = 0, beyond = 0, filtered = 0;
  for (std::size_t t = 0; t < out.size(); ++t) {
    if (b.mask[t] == 0) continue;
    const double w = ratio_of(log_w[t]);
    const bool inside = w >= low && w <= maximum;
    if (inside || outside == Outside::keep)
      out[t] = w;
    else
      out[t] = outside == Outside::mask ? 0 : std::clamp(w, low, maximum);
    if (filter != FilterOver::none && !passed[t]) {
      out[t] = 0;
      filtered += 1;
    }
    count += 1;
    distance += std::abs(difference[t]);
    sum += out[t];
    beyond += inside ? 0 : 1;
    report.max("sampling/sampling_logp_difference/max", std::abs(difference[t]));
    report.min("sampling/importance_sampling_ratio/min", out[t]);
    report.max("sampling/importance_sampling_ratio/max", out[t]);
  }
  report.mean("sampling/sampling_logp_difference/mean", distance, count);
  report.mean("sampling/importance_sampling_ratio/mean", sum, count);
  report.mean("sampling/is_oob_ratio", beyond, count);
  if (filter != FilterOver::none) report.mean("sampling/filtered_ratio", filtered, count);
  return out;
}

std::vector<double> off_policy_mask(const std::vector<double>& logp,
                                    const std::vector<float>& behaviour, const Experience& b,
                                    double threshold) {
  check(behaviour.size() == b.tokens.size(),
        "off_policy_mask: the log-probabilities of what sampled are missing");
  std::vector<double> drift(logp.size(), 0), out(logp.size(), 1);
  for (std::size_t t = 0; t < drift.size(); ++t)
    if (b.mask[t] != 0) drift[t] = static_cast<double>(behaviour[t]) - logp[t];
  each_sequence(b, [&](std::size_t, std::size_t begin, std::size_t end) {
    if (over(FilterOver::geometric, drift, b, begin, end) <= threshold) return;
    for (std::size_t t = begin; t < end; ++t) out[t] = b.advantage[t] < 0 ? 0 : 1;
  });
  return out;
}

double proximal_share(std::int64_t now, std::int64_t behaviour) {
  if (now <= behaviour) return 0;
  return std::clamp(static_cast<double>(now - 1 - behaviour) / static_cast<double>(now - behaviour),
                    0.0, 1.0);
}

double proximal_logp(Proximal how, double behaviour, double logp, double share) {
  if (how != Proximal::linear) return behaviour + share * (logp - behaviour);
  const double maximum = std::max(behaviour, logp);
  return maximum +
         std::log((1 - share) * std::exp(behaviour - maximum) + share * std::exp(logp - maximum));
}

std::vector<double> proximal_logps(Proximal how, std::int64_t version, std::vector<double> logp,
                                   const engine::data::Experience& b) {
  const auto& behaviour = b.rollout_logp.empty() ? b.old_logp : b.rollout_logp;
  check(behaviour.size() == b.tokens.size() && b.version.size() + 1 == b.offsets.size(),
        "the proximal policy needs the log-probabilities and versions of what sampled");
  for (std::size_t n = 0; n < b.version.size(); ++n) {
    const double share = proximal_share(version, static_cast<std::int64_t>(b.version[n]));
    for (auto t = static_cast<std::size_t>(b.offsets[n]);
         t < static_cast<std::size_t>(b.offsets[n + 1]); ++t)
      logp[t] = b.mask[t] == 0
                    ? 0
                    : proximal_logp(how, static_cast<double>(behaviour[t]), logp[t], share);
  }
  return logp;
}

}  // namespace troupe::algorithms

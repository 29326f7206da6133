#include "algorithms/rollout/samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::algorithms {
namespace {

using protocol::FailureKind;

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// With n - 1; 0 for fewer than two.
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() > 1 ? std::sqrt(squares / static_cast<double>(values.size() - 1)) : 0;
}

}  // namespace

bool truncated(const protocol::Completion& drawn) {
  return drawn.finish_reason == protocol::FinishReason::length;
}

std::vector<protocol::SampleRequest> draws_for(const PromptBatch& prompts, int group) {
  std::vector<protocol::SampleRequest> draws;
  for (std::size_t i = 0; i < prompts.examples.size(); ++i)
    for (int g = 0; g < group; ++g)
      draws.push_back(
          {prompts.examples[i]->ids,
           prompts.ids[i] * static_cast<std::uint64_t>(group) + static_cast<std::uint64_t>(g)});
  return draws;
}

std::vector<std::vector<protocol::SampleRequest>> split_draws(
    std::vector<protocol::SampleRequest> draws, std::size_t parts) {
  parts = std::min(parts, draws.size());
  std::vector<std::vector<protocol::SampleRequest>> out;
  for (std::size_t i = 0; i < parts; ++i) {
    const auto at = [&](std::size_t part) {
      return draws.begin() + static_cast<std::ptrdiff_t>(draws.size() * part / parts);
    };
    out.emplace_back(std::move_iterator(at(i)), std::move_iterator(at(i + 1)));
  }
  return out;
}

engine::data::Experience assemble(const PromptBatch& prompts,
                                  const std::vector<protocol::Completion>& drawn, std::size_t first,
                                  const DrawConfig& config) {
  const auto group = static_cast<std::size_t>(config.group);
  check(first + drawn.size() <= prompts.examples.size() * group,
        "assemble: more samples than asked for");
  engine::data::Experience batch;
  for (std::size_t n = 0; n < drawn.size(); ++n) {
    const auto& prompt = prompts.examples[(first + n) / group]->ids;
    const bool trained = !(config.mask_truncated && truncated(drawn[n]));
    std::vector<std::int32_t> ids = prompt;
    ids.insert(ids.end(), drawn[n].ids.begin(), drawn[n].ids.end());
    std::vector<float> weights(prompt.size(), 0.0f);
    weights.resize(ids.size(), trained ? 1.0f : 0.0f);
    batch.append(ids, weights);
    batch.old_logp.resize(batch.old_logp.size() + prompt.size(), 0.0f);
    batch.old_logp.insert(batch.old_logp.end(), drawn[n].logp.begin(), drawn[n].logp.end());
    batch.sample_id.push_back(drawn[n].sample_id);
    batch.version.push_back(drawn[n].version);
  }
  return batch;
}

std::vector<protocol::RewardRequest> reward_requests(
    const PromptBatch& prompts, const std::vector<protocol::Completion>& completions,
    std::size_t first, const DrawConfig& config) {
  std::vector<protocol::RewardRequest> out;
  for (std::size_t n = 0; n < completions.size(); ++n) {
    const auto& row = *prompts.examples[(first + n) / static_cast<std::size_t>(config.group)];
    out.push_back({row.text, completions[n].text, row.answer, row.ids, completions[n].ids});
  }
  return out;
}

void accept(Sampled& sampled, std::vector<protocol::RewardResult> verdicts) {
  check(verdicts.size() == sampled.drawn.size(),
        "accept: another number of verdicts than of samples");
  for (std::size_t n = 0; n < verdicts.size(); ++n) {
    sampled.batch.reward.push_back(
        static_cast<float>(verdicts[n].reward.value_or(std::numeric_limits<double>::quiet_NaN())));
    if (verdicts[n].reward) continue;
    const auto begin = sampled.batch.mask.begin() + sampled.batch.offsets[n],
               end = sampled.batch.mask.begin() + sampled.batch.offsets[n + 1];
    std::fill(begin, end, 0.0f);
  }
  sampled.verdicts = std::move(verdicts);
}

double trained_tokens(const engine::data::Experience& batch) {
  double sum = 0;
  for (const float weight : batch.mask) sum += static_cast<double>(weight);
  return sum;
}

Metrics length_metrics(const Sampled& sampled) {
  std::vector<double> lengths, ended, cut;
  for (const auto& drawn : sampled.drawn) {
    lengths.push_back(static_cast<double>(drawn.ids.size()));
    cut.push_back(truncated(drawn) ? 1 : 0);
    if (!truncated(drawn)) ended.push_back(lengths.back());
  }
  Metrics metrics;
  const auto add = [&](const std::string& kind, const std::vector<double>& values) {
    const auto [least, greatest] =
        values.empty() ? std::ranges::minmax_result<double>{0, 0} : std::ranges::minmax(values);
    metrics.insert(metrics.end(), {{"completions/mean_" + kind, mean_of(values)},
                                   {"completions/min_" + kind, least},
                                   {"completions/max_" + kind, greatest}});
  };
  add("length", lengths), add("terminated_length", ended);
  metrics.emplace_back("completions/clipped_ratio", mean_of(cut));
  return metrics;
}

Metrics part_metrics(const Sampled& sampled) {
  Metrics metrics;
  std::map<std::string, std::vector<double>> parts;
  for (const auto& verdict : sampled.verdicts)
    for (const auto& [rule, value] : verdict.parts) parts[rule].push_back(value);
  for (const auto& [rule, values] : parts) {
    metrics.emplace_back("rewards/" + rule + "/mean", mean_of(values));
    metrics.emplace_back("rewards/" + rule + "/std", deviation_of(values));
  }
  for (const auto kind : {FailureKind::timeout, FailureKind::crash, FailureKind::malformed,
                          FailureKind::flood, FailureKind::memory}) {
    const auto count = std::ranges::count_if(sampled.verdicts, [&](const auto& verdict) {
      return std::ranges::find(verdict.failure_kinds, kind) != verdict.failure_kinds.end();
    });
    if (count > 0)
      metrics.emplace_back(cat("rewards/failed/", names_of(kind)[static_cast<std::size_t>(kind)]),
                           static_cast<double>(count));
  }
  return metrics;
}

Metrics mismatch_metrics(const engine::data::Experience& b) {
  check(b.old_logp.size() == b.tokens.size() && b.rollout_logp.size() == b.tokens.size(),
        "mismatch_metrics: log-probabilities are missing");
  std::vector<double> apart, ratios;
  for (std::size_t t = 0; t < b.tokens.size(); ++t) {
    if (b.mask[t] == 0) continue;
    const double difference =
        static_cast<double>(b.old_logp[t]) - static_cast<double>(b.rollout_logp[t]);
    apart.push_back(std::abs(difference)),
        ratios.push_back(std::exp(std::clamp(difference, -20.0, 20.0)));
  }
  if (apart.empty()) return {};
  const std::string name = "sampling/sampling_logp_difference/",
                    ratio = "sampling/importance_sampling_ratio/";
  return {{name + "mean", mean_of(apart)},
          {name + "max", std::ranges::max(apart)},
          {ratio + "min", std::ranges::min(ratios)},
          {ratio + "mean", mean_of(ratios)},
          {ratio + "max", std::ranges::max(ratios)}};
}

void show(Journal& journal, std::int64_t step, const PromptBatch& prompts, const Sampled& sampled,
          int count) {
  const std::size_t group = sampled.drawn.size() / prompts.examples.size();
  for (std::size_t n = 0; n < std::min(sampled.drawn.size(), static_cast<std::size_t>(count));
       ++n) {
    const auto& drawn = sampled.drawn[n];
    const auto token = static_cast<std::size_t>(sampled.batch.offsets[n]);
    journal.sample(
        step, {drawn.sample_id, prompts.examples[n / group]->text, drawn.text,
               to_string(drawn.finish_reason), static_cast<double>(sampled.batch.reward[n]),
               static_cast<double>(sampled.batch.advantage[token]), sampled.verdicts[n].parts});
  }
}

}  // namespace troupe::algorithms

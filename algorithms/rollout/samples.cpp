#include "algorithms/rollout/samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

using protocol::FailureKind;

// The largest version that Experience::token_version can hold.
constexpr std::uint64_t max_version = std::numeric_limits<std::int32_t>::max();
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// NaN of no values.
double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? nothing : sum / static_cast<double>(values.size());
}

// Standard deviation with n - 1; 0 for fewer than two values.
double std_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() > 1 ? std::sqrt(squares / static_cast<double>(values.size() - 1)) : 0;
}

void append_versions(std::vector<std::int32_t>& column, std::size_t prompt,
                     const protocol::Completion& completion) {
  column.insert(column.end(), prompt, -1);
  const auto first = static_cast<std::ptrdiff_t>(column.size());
  for (const auto& run : completion.versions)
    column.insert(column.end(), run.count, static_cast<std::int32_t>(run.version));
  for (std::size_t token = 0; token < completion.sampled.size(); ++token)
    if (completion.sampled[token] == 0) column[static_cast<std::size_t>(first) + token] = -1;
}

// Tokens that others wrote, such as the outputs of tools, are never trained on.
void mask_unsampled(std::vector<float>& weights, std::size_t prompt,
                    const protocol::Completion& completion) {
  for (std::size_t token = 0; token < completion.sampled.size(); ++token)
    if (completion.sampled[token] == 0) weights[prompt + token] = 0.0f;
}

}  // namespace

bool truncated(const protocol::Completion& completion) {
  return completion.finish_reason == protocol::FinishReason::length;
}

std::vector<protocol::SampleRequest> sample_requests(const PromptBatch& prompts,
                                                     const RolloutOptions& options) {
  const auto group = static_cast<std::uint64_t>(options.group);
  const std::uint64_t stride = options.ids_per_prompt > 0 ? options.ids_per_prompt : group;
  std::vector<protocol::SampleRequest> requests;
  for (std::size_t i = 0; i < prompts.examples.size(); ++i)
    for (std::uint64_t g = 0; g < group; ++g)
      requests.push_back({prompts.examples[i]->ids, prompts.ids[i] * stride + g,
                          options.external ? prompts.examples[i]->answer : Json()});
  return requests;
}

Result<> check_answers(const std::vector<std::uint64_t>& sample_ids,
                       const std::vector<protocol::Completion>& completions) {
  if (completions.size() != sample_ids.size())
    return fail(Errc::bad_input,
                cat("expected ", sample_ids.size(), " completions, found ", completions.size()));
  for (std::size_t n = 0; n < completions.size(); ++n) {
    const auto& c = completions[n];
    const std::string which = cat("completion ", n, " (sample ", sample_ids[n], "): ");
    if (c.sample_id != sample_ids[n])
      return fail(Errc::bad_input, cat(which, "found sample ", c.sample_id));
    if (c.logp.size() != c.ids.size())
      return fail(Errc::bad_input, cat(which, "expected ", c.ids.size(),
                                       " log-probabilities, found ", c.logp.size()));
    if (!c.masks.empty() && c.masks.size() != c.ids.size())
      return fail(Errc::bad_input,
                  cat(which, "expected ", c.ids.size(), " sampling masks, found ", c.masks.size()));
    RETURN_IF_ERROR(c.masks.validate());
    if (!c.sampled.empty() && c.sampled.size() != c.ids.size())
      return fail(Errc::bad_input,
                  cat(which, "expected ", c.ids.size(), " marks, found ", c.sampled.size()));
    std::uint64_t counted = 0;
    for (const auto& run : c.versions) {
      if (run.count == 0 || run.version > max_version)
        return fail(Errc::bad_input, cat(which, "expected runs of versions up to ", max_version,
                                         " with at least 1 token, found ", run.count,
                                         " tokens of version ", run.version));
      counted += run.count;
    }
    if (counted != c.ids.size())
      return fail(Errc::bad_input, cat(which, "expected the versions of ", c.ids.size(),
                                       " tokens, found ", counted));
  }
  return {};
}

std::vector<std::vector<protocol::SampleRequest>> split_requests(
    std::vector<protocol::SampleRequest> requests, std::size_t parts, std::size_t unit) {
  const std::size_t units = requests.size() / unit;
  check(units * unit == requests.size(), "split_requests: whole units are needed");
  parts = std::min(parts, units);
  std::vector<std::vector<protocol::SampleRequest>> out;
  for (std::size_t i = 0; i < parts; ++i) {
    const auto at = [&](std::size_t part) {
      return requests.begin() + static_cast<std::ptrdiff_t>(units * part / parts * unit);
    };
    out.emplace_back(std::move_iterator(at(i)), std::move_iterator(at(i + 1)));
  }
  return out;
}

engine::data::Experience pack_samples(const PromptBatch& prompts,
                                      const std::vector<protocol::Completion>& completions,
                                      std::size_t first, const RolloutOptions& options) {
  const auto group = static_cast<std::size_t>(options.group);
  check(first + completions.size() <= prompts.examples.size() * group,
        "pack_samples: more completions than requests");
  engine::data::Experience batch;
  for (std::size_t n = 0; n < completions.size(); ++n) {
    const auto& prompt = prompts.examples[(first + n) / group]->ids;
    const auto& completion = completions[n];
    const bool trained = !(options.mask_truncated && truncated(completion));
    std::vector<std::int32_t> ids = prompt;
    ids.insert(ids.end(), completion.ids.begin(), completion.ids.end());
    std::vector<float> weights(prompt.size(), 0.0f);
    weights.resize(ids.size(), trained ? 1.0f : 0.0f);
    mask_unsampled(weights, prompt.size(), completion);
    batch.append(ids, weights);
    batch.old_logp.resize(batch.old_logp.size() + prompt.size(), 0.0f);
    batch.old_logp.insert(batch.old_logp.end(), completion.logp.begin(), completion.logp.end());
    if (options.sampling.report_masks) {
      batch.sampling_mask.append_whole(prompt.size());
      if (completion.masks.empty()) batch.sampling_mask.append_whole(completion.ids.size());
      batch.sampling_mask.append(completion.masks, 0, completion.masks.size());
    }
    batch.sample_id.push_back(completion.sample_id);
    batch.version.push_back(completion.updates);
    append_versions(batch.token_version, prompt.size(), completion);
  }
  return batch;
}

std::vector<protocol::RewardRequest> reward_requests(
    const PromptBatch& prompts, const std::vector<protocol::Completion>& completions,
    std::size_t first, const RolloutOptions& options) {
  std::vector<protocol::RewardRequest> out;
  for (std::size_t n = 0; n < completions.size(); ++n) {
    const std::size_t index = (first + n) / static_cast<std::size_t>(options.group);
    const auto& row = *prompts.examples[index];
    out.push_back({row.text, completions[n].text, row.answer, row.ids, completions[n].ids});
    if (!options.send_rows) continue;
    out.back().row = row.columns;
    out.back().messages = row.messages;
    out.back().prompt_id = prompts.ids[index];
  }
  return out;
}

std::vector<protocol::RewardResult> sent_rewards(
    const std::vector<protocol::Completion>& completions) {
  std::vector<protocol::RewardResult> out;
  for (const auto& completion : completions) out.push_back({completion.reward, {}, ""});
  return out;
}

void apply_rewards(RolloutBatch& samples) {
  auto& batch = samples.batch;
  check(samples.rewards.size() == samples.completions.size(),
        "apply_rewards: one reward per sample is needed");
  for (std::size_t n = 0; n < samples.rewards.size(); ++n) {
    const auto& reward = samples.rewards[n].reward;
    batch.reward.push_back(
        static_cast<float>(reward.value_or(std::numeric_limits<double>::quiet_NaN())));
    if (reward) continue;
    const auto begin = batch.mask.begin() + batch.offsets[n],
               end = batch.mask.begin() + batch.offsets[n + 1];
    std::fill(begin, end, 0.0f);
  }
}

double trained_tokens(const engine::data::Experience& batch) {
  double sum = 0;
  for (const float weight : batch.mask) sum += static_cast<double>(weight);
  return sum;
}

Metrics length_metrics(const RolloutBatch& samples) {
  std::vector<double> lengths, terminated, clipped;
  for (const auto& completion : samples.completions) {
    lengths.push_back(static_cast<double>(completion.ids.size()));
    clipped.push_back(truncated(completion) ? 1 : 0);
    if (!truncated(completion)) terminated.push_back(lengths.back());
  }
  Metrics metrics;
  const auto add = [&](const std::string& kind, const std::vector<double>& values) {
    const auto [minimum, maximum] = values.empty()
                                        ? std::ranges::minmax_result<double>{nothing, nothing}
                                        : std::ranges::minmax(values);
    metrics.insert(metrics.end(), {{"completions/mean_" + kind, mean_of(values)},
                                   {"completions/min_" + kind, minimum},
                                   {"completions/max_" + kind, maximum}});
  };
  add("length", lengths);
  add("terminated_length", terminated);
  metrics.emplace_back("completions/clipped_ratio", mean_of(clipped));
  return metrics;
}

Metrics reward_part_metrics(const RolloutBatch& samples) {
  Metrics metrics;
  std::map<std::string, std::vector<double>> parts;
  for (const auto& result : samples.rewards)
    for (const auto& [rule, value] : result.parts) parts[rule].push_back(value);
  for (const auto& [rule, values] : parts) {
    metrics.emplace_back("rewards/" + rule + "/mean", mean_of(values));
    metrics.emplace_back("rewards/" + rule + "/std", std_of(values));
  }
  for (const auto kind : {FailureKind::timeout, FailureKind::crash, FailureKind::malformed,
                          FailureKind::flood, FailureKind::memory}) {
    const auto count = std::ranges::count_if(samples.rewards, [&](const auto& result) {
      return std::ranges::find(result.failure_kinds, kind) != result.failure_kinds.end();
    });
    if (count > 0)
      metrics.emplace_back(cat("rewards/failed/", name_of(kind)), static_cast<double>(count));
  }
  return metrics;
}

Metrics mismatch_metrics(const engine::data::Experience& b) {
  check(b.old_logp.size() == b.tokens.size() && b.rollout_logp.size() == b.tokens.size(),
        "mismatch_metrics: log-probabilities are missing");
  std::vector<double> differences, ratios;
  for (std::size_t t = 0; t < b.tokens.size(); ++t) {
    if (b.mask[t] == 0) continue;
    const double difference =
        static_cast<double>(b.old_logp[t]) - static_cast<double>(b.rollout_logp[t]);
    differences.push_back(std::abs(difference));
    ratios.push_back(std::exp(std::clamp(difference, -20.0, 20.0)));
  }
  if (differences.empty()) return {};
  const std::string difference = "sampling/sampling_logp_difference/",
                    ratio = "sampling/importance_sampling_ratio/";
  return {{difference + "mean", mean_of(differences)},
          {difference + "max", std::ranges::max(differences)},
          {ratio + "min", std::ranges::min(ratios)},
          {ratio + "mean", mean_of(ratios)},
          {ratio + "max", std::ranges::max(ratios)}};
}

void log_completions(Journal& journal, std::int64_t step, const RolloutBatch& samples, int count) {
  const auto& batch = samples.batch;
  const std::size_t group = samples.completions.size() / samples.prompts.examples.size();
  const auto shown = std::min(samples.completions.size(), static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < shown; ++n) {
    const auto& completion = samples.completions[n];
    const auto& row = *samples.prompts.examples[n / group];
    const auto token = static_cast<std::size_t>(batch.offsets[n]);
    Sample sample{.sample_id = completion.sample_id,
                  .prompt = row.text,
                  .completion = completion.text,
                  .finish_reason = to_string(completion.finish_reason),
                  .reward = static_cast<double>(batch.reward[n]),
                  .advantage = static_cast<double>(batch.advantage[token]),
                  .answer = row.answer,
                  .parts = samples.rewards[n].parts,
                  .prompt_ids = row.ids,
                  .ids = completion.ids,
                  .logprobs = completion.logp,
                  .masks = completion.masks,
                  .sampled = completion.sampled};
    for (const auto& run : completion.versions)
      sample.versions.emplace_back(run.version, run.count);
    journal.sample(step, sample);
  }
}

}  // namespace troupe::algorithms

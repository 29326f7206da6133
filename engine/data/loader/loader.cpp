#include "engine/data/loader/loader.h"

#include <algorithm>

namespace troupe::engine::data {
namespace {

void append_example(const SftExample& example, std::uint64_t id, Experience& out) {
  out.append(example.ids, example.weights);
  out.sample_id.push_back(id);
}

void append_unpaired(const std::vector<std::int32_t>& prompt, const UnpairedExample& of,
                     std::int64_t max_length, Experience& to) {
  auto ids = prompt;
  ids.insert(ids.end(), of.answer.begin(), of.answer.end());
  std::vector<float> weights(prompt.size(), 0.0f);
  weights.insert(weights.end(), of.weights.begin(), of.weights.end());
  const auto length =
      max_length > 0 ? std::min(ids.size(), static_cast<std::size_t>(max_length)) : ids.size();
  ids.resize(length);
  weights.resize(length);
  to.append(ids, weights);
}

}  // namespace

Experience to_experience(const Batch<SftExample>& batch) {
  Experience out;
  for (std::size_t i = 0; i < batch.examples.size(); ++i)
    append_example(*batch.examples[i], batch.ids[i], out);
  for (const auto weight : out.mask) out.count += weight;
  return out;
}

Experience to_experience(const Batch<PairExample>& batch) {
  Experience out;
  out.sequences_per_group = 2;
  out.count = static_cast<double>(batch.examples.size());
  for (std::size_t i = 0; i < batch.examples.size(); ++i) {
    append_example(batch.examples[i]->chosen, 2 * batch.ids[i], out);
    append_example(batch.examples[i]->rejected, 2 * batch.ids[i] + 1, out);
  }
  return out;
}

Experience to_scored_pairs(const Batch<PairExample>& batch) {
  Experience out = to_experience(batch);
  std::fill(out.mask.begin(), out.mask.end(), 0.0f);
  for (std::size_t n = 0; n + 1 < out.offsets.size(); ++n)
    out.mask[static_cast<std::size_t>(out.offsets[n + 1]) - 1] = 1;
  const auto margins = std::any_of(batch.examples.begin(), batch.examples.end(),
                                   [](const auto* pair) { return pair->margin.has_value(); });
  out.label.clear();
  for (std::size_t i = 0; i < batch.examples.size() && margins; ++i) {
    out.label.push_back(batch.examples[i]->margin.value_or(0.0f));
    out.label.push_back(0);
  }
  return out;
}

Experience to_experience(const Batch<StepExample>& batch) {
  Experience out;
  for (std::size_t i = 0; i < batch.examples.size(); ++i) {
    const auto& example = *batch.examples[i];
    std::vector<float> mask;
    for (const auto step : example.classes) {
      mask.push_back(step >= 0 ? 1.0f : 0.0f);
      out.count += step >= 0;
    }
    out.append(example.ids, mask);
    out.classes.insert(out.classes.end(), example.classes.begin(), example.classes.end());
    out.sample_id.push_back(batch.ids[i]);
  }
  return out;
}

Experience to_experience(const Batch<UnpairedExample>& batch, std::int64_t max_length) {
  Experience out;
  for (std::size_t i = 0; i < batch.examples.size(); ++i) {
    append_unpaired(batch.examples[i]->prompt, *batch.examples[i], max_length, out);
    out.label.push_back(batch.examples[i]->desirable ? 1.0f : 0.0f);
    out.sample_id.push_back(batch.ids[i]);
  }
  out.count = static_cast<double>(batch.examples.size());
  return out;
}

Experience mismatched(const Batch<UnpairedExample>& batch, std::int64_t max_length) {
  Experience out;
  const std::size_t rows = batch.examples.size();
  for (std::size_t i = 0; i < rows && rows > 1; ++i)
    append_unpaired(batch.examples[i]->prompt, *batch.examples[(i + rows - 1) % rows], max_length,
                    out);
  out.count = static_cast<double>(out.sequences());
  return out;
}

}  // namespace troupe::engine::data

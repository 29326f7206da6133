#include "engine/data/sample_parts.h"

#include "engine/data/layouts/messages.h"

namespace troupe::engine::data {

namespace {

SamplePart part_of_message(const Json& message, bool in_completion) {
  SamplePart part{.label = std::nullopt};
  part.weight = in_completion && is_assistant(message) ? 1.0f : 0.0f;
  for (const auto& [name, value] : message.object()) {
    if (name == "role")
      part.role = value.string();
    else if (name == "content")
      part.text = value.string();
    else if (name != "loss_weight")
      part.members.emplace_back(name, value);
    else if (part.weight != 0)
      part.weight = static_cast<float>(value.number());
  }
  return part;
}

void add(const Json& value, const char* role, bool in_completion, std::vector<SamplePart>& out) {
  if (value.is_string())
    out.push_back({role, value.string(), in_completion ? 1.0f : 0.0f, {}, std::nullopt});
  if (value.is_array())
    for (const Json& message : value.array())
      out.push_back(part_of_message(message, in_completion));
}

void add_steps(const StepLabels& labels, std::vector<SamplePart>& out) {
  for (std::size_t i = 0; i < labels.steps.size(); ++i) {
    const auto label = labels.classes[i];
    out.push_back({"step", labels.steps[i], label >= 0 ? 1.0f : 0.0f, {}, std::nullopt});
    if (label >= 0) out.back().label = label;
  }
}

}  // namespace

std::vector<SamplePart> parts_of(const Sample& sample, const Json& completion, bool all_trained) {
  std::vector<SamplePart> out;
  if (sample.tokens) return out;
  const bool placeholders = sample.step_labels && sample.step_labels->steps.empty();
  add(sample.prompt, placeholders ? "text" : "prompt", false, out);
  add(completion, sample.prompt.is_null() ? "text" : "completion", true, out);
  if (sample.step_labels) add_steps(*sample.step_labels, out);
  if (all_trained)
    for (SamplePart& part : out) part.weight = 1;
  return out;
}

}  // namespace troupe::engine::data

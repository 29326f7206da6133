#include "launch/commands/explain/example_json.h"

namespace troupe::launch::commands {

namespace {

void set_weight(Json& out, float weight) {
  out.set("trained", weight != 0);
  if (weight != 0 && weight != 1) out.set("weight", static_cast<double>(weight));
}

Json part_json(const engine::data::SamplePart& part) {
  Json out;
  out.set("role", part.role).set("text", part.text);
  set_weight(out, part.weight);
  if (part.label) out.set("label", *part.label);
  for (const auto& [name, value] : part.members) out.set(name, value);
  return out;
}

Json run_json(const TokenRun& run) {
  Json out;
  out.set("text", run.text);
  set_weight(out, run.weight);
  Json::Array ids;
  for (const auto id : run.ids) ids.emplace_back(id);
  return out.set("ids", std::move(ids));
}

Json sequence_json(const ShownSequence& sequence, const TokenText& text) {
  Json out;
  if (!sequence.title.empty()) out.set("name", sequence.title);
  Json::Array parts, runs;
  for (const auto& part : sequence.parts) parts.push_back(part_json(part));
  if (!parts.empty()) out.set("parts", std::move(parts));
  for (const TokenRun& run : token_runs(sequence.ids, sequence.weights, text))
    runs.push_back(run_json(run));
  return out.set("runs", std::move(runs));
}

}  // namespace

Json example_json(const ShownExample& example, const TokenText& text) {
  Json::Array sequences;
  for (const ShownSequence& sequence : example.sequences)
    sequences.push_back(sequence_json(sequence, text));
  Json out;
  out.set("sequences", std::move(sequences));
  for (const auto& [name, value] : example.members) out.set(name, value);
  return out;
}

}  // namespace troupe::launch::commands

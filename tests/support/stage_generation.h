// What ranks of any grid generate and score with one model, as text with the bits of every number:
// the oracle of pipeline stages, as threads and under mpirun.
#pragma once

#include <ios>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/generate/beam_search.h"
#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/generate_all.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {

struct StageGeneration {
  GridModel model;
  engine::generate::GeneratorConfig config = {
      .pages = 20, .max_sequences = 5, .tokens_per_step = 30};
  std::vector<std::int64_t> layers = {};  ///< of the stages, or of their chunks
  int chunks = 1;                         ///< of each stage
  bool drafts = false;                    ///< with a draft model
};

/// Requests of several kinds: shared prompts, chunks, scored prompts, alternatives, penalties.
inline std::vector<engine::generate::Request> mixed_requests(std::int64_t vocabulary) {
  std::vector<engine::generate::Request> all;
  for (std::uint64_t i = 0; i < 12; ++i) {
    engine::generate::Request request;
    request.id = request.sample_id = i;
    for (std::uint64_t t = 0; t < 3 + uniform_below(30, 4, i / 3, 0); ++t)
      request.prompt.push_back(static_cast<std::int32_t>(
          uniform_below(static_cast<std::uint64_t>(vocabulary), 4, i / 3, t % 7 + 1)));
    request.params.greedy = i % 4 == 0;
    request.params.temperature = i % 2 == 0 ? 1.0 : 0.7;
    request.params.top_k = i % 3 == 1 ? 9 : 0;
    request.params.repetition_penalty = i % 5 == 2 ? 1.2 : 1.0;
    request.params.max_new_tokens = 15;
    request.params.seed = 9;
    request.params.report_masks = i % 2 == 1;
    request.params.top_logprobs = i % 3 == 0 ? 3 : 0;
    request.prompt_alternatives = static_cast<int>(i % 6) - 3;
    if (request.prompt_alternatives < -1) request.prompt_alternatives = -1;
    request.generates = i != 4;
    all.push_back(std::move(request));
  }
  return all;
}

/// Numbers that differ in one bit differ in the text.
class BitText {
 public:
  BitText() { text_ << std::hexfloat; }
  template <class Value>
  BitText& operator<<(const Value& value) {
    text_ << value;
    return *this;
  }
  void add(const std::vector<engine::generate::Alternative>& top) {
    for (const auto& each : top) text_ << ' ' << each.id << ':' << each.logp;
  }
  void add(const engine::generate::Generation& generated) {
    text_ << "request " << generated.id << ", score " << generated.score << '\n';
    for (std::size_t i = 0; i < generated.ids.size(); ++i) {
      text_ << generated.ids[i] << ' ' << generated.logp[i] << ' ' << generated.sampling_logp[i];
      if (!generated.top.empty()) add(generated.top[i]);
      if (!generated.masks.empty() && !generated.masks[i].empty())
        for (const auto id : value_or_throw(decode_id_set(generated.masks[i], 37)))
          text_ << " k" << id;
      text_ << '\n';
    }
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

inline std::string generated_text(const StageGeneration& run, const Mesh& mesh) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  auto part = part_on(mesh, mesh.grid().pp > 1 ? run.layers : std::vector<std::int64_t>());
  part.chunks = run.chunks;
  const auto decoder = part_decoder(*device, run.model, 7, part, false);
  const auto draft = grid_decoder(*device, run.model, 7, Mesh(), false);
  BitText out;
  auto config = run.config;
  if (run.drafts) config.draft = draft.get();
  std::map<std::uint64_t, engine::generate::PromptScores> prompts;
  config.on_prompt = [&](std::uint64_t id, const engine::generate::PromptScores& scores) {
    prompts[id] = scores;
  };
  auto generator = value_or_throw(engine::generate::Generator::create(*decoder, config));
  for (const auto& each :
       value_or_throw(test::generate_all(generator, mixed_requests(run.model.spec.vocabulary))))
    out.add(each);
  for (const auto& [id, scores] : prompts) {
    out << "prompt " << id << '\n';
    for (std::size_t t = 0; t < scores.logp.size(); ++t) {
      out << scores.logp[t];
      if (!scores.top.empty()) out.add(scores.top[t]);
      out << '\n';
    }
  }
  out << "accepted " << generator.stats().accepted << '\n';
  return out.text();
}

/// Beams that are chosen and beams that are drawn.
inline std::string beams_text(const StageGeneration& run, const Mesh& mesh) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const auto decoder = grid_decoder(*device, run.model, 7, mesh, false);
  BitText out;
  for (const bool greedy : {true, false}) {
    auto request = mixed_requests(run.model.spec.vocabulary)[0];
    request.params = {};
    request.params.greedy = greedy;
    request.params.max_new_tokens = 12;
    request.params.beams.count = request.params.beams.returned = 3;
    for (const auto& each : value_or_throw(engine::generate::beam_search(
             *decoder, request, {.page_size = 4, .tokens_per_step = 5, .eos_ids = {11}})))
      out.add(each);
  }
  return out.text();
}

}  // namespace troupe::test

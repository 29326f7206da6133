#include "launch/parity/paths.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "engine/base/errors/error.h"
#include "engine/serving/engine.h"
#include "engine/train/scoring.h"
#include "launch/parity/train_paths.h"

namespace troupe::launch::parity {
namespace {

namespace generate = engine::generate;
using engine::serving::Engine;

std::int64_t longest(const PathInputs& in) {
  std::int64_t tokens = 0;
  for (const Text& text : in.texts)
    tokens = std::max(tokens, std::int64_t{text.prompt} + in.sampling.max_new_tokens);
  return std::min(tokens, in.decoder.spec().max_positions);
}

/// Sizes of a cache for `sequences` of the texts at the same time.
generate::GeneratorConfig config_for(const PathInputs& in, std::size_t sequences) {
  return {.longest = longest(in),
          .max_sequences = static_cast<std::int32_t>(std::clamp<std::size_t>(sequences, 1, 64)),
          .precision = in.precision};
}

std::shared_ptr<generate::Request> request_of(const PathInputs& in, const Text& text) {
  auto request = std::make_shared<generate::Request>();
  request->prompt.assign(text.tokens.begin(), text.tokens.begin() + text.prompt);
  request->params = in.sampling;
  request->sample_id = text.sample_id;
  return request;
}

void finish(Engine& engine) {
  while (!engine.idle()) engine.step();
}

/// A job whose generation is stored, or whose error is thrown when the engine is idle.
engine::serving::Job job_of(std::shared_ptr<const generate::Request> request,
                            Result<generate::Generation>& to) {
  engine::serving::Job job;
  job.sample_id = request->sample_id;
  job.request = std::move(request);
  job.on_end = [&to](Result<generate::Generation> done) { to = std::move(done); };
  return job;
}

TextValues values_of(const Text& text, const Result<generate::Generation>& done) {
  const generate::Generation& generation = value_or_throw(done);
  TextValues out{text.prompt, {}};
  for (std::size_t i = 0; i < generation.ids.size(); ++i)
    out.tokens.push_back({generation.ids[i], generation.logp[i]});
  return out;
}

/// Generates all texts `copies` times. `together`: all are submitted before the first step.
std::vector<TextValues> sample(const PathInputs& in, generate::GeneratorConfig config,
                               bool together, int copies = 1) {
  Engine engine(in.decoder, std::move(config));
  value_or_throw(engine.start());
  std::vector<Result<generate::Generation>> done(in.texts.size() * static_cast<std::size_t>(copies),
                                                 fail(Errc::internal, "a text did not end"));
  for (std::size_t i = 0; i < done.size(); ++i) {
    engine.submit(i, job_of(request_of(in, in.texts[i % in.texts.size()]), done[i]));
    if (!together) finish(engine);
  }
  finish(engine);
  std::vector<TextValues> out;
  for (std::size_t i = 0; i < done.size(); ++i)
    out.push_back(values_of(in.texts[i % in.texts.size()], done[i]));
  return out;
}

std::vector<TextValues> decode(const PathInputs& in) {
  return sample(in, config_for(in, 1), false);
}

std::vector<TextValues> batch(const PathInputs& in) {
  return sample(in, config_for(in, in.texts.size()), true);
}

/// Four sequences and seven rows a step: prompts are computed in parts, beside decoding rows.
std::vector<TextValues> chunks(const PathInputs& in) {
  generate::GeneratorConfig config = config_for(in, 4);
  config.tokens_per_step = config.max_sequences + 3;
  return sample(in, std::move(config), true);
}

std::vector<TextValues> shared(const PathInputs& in) {
  generate::GeneratorConfig config = config_for(in, 2 * in.texts.size());
  config.prefix_cache = true;
  return sample(in, std::move(config), true, 3);
}

std::vector<TextValues> drafts(const PathInputs& in) {
  generate::GeneratorConfig config = config_for(in, in.texts.size());
  config.lookup = 4;
  return sample(in, std::move(config), true);
}

/// The scores of whole texts as prompts.
std::vector<TextValues> prompt_scores(const PathInputs& in, generate::GeneratorConfig config) {
  Engine engine(in.decoder, std::move(config));
  value_or_throw(engine.start());
  std::vector<TextValues> out(in.texts.size());
  std::vector<Result<generate::Generation>> done(in.texts.size(), generate::Generation());
  for (std::size_t i = 0; i < in.texts.size(); ++i) {
    auto request = request_of(in, in.texts[i]);
    // The last token has no successor: a prompt may have one token less than the model's maximum.
    request->prompt = in.texts[i].tokens;
    if (std::ssize(request->prompt) == in.decoder.spec().max_positions) request->prompt.pop_back();
    request->prompt_alternatives = 0;
    request->generates = false;
    auto job = job_of(request, done[i]);
    job.on_prompt = [&to = out[i], request](const generate::PromptScores& scores) {
      for (std::size_t t = 1; t < scores.logp.size(); ++t)
        to.tokens.push_back({request->prompt[t], scores.logp[t]});
    };
    engine.submit(i, std::move(job));
  }
  finish(engine);
  for (const auto& each : done) value_or_throw(each);
  return out;
}

std::vector<TextValues> prompt(const PathInputs& in) {
  return prompt_scores(in, config_for(in, in.texts.size()));
}

std::vector<TextValues> int8(const PathInputs& in) {
  generate::GeneratorConfig config = config_for(in, in.texts.size());
  config.weights = engine::models::WeightFormat::int8;
  return prompt_scores(in, std::move(config));
}

constexpr std::array path_table = {
    Path{"score", "log-probabilities of whole texts in one pass, shared prefixes once",
         Promise::equal, false, false, score},
    Path{"train", "the trainer's forward pass, and the head before its backward pass",
         Promise::equal, false, true, train},
    Path{"train_at_once", "the trainer's forward pass, and the head forward and backward at once",
         Promise::equal, false, true, train_at_once},
    Path{"decode", "generation, one text after the other, token by token over the cache",
         Promise::equal, true, false, decode},
    Path{"batch", "generation of all texts together", Promise::equal, true, false, batch},
    Path{"chunks", "generation whose prompts are computed in parts", Promise::equal, true, false,
         chunks},
    Path{"shared", "generation of copies of each text over shared and cached pages", Promise::equal,
         true, false, shared},
    Path{"drafts", "generation with drafts by prompt lookup", Promise::equal, true, false, drafts},
    Path{"prompt", "the scores of prompts, as the server's echo with logprobs", Promise::equal,
         false, false, prompt},
    Path{"int8", "the scores of prompts with weights of 8 bits", Promise::none, false, false, int8},
};

}  // namespace

std::span<const Path> paths() {
  return path_table;
}

const Path* find_path(std::string_view name) {
  const auto* found = std::ranges::find(path_table, name, &Path::name);
  return found == path_table.end() ? nullptr : found;
}

std::vector<Text> continue_prompts(const PathInputs& in) {
  std::vector<Text> out(in.texts.begin(), in.texts.end());
  const std::vector<TextValues> sampled = decode(in);
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const TokenValues& each : sampled[i].tokens) out[i].tokens.push_back(each.token);
  return out;
}

VocabularyValues vocabulary_values(const PathInputs& in, const Text& text, std::int32_t position,
                                   const std::vector<std::int32_t>& ids) {
  VocabularyValues out{scored_tokens(in, text, position, ids), {}};
  auto request = request_of(in, text);
  request->prompt.assign(text.tokens.begin(), text.tokens.begin() + position);
  request->params.max_new_tokens = 1;
  request->reported = ids;
  Engine engine(in.decoder, config_for(in, 1));
  value_or_throw(engine.start());
  Result<generate::Generation> done = generate::Generation();
  engine.submit(0, job_of(request, done));
  finish(engine);
  const generate::Generation generation = value_or_throw(std::move(done));
  for (const generate::Alternative& each : generation.top.at(0)) out.generated.push_back(each.logp);
  return out;
}

}  // namespace troupe::launch::parity

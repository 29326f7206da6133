#include "launch/parity/prompts.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>

#include "engine/base/json/json.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe::launch::parity {
namespace {

constexpr std::uint64_t seed = 7;

/// Few different tokens, so that drafts by prompt lookup are found.
std::vector<std::int32_t> random_prompt(std::uint64_t number, std::int64_t vocabulary,
                                        std::int64_t longest) {
  const auto draw = [&](std::uint64_t below, std::uint64_t what) {
    return uniform_below(below, seed, number, what);
  };
  const auto length = 1 + draw(static_cast<std::uint64_t>(std::max<std::int64_t>(1, longest)), 0);
  std::vector<std::int32_t> out;
  for (std::uint64_t t = 1; t <= length; ++t)
    out.push_back(
        static_cast<std::int32_t>(draw(static_cast<std::uint64_t>(vocabulary), 1000 + draw(8, t))));
  return out;
}

std::vector<Text> random_prompts(const Settings& settings,
                                 const engine::models::DecoderSpec& spec) {
  const std::int64_t longest = std::min<std::int64_t>(40, spec.max_positions / 3);
  std::vector<Text> out;
  for (std::int32_t i = 0; i < settings.options.samples; ++i) {
    Text text{random_prompt(static_cast<std::uint64_t>(i) + 1, spec.vocabulary,
                            i % 4 == 0 ? std::min<std::int64_t>(longest, 3) : longest)};
    if (i % 2 == 1) {
      const auto& before = out.back().tokens;
      text.tokens.insert(text.tokens.begin(), before.begin(), before.end());
    }
    out.push_back(std::move(text));
  }
  return out;
}

Result<std::vector<Text>> read_prompts(const std::string& path, model::Model& model) {
  std::ifstream in(path);
  if (!in) return fail(Errc::not_found, cat(path, ": cannot be opened"));
  std::vector<Text> out;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string where = cat(path, ":", ++number);
    const auto json = parse_json(line, where);
    RETURN_IF_ERROR(json);
    auto tokens = model.tokens_of(*json, "text");
    if (!tokens) return fail(tokens.error().code, cat(where, ": ", tokens.error().what));
    if (std::ssize(*tokens) >= model.spec().max_positions)
      return fail(Errc::bad_input, cat(where, ": ", tokens->size(), " tokens; expected fewer than ",
                                       model.spec().max_positions, ", the model's positions"));
    out.push_back({std::move(*tokens)});
  }
  return out;
}

}  // namespace

Result<std::vector<Text>> prompts_of(const Settings& settings, model::Model& model) {
  std::vector<Text> out;
  if (settings.options.data.empty()) {
    out = random_prompts(settings, model.spec());
  } else {
    auto read = read_prompts(settings.options.data, model);
    RETURN_IF_ERROR(read);
    out = std::move(*read);
  }
  if (out.empty()) return fail(Errc::usage, cat(settings.options.data, ": no prompts"));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].prompt = static_cast<std::int32_t>(out[i].tokens.size());
    out[i].sample_id = i;
  }
  return out;
}

void share_texts(engine::parallel::Communicator& world, std::vector<Text>& texts) {
  std::vector<std::int32_t> all;  // of each text: its length, its prompt's and its tokens
  for (const Text& text : texts) {
    all.push_back(static_cast<std::int32_t>(text.tokens.size()));
    all.push_back(text.prompt);
    all.insert(all.end(), text.tokens.begin(), text.tokens.end());
  }
  std::uint64_t size = all.size();
  world.broadcast_idle(std::as_writable_bytes(std::span(&size, 1)), 0, "the texts");
  all.resize(size);
  world.broadcast(std::as_writable_bytes(std::span(all)), 0, "the texts");
  texts.clear();
  for (auto at = all.begin(); at != all.end();) {
    const std::int32_t length = at[0], prompt = at[1];
    at += 2;
    texts.push_back({{at, at + length}, prompt, texts.size()});
    at += length;
  }
}

}  // namespace troupe::launch::parity

#include "launch/serve/api/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>

#include "engine/base/text.h"
#include "engine/generate/sampling_bounds.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

using engine::constraints::TokenMask;
using engine::generate::SamplingParams;

namespace {

constexpr std::int64_t any_low = std::numeric_limits<std::int64_t>::min(),
                       any_high = std::numeric_limits<std::int64_t>::max();

constexpr std::size_t max_bad_words = 1024, max_bad_word_bytes = 1024;

void read_filters(RequestFields& fields, SamplingParams& params) {
  params.temperature = fields.number("temperature", 0, 1000).value_or(params.temperature);
  if (params.temperature > 0 && params.temperature < 1e-3)
    refuse("temperature", cat("temperature is ", params.temperature,
                              "; allowed: 0 (the most likely token), or 0.001 to 1000"));
  params.top_p = fields.number("top_p", 0, 1).value_or(params.top_p);
  if (params.top_p == 0) refuse("top_p", "top_p is 0; allowed: above 0, at most 1");
  if (const auto top_k = fields.integer("top_k", -1, any_high))
    params.top_k = std::max<std::int64_t>(*top_k, 0);  // -1 and 0: all tokens
  params.min_p = fields.number("min_p", 0, 1).value_or(params.min_p);
  params.typical_p = fields.number("typical_p", 0, 1).value_or(params.typical_p);
  if (params.typical_p == 0) refuse("typical_p", "typical_p is 0; allowed: above 0, at most 1");
  params.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  params.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  params.repetition_penalty =
      fields.number("repetition_penalty", 1e-3, 1e3).value_or(params.repetition_penalty);
}

void read_logit_bias(RequestFields& fields, std::int64_t vocabulary, SamplingParams& params) {
  const Json* biases = fields.find("logit_bias");
  if (biases == nullptr) return;
  if (!biases->is_object())
    refuse("logit_bias", cat("logit_bias: expected an object from token ids to biases, found ",
                             biases->type_name()));
  if (biases->object().size() > engine::generate::max_token_lists)
    refuse("logit_bias", cat("logit_bias: ", biases->object().size(), " entries; allowed: at most ",
                             engine::generate::max_token_lists));
  for (const auto& [key, bias] : biases->object()) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= vocabulary) {
      refuse("logit_bias", cat("logit_bias: ", quote(key), " is not a token of this model; ",
                               "allowed: 0 to ", vocabulary - 1));
    }
    if (!bias.is_number() || !(bias.number() >= -100 && bias.number() <= 100))
      refuse("logit_bias", cat("logit_bias of ", key, ": expected a number from -100 to 100"));
    params.token_rules.sequence_bias.push_back({{id}, bias.number()});
  }
}

/// A word has other tokens within a text than at its beginning.
void read_bad_words(RequestFields& fields, const ServedModel& model, SamplingParams& params) {
  auto& lists = params.token_rules.bad_words;
  for (const std::string& text : fields.texts("bad_words", max_bad_words, max_bad_word_bytes)) {
    const std::string word = text.substr(std::min(text.find_first_not_of(' '), text.size()));
    if (word.empty()) refuse("bad_words", "bad_words: a text is empty");
    const auto alone = value_or_refuse("bad_words", model.encode(word, false));
    const auto within = value_or_refuse("bad_words", model.encode(" " + word, false));
    lists.push_back(alone);
    if (within != alone) lists.push_back(within);
  }
}

}  // namespace

std::shared_ptr<const TokenMask> read_allowed(RequestFields& fields, const ServedModel& model) {
  const auto allowed = fields.ids("allowed_token_ids", model.vocabulary());
  if (!allowed) return nullptr;
  if (allowed->empty())
    refuse("allowed_token_ids", "allowed_token_ids is empty; at least one token must be allowed");
  auto mask = std::make_shared<TokenMask>(static_cast<std::size_t>(model.vocabulary()));
  for (const std::int32_t id : *allowed) mask->set(id);
  return mask;
}

namespace {

std::uint64_t random_seed() {
  std::random_device source;
  return (std::uint64_t{source()} << 32 | source()) >> 1;
}

}  // namespace

SamplingParams read_sampling(RequestFields& fields, const ServedModel& model) {
  SamplingParams params = model.defaults();
  read_filters(fields, params);
  const auto seed = fields.integer("seed", any_low, any_high);
  params.seed = seed ? static_cast<std::uint64_t>(*seed) : random_seed();
  params.stop_strings = fields.texts("stop", engine::generate::max_stop_strings,
                                     engine::generate::max_stop_string_bytes);
  params.stop_tokens =
      fields.ids("stop_token_ids", model.vocabulary(), engine::generate::max_stop_tokens)
          .value_or(std::vector<std::int32_t>());
  params.min_new_tokens =
      static_cast<std::int32_t>(fields.integer("min_tokens", 0, model.context()).value_or(0));
  params.ignore_eos = fields.flag("ignore_eos", false);
  read_logit_bias(fields, model.vocabulary(), params);
  read_bad_words(fields, model, params);
  return params;
}

}  // namespace troupe::launch::serve::api

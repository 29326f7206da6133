#include "launch/serve/api/sampling_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/generate/sampling_bounds.h"
#include "engine/generate/sampling_params_json.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/fields/sampling_names.h"

namespace troupe::launch::serve::api {

using engine::constraints::TokenMask;
using engine::generate::SamplingParams;

namespace {

constexpr std::int64_t any_low = std::numeric_limits<std::int64_t>::min(),
                       any_high = std::numeric_limits<std::int64_t>::max();

/// Clients write 5.0 for 5.
bool is_whole(double value) {
  return std::floor(value) == value && std::abs(value) < 1e15;
}

/// The lists of ids and texts are bounded by validate(), and the body by the server.
void read_params(RequestFields& fields, SamplingParams& params) {
  each_common_param(
      params, [&](std::string_view name, auto& member, const Range& range, std::string_view) {
        const std::string_view request = request_name(name);
        const Json* value = fields.find(request);
        if (value == nullptr || value->is_null()) return;
        if (name == "top_k" && *value == Json(-1)) return void(params.top_k = 0);
        const bool whole = std::is_integral_v<std::remove_cvref_t<decltype(member)>> &&
                           value->is_number() && is_whole(value->number());
        const Json given = whole ? Json(static_cast<std::int64_t>(value->number())) : *value;
        const std::string field = fields.path(request);
        if (auto done = engine::generate::read_sampling_param(request, given, params); !done)
          refuse(field, done.error().what);
        if (const auto why = engine::generate::out_of_range(field, member, range); !why.empty())
          refuse(field, why);
      });
}

/// What each parameter alone does not say.
void check_params(RequestFields& fields, const SamplingParams& params, std::int64_t vocabulary) {
  SamplingParams checked = params;
  checked.max_new_tokens = std::max(params.max_new_tokens, params.min_new_tokens);
  if (const auto valid = engine::generate::validate(checked, vocabulary); !valid) {
    const std::string& what = valid.error().what;
    const std::string name = what.substr(0, what.find_first_of(": "));
    refuse(fields.path(request_name(name)), what);
  }
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
    const std::int32_t id = parse_number<std::int32_t>(key).value_or(-1);
    if (id < 0 || id >= vocabulary) {
      refuse("logit_bias", cat("logit_bias: ", quote(key), " is not a token of this model; ",
                               "allowed: 0 to ", vocabulary - 1));
    }
    if (!bias.is_number() || !(bias.number() >= -100 && bias.number() <= 100))
      refuse("logit_bias", cat("logit_bias of ", key, ": expected a number from -100 to 100"));
    params.token_rules.sequence_bias.push_back({{id}, bias.number()});
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
  read_params(fields, params);
  const auto seed = fields.integer("seed", any_low, any_high);
  params.seed = seed ? static_cast<std::uint64_t>(*seed) : random_seed();
  params.stop_strings = fields.texts("stop", engine::generate::max_stop_strings,
                                     engine::generate::max_stop_string_bytes);
  params.stop_tokens =
      fields.ids("stop_token_ids", model.vocabulary(), engine::generate::max_stop_tokens)
          .value_or(std::vector<std::int32_t>());
  read_logit_bias(fields, model.vocabulary(), params);
  if (auto done = engine::generate::resolve_bad_words(
          params, [&](std::string_view text) { return model.encode(text, false); });
      !done)
    refuse("bad_words", done.error().what);
  check_params(fields, params, model.vocabulary());
  return params;
}

}  // namespace troupe::launch::serve::api

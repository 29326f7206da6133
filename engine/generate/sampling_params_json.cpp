#include "engine/generate/sampling_params_json.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/generate/sampling_bounds.h"

namespace troupe::engine::generate {

namespace {

using Ids = std::vector<std::int32_t>;

/// What beam search, special prompts and reports have; `field` is called as by each_field().
template <class Field>
void each_other(SamplingParams& p, const Field& field) {
  field("encoder_repetition_penalty", p.token_rules.prompt_repetition_penalty);
  field("encoder_no_repeat_ngram_size", p.token_rules.prompt_no_repeat_ngram);
  field("num_beams", p.beams.count);
  field("length_penalty", p.beams.length_penalty);
  field("early_stopping", p.beams.early_stopping);
  field("num_return_sequences", p.beams.returned);
  field("renormalize_logits", p.beams.renormalize);
  field("begin_suppress_tokens", p.token_rules.begin_suppress_tokens);
  field("forced_bos_token_id", p.token_rules.forced_first);
  field("forced_eos_token_id", p.token_rules.forced_last);
  field("stop_token_ids", p.stop_tokens);
  field("top_logprobs", p.top_logprobs);
  field("seed", p.seed);
}

template <class Field>
void each_param(SamplingParams& params, const Field& field) {
  SamplingParams::each_field(params, field);
  each_other(params, field);
}

/// Forms of other parameters: the negation of greedy, an object from ids to biases, [start,
/// factor].
constexpr std::string_view other_forms[] = {"do_sample", "logit_bias",
                                            "exponential_decay_length_penalty"};

/// Converts a value to the type of a parameter.
struct Reader {
  std::string_view key;
  const Json& value;

  Result<> wrong(std::string_view expected) const {
    return fail(Errc::bad_input, cat(key, ": expected ", expected, ", found ", value.type_name()));
  }
  Reader at(const Json& item) const { return {key, item}; }
  /// A list, or one item that stands for a list of one.
  Json::Array items() const { return value.is_array() ? value.array() : Json::Array{value}; }

  Result<> operator()(double* to) const {
    if (!value.is_number()) return wrong("a number");
    *to = value.number();
    return {};
  }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Result<>
  operator()(Integer* to) const {
    if (!value.is_integer()) return wrong("an integer");
    constexpr auto high = std::int64_t{std::numeric_limits<std::int32_t>::max()};
    // Others are checked by the range of the field.
    constexpr bool ranged = std::same_as<Integer, std::int64_t>;
    if (!ranged && (value.integer() < 0 || value.integer() > high))
      return fail(Errc::bad_input, cat(key, " is ", value.integer(), "; allowed: 0 to ", high));
    *to = static_cast<Integer>(value.integer());
    return {};
  }
  Result<> operator()(bool* to) const {
    if (!value.is_bool()) return wrong("true or false");
    *to = value.boolean();
    return {};
  }
  Result<> operator()(EarlyStopping* to) const {
    if (!value.is_bool() && value != Json("never")) return wrong("true, false or \"never\"");
    *to = !value.is_bool()  ? EarlyStopping::never
          : value.boolean() ? EarlyStopping::yes
                            : EarlyStopping::no;
    return {};
  }
  template <class Item>
  Result<> list(std::vector<Item>& to, const Json::Array& from) const {
    std::vector<Item> all;
    all.reserve(from.size());
    for (const Json& item : from) {
      RETURN_IF_ERROR(at(item)(&all.emplace_back()));
    }
    to = std::move(all);
    return {};
  }
  Result<> operator()(Ids* to) const { return list(*to, items()); }
  Result<> operator()(BadWord* to) const {
    if (!value.is_string() && !value.is_array()) return wrong("a text or a list of ids");
    return value.is_string() ? (*this)(&to->text) : (*this)(&to->ids);
  }
  Result<> operator()(std::vector<BadWord>* to) const {
    if (!value.is_array() && !value.is_string()) return wrong("a list of texts and lists of ids");
    return list(*to, items());
  }
  Result<> operator()(std::string* to) const {
    if (!value.is_string()) return wrong("a text or a list of texts");
    *to = value.string();
    return {};
  }
  Result<> operator()(std::vector<std::string>* to) const { return list(*to, items()); }
  Result<> operator()(SequenceBias* to) const {
    if (!value.is_array() || value.array().size() != 2) return wrong("a list of pairs [ids, bias]");
    RETURN_IF_ERROR(at(value.array()[0])(&to->ids));
    return at(value.array()[1])(&to->bias);
  }
  Result<> operator()(std::vector<SequenceBias>* to) const {
    if (!value.is_array()) return wrong("a list of pairs [ids, bias]");
    return list(*to, value.array());
  }
  /// An object from ids in decimal to biases of their logits.
  Result<> logit_bias(std::vector<SequenceBias>& to) const {
    if (!value.is_object()) return wrong("an object from ids to numbers");
    std::vector<SequenceBias> all;
    for (const auto& [name, bias] : value.object()) {
      const auto id = parse_number<std::int32_t>(name);
      if (!id) return fail(Errc::bad_input, cat(key, ": ", quote(name), " is not a token id"));
      all.push_back({{*id}, 0});
      RETURN_IF_ERROR(at(bias)(&all.back().bias));
    }
    to = std::move(all);
    return {};
  }
  Result<> decay(TokenRules& to) const {
    if (!value.is_array() || value.array().size() != 2) return wrong("[start, factor]");
    RETURN_IF_ERROR(at(value.array()[0])(&to.decay_start));
    return at(value.array()[1])(&to.decay_factor);
  }
  Result<> other_form(SamplingParams& params) const {
    if (key == "logit_bias") return logit_bias(params.token_rules.sequence_bias);
    if (key == "exponential_decay_length_penalty") return decay(params.token_rules);
    bool do_sample = false;
    RETURN_IF_ERROR((*this)(&do_sample));
    params.greedy = !do_sample;
    return {};
  }
};

/// Names elsewhere, and those of each_field().
constexpr std::pair<std::string_view, std::string_view> aliases[] = {
    {"max_tokens", "max_new_tokens"},
    {"min_tokens", "min_new_tokens"},
    {"stop_strings", "stop"},
    {"bad_words_ids", "bad_words"}};

}  // namespace

std::string_view sampling_param_named(std::string_view name) {
  const auto* found = std::ranges::find(aliases, name, [](const auto& each) { return each.first; });
  return found == std::end(aliases) ? name : found->second;
}

Result<bool> read_sampling_param(std::string_view key, const Json& value, SamplingParams& params) {
  const std::string_view name = sampling_param_named(key);
  const Reader reader{key, value};
  const bool other = std::ranges::find(other_forms, name) != std::end(other_forms);
  if (other && !value.is_null()) RETURN_IF_ERROR(reader.other_form(params));
  if (other) return true;
  bool known = false;
  Result<> done;
  each_param(params, [&](std::string_view each, auto& member, const auto&... rest) {
    if (each != name) return;
    known = true;
    if (value.is_null()) return;
    done = reader(&member);
    if (!done) return;
    if (std::string why = out_of_range(key, member, detail::range_of(rest...)); !why.empty())
      done = fail(Errc::bad_input, std::move(why));
  });
  RETURN_IF_ERROR(done);
  return known;
}

std::vector<std::string_view> sampling_param_names() {
  std::vector<std::string_view> names(std::begin(other_forms), std::end(other_forms));
  for (const auto& [alias, name] : aliases) names.push_back(alias);
  SamplingParams params;
  each_param(params, [&](const char* name, const auto&...) { names.emplace_back(name); });
  return names;
}

bool requires_sampling(std::string_view key) {
  bool found = false;
  SamplingParams params;
  SamplingParams::each_filter(
      params, [&](std::string_view name, const auto&...) { found = found || name == key; });
  return found;
}

}  // namespace troupe::engine::generate

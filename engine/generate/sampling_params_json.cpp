#include "engine/generate/sampling_params_json.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <variant>

#include "engine/base/text.h"

namespace troupe::engine::generate {

namespace {

using Ids = std::vector<std::int32_t>;

/// do_sample: the negation of greedy.
struct DoSample {
  bool* greedy;
};
/// An object from ids in decimal to biases of their logits.
struct LogitBias {
  std::vector<SequenceBias>* to;
};
struct Decay {
  std::int32_t* start;
  double* factor;
};
using Slot = std::variant<double*, std::int32_t*, std::int64_t*, std::uint64_t*, bool*, DoSample,
                          EarlyStopping*, Ids*, std::vector<Ids>*, std::vector<std::string>*,
                          std::vector<SequenceBias>*, LogitBias, Decay>;

struct Setting {
  std::string_view key;
  Slot (*slot)(SamplingParams&);
  bool requires_sampling = false;
};

constexpr Setting settings[] = {
    {"temperature", [](SamplingParams& p) -> Slot { return &p.temperature; }, true},
    {"top_k", [](SamplingParams& p) -> Slot { return &p.top_k; }, true},
    {"top_p", [](SamplingParams& p) -> Slot { return &p.top_p; }, true},
    {"min_p", [](SamplingParams& p) -> Slot { return &p.min_p; }, true},
    {"typical_p", [](SamplingParams& p) -> Slot { return &p.typical_p; }, true},
    {"epsilon_cutoff", [](SamplingParams& p) -> Slot { return &p.epsilon_cutoff; }, true},
    {"eta_cutoff", [](SamplingParams& p) -> Slot { return &p.eta_cutoff; }, true},
    {"top_h", [](SamplingParams& p) -> Slot { return &p.top_h; }, true},
    {"repetition_penalty", [](SamplingParams& p) -> Slot { return &p.repetition_penalty; }},
    {"presence_penalty", [](SamplingParams& p) -> Slot { return &p.presence_penalty; }},
    {"frequency_penalty", [](SamplingParams& p) -> Slot { return &p.frequency_penalty; }},
    {"no_repeat_ngram_size", [](SamplingParams& p) -> Slot { return &p.no_repeat_ngram; }},
    {"encoder_repetition_penalty",
     [](SamplingParams& p) -> Slot { return &p.token_rules.prompt_repetition_penalty; }},
    {"encoder_no_repeat_ngram_size",
     [](SamplingParams& p) -> Slot { return &p.token_rules.prompt_no_repeat_ngram; }},
    {"max_new_tokens", [](SamplingParams& p) -> Slot { return &p.max_new_tokens; }},
    {"max_tokens", [](SamplingParams& p) -> Slot { return &p.max_new_tokens; }},
    {"min_new_tokens", [](SamplingParams& p) -> Slot { return &p.min_new_tokens; }},
    {"do_sample", [](SamplingParams& p) -> Slot { return DoSample{&p.greedy}; }},
    {"num_beams", [](SamplingParams& p) -> Slot { return &p.beams.count; }},
    {"length_penalty", [](SamplingParams& p) -> Slot { return &p.beams.length_penalty; }},
    {"early_stopping", [](SamplingParams& p) -> Slot { return &p.beams.early_stopping; }},
    {"num_return_sequences", [](SamplingParams& p) -> Slot { return &p.beams.returned; }},
    {"renormalize_logits", [](SamplingParams& p) -> Slot { return &p.beams.renormalize; }},
    {"bad_words_ids", [](SamplingParams& p) -> Slot { return &p.token_rules.bad_words; }},
    {"sequence_bias", [](SamplingParams& p) -> Slot { return &p.token_rules.sequence_bias; }},
    {"logit_bias",
     [](SamplingParams& p) -> Slot { return LogitBias{&p.token_rules.sequence_bias}; }},
    {"suppress_tokens", [](SamplingParams& p) -> Slot { return &p.token_rules.suppress_tokens; }},
    {"begin_suppress_tokens",
     [](SamplingParams& p) -> Slot { return &p.token_rules.begin_suppress_tokens; }},
    {"forced_bos_token_id", [](SamplingParams& p) -> Slot { return &p.token_rules.forced_first; }},
    {"forced_eos_token_id", [](SamplingParams& p) -> Slot { return &p.token_rules.forced_last; }},
    {"exponential_decay_length_penalty",
     [](SamplingParams& p) -> Slot {
       return Decay{&p.token_rules.decay_start, &p.token_rules.decay_factor};
     }},
    {"stop", [](SamplingParams& p) -> Slot { return &p.stop_strings; }},
    {"stop_strings", [](SamplingParams& p) -> Slot { return &p.stop_strings; }},
    {"stop_token_ids", [](SamplingParams& p) -> Slot { return &p.stop_tokens; }},
    {"ignore_eos", [](SamplingParams& p) -> Slot { return &p.ignore_eos; }},
    {"top_logprobs", [](SamplingParams& p) -> Slot { return &p.top_logprobs; }},
    {"seed", [](SamplingParams& p) -> Slot { return &p.seed; }},
};

const Setting* find_setting(std::string_view key) {
  const auto* found = std::ranges::find(settings, key, &Setting::key);
  return found == std::end(settings) ? nullptr : found;
}

/// Converts a value to the type of a slot.
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
    if (value.integer() < 0 || value.integer() > high) {
      return fail(Errc::bad_input, cat(key, " is ", value.integer(), "; allowed: 0 to ", high));
    }
    *to = static_cast<Integer>(value.integer());
    return {};
  }
  Result<> operator()(bool* to) const {
    if (!value.is_bool()) return wrong("true or false");
    *to = value.boolean();
    return {};
  }
  Result<> operator()(DoSample to) const {
    bool do_sample = false;
    RETURN_IF_ERROR((*this)(&do_sample));
    *to.greedy = !do_sample;
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
  Result<> operator()(std::vector<Ids>* to) const {
    if (!value.is_array()) return wrong("a list of lists of ids");
    return list(*to, value.array());
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
  Result<> operator()(LogitBias to) const {
    if (!value.is_object()) return wrong("an object from ids to numbers");
    std::vector<SequenceBias> all;
    for (const auto& [name, bias] : value.object()) {
      std::int32_t id = 0;
      const auto read = std::from_chars(name.data(), name.data() + name.size(), id);
      if (read.ec != std::errc() || read.ptr != name.data() + name.size()) {
        return fail(Errc::bad_input, cat(key, ": ", quote(name), " is not a token id"));
      }
      all.push_back({{id}, 0});
      RETURN_IF_ERROR(at(bias)(&all.back().bias));
    }
    *to.to = std::move(all);
    return {};
  }
  Result<> operator()(Decay to) const {
    if (!value.is_array() || value.array().size() != 2) return wrong("[start, factor]");
    RETURN_IF_ERROR(at(value.array()[0])(to.start));
    return at(value.array()[1])(to.factor);
  }
};

}  // namespace

Result<bool> read_sampling_param(std::string_view key, const Json& value, SamplingParams& params) {
  const Setting* setting = find_setting(key);
  if (!setting) return false;
  if (value.is_null()) return true;
  RETURN_IF_ERROR(std::visit(Reader{key, value}, setting->slot(params)));
  return true;
}

std::vector<std::string_view> sampling_param_names() {
  std::vector<std::string_view> names;
  for (const Setting& setting : settings) names.push_back(setting.key);
  return names;
}

bool requires_sampling(std::string_view key) {
  const Setting* setting = find_setting(key);
  return setting && setting->requires_sampling;
}

}  // namespace troupe::engine::generate

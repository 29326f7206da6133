#include "engine/data/layouts/unpaired.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

// Splits before the first trained token.
Result<UnpairedExample> cut_in_two(const SftExample& whole, bool desirable) {
  const auto first = std::find_if(whole.weights.begin(), whole.weights.end(),
                                  [](float weight) { return weight != 0; });
  const auto prompt = first - whole.weights.begin();
  if (prompt == 0) return bad_row("the completion begins at the first token: there is no prompt");
  return UnpairedExample{{whole.ids.begin(), whole.ids.begin() + prompt},
                         {whole.ids.begin() + prompt, whole.ids.end()},
                         {first, whole.weights.end()},
                         desirable};
}

}  // namespace

Result<Sample> with_label(Result<Sample> sample, const Columns& row) {
  if (!sample) return sample;
  const auto* label = row.first({"label", "kto_tag"});
  const bool number =
      label && label->is_integer() && (label->integer() == 0 || label->integer() == 1);
  if (label && label->is_string()) {  // in a csv file everything is text
    const auto& word = label->string();
    if (word == "true" || word == "True" || word == "1") {
      sample->desirable = true;
      return sample;
    }
    if (word == "false" || word == "False" || word == "0") {
      sample->desirable = false;
      return sample;
    }
  }
  if (!number && !(label && label->is_bool())) {
    const auto found = !label                                     ? std::string("nothing")
                       : label->is_string() || label->is_number() ? label->dump()
                                                                  : label->type_name();
    return bad_row(cat("expected true (a good answer) or false under ",
                       quote(row.file_name("label")), ", found ", found));
  }
  sample->desirable = number ? label->integer() == 1 : label->boolean();
  return sample;
}

Result<std::optional<UnpairedRow>> encode_unpaired(const Sample& sample, const TextEncoder& encoder,
                                                   const EncodeOptions& options) {
  auto whole = options;
  whole.max_length = 0;
  whole.train_on_prompt = false;
  UnpairedRow row;
  const auto add = [&](const Sample& of, bool desirable) -> Result<bool> {
    const auto encoded = encode_sft(of, encoder, whole);
    RETURN_IF_ERROR(encoded);
    if (!*encoded) return false;
    auto example = cut_in_two(**encoded, desirable);
    RETURN_IF_ERROR(example);
    const auto limit = static_cast<std::size_t>(options.max_length);
    if (options.max_length > 0 && example->prompt.size() >= limit) return false;
    if (options.max_length > 0 && (*encoded)->ids.size() > limit)
      row.cut_tokens += static_cast<std::int64_t>((*encoded)->ids.size() - limit);
    row.examples.push_back(std::move(*example));
    return true;
  };
  auto first = add(sample, sample.desirable.value_or(true));
  RETURN_IF_ERROR(first);
  if (!*first) return std::nullopt;
  if (!sample.desirable) {
    Sample other = sample;
    other.completion = sample.rejected;
    other.tokens = sample.rejected_tokens;
    auto second = add(other, false);
    RETURN_IF_ERROR(second);
    if (!*second) return std::nullopt;
  }
  return row;
}

}  // namespace troupe::engine::data

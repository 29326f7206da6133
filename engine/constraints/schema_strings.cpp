#include "engine/constraints/schema_strings.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/constraints/formats.h"
#include "engine/constraints/schema_compiler.h"

namespace troupe::engine::constraints {

StringFacts string_facts_of(const Conjunction& all) {
  StringFacts out;
  const auto add = [](std::vector<std::string>& to, const std::string& text) {
    if (std::ranges::find(to, text) == to.end()) to.push_back(text);
  };
  for (const Atom* atom : all.atoms) {
    const Json& schema = *atom->schema;
    const std::string* pattern = text_of(schema, "pattern", *atom->where);
    if (atom->negated) {
      if (pattern != nullptr) out.denied.push_back(pattern);
      if (const Json* values = schema.find("enum"))
        for (const Json& value : values->array())
          if (value.is_string()) out.excluded.push_back(value.string());
      continue;
    }
    if (pattern != nullptr) add(out.patterns, *pattern);
    if (const std::string* format = text_of(schema, "format", *atom->where))
      if (const std::string form = format_pattern(*format); !form.empty()) add(out.formats, form);
    out.counted =
        narrow_counts(out.length, schema, "minLength", "maxLength", *atom->where) || out.counted;
  }
  return out;
}

Grammar::Rule SchemaCompiler::string(const Leaf& leaf) {
  const StringFacts facts = string_facts_of(leaf.all);
  const std::size_t forms = facts.patterns.size() + facts.formats.size();
  const bool plain = facts.denied.empty() && facts.excluded.empty();
  if (plain && forms == 0 && !facts.counted) return rules_.string();
  const Rule rule = grammar_.add_rule();
  Node at = grammar_.text(grammar_.begin(rule), "\"");
  if (facts.length.most && *facts.length.most < facts.length.least) return rule;
  if (plain && forms == 0)
    at = add_repeated(grammar_, at, rules_.character(), facts.length);
  else if (plain && forms == 1 && !facts.counted)
    at = add_regex(grammar_, at, facts.patterns.empty() ? facts.formats[0] : facts.patterns[0],
                   TextForm::json, {.ecma = true});
  else
    at = strings(leaf.all).add_to(grammar_, at);
  grammar_.add_empty(grammar_.text(at, "\""), grammar_.end(rule));
  return rule;
}

/// An expression describes the whole string, unless no string is left then.
TextSet SchemaCompiler::strings(const Conjunction& all) {
  if (const auto values = constants_of(all)) {
    std::vector<std::string> texts;
    for (const Json& value : *values)
      if (value.is_string()) texts.push_back(value.string());
    return TextSet::of_texts(grammar_.work(), texts);
  }
  const StringFacts facts = string_facts_of(all);
  const auto found = [&](bool whole) {
    std::optional<TextSet> out;
    const auto keep = [&](const TextSet& set) { out = out ? out->intersected(set) : set; };
    for (const std::string& form : facts.formats) keep(patterns_.whole(form));
    for (const std::string& pattern : facts.patterns)
      keep(whole ? patterns_.whole(pattern) : patterns_.surely(pattern));
    if (!out) out = patterns_.all();
    for (const std::string* pattern : facts.denied) out = out->without(patterns_.perhaps(*pattern));
    if (!facts.excluded.empty())
      out = out->without(TextSet::of_texts(grammar_.work(), facts.excluded));
    return facts.counted ? out->of_length(facts.length) : *out;
  };
  TextSet out = found(true);
  return out.empty() && !facts.patterns.empty() ? found(false) : out;
}

}  // namespace troupe::engine::constraints

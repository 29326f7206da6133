#include "engine/constraints/instance_check.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/constraints/formats.h"

namespace troupe::engine::constraints {

bool InstanceCheck::satisfies(const Json& value, const Atom& atom) {
  const Task task{*atom.schema, atom.negated, 0};
  return is_local(value, task) != atom.negated;
}

bool InstanceCheck::is_instance(const Json& value, const Json& schema, bool doubt, int depth) {
  grammar_.spend(2);
  if (depth > max_nesting) return doubt;
  if (schema.is_bool()) return schema.boolean();
  if (!schema.is_object()) return doubt;
  const Task task{schema, doubt, depth + 1};
  if (const Json* reference = schema.find("$ref"); reference != nullptr && reference->is_string()) {
    const Json& target = source_.find(schema, reference->string(), SchemaPath("$ref"));
    if (!is_instance(value, target, doubt, depth + 1)) return false;
    if (source_.references_stand_alone()) return true;
  }
  return is_local(value, task) && std::ranges::all_of(schema.object(), [&](const auto& member) {
           return applies(value, task, member.first, member.second);
         });
}

bool InstanceCheck::is_local(const Json& value, const Task& task) {
  return std::ranges::all_of(task.schema.object(), [&](const auto& member) {
    grammar_.spend(1);
    return asserts(value, task, member.first, member.second);
  });
}

/// Keywords that apply schemas to the value itself.
bool InstanceCheck::applies(const Json& value, const Task& task, const std::string& keyword,
                            const Json& wanted) {
  const auto holds = [&](const Json& schema, bool doubt) {
    return is_instance(value, schema, doubt, task.depth);
  };
  if (keyword == "not") return !holds(wanted, !task.doubt);
  if (keyword == "dependencies" || keyword == "dependentRequired" || keyword == "dependentSchemas")
    return dependencies_hold(value, task, wanted);
  if (keyword == "if") {
    const Json* then = task.schema.find("then");
    const Json* otherwise = task.schema.find("else");
    const bool met = then == nullptr || holds(*then, task.doubt);
    const bool unmet = otherwise == nullptr || holds(*otherwise, task.doubt);
    const bool certain = holds(wanted, false), possible = holds(wanted, true);
    if (certain == possible) return certain ? met : unmet;
    return task.doubt ? met || unmet : met && unmet;
  }
  if (!wanted.is_array()) return true;
  const auto count = [&](bool doubt) {
    return std::ranges::count_if(wanted.array(),
                                 [&](const Json& each) { return holds(each, doubt); });
  };
  if (keyword == "allOf") return count(task.doubt) == std::ssize(wanted.array());
  if (keyword == "anyOf") return count(task.doubt) > 0;
  if (keyword != "oneOf") return true;
  const auto certain = count(false), possible = count(true);
  return task.doubt ? certain <= 1 && possible >= 1 : certain == 1 && possible == 1;
}

bool InstanceCheck::dependencies_hold(const Json& value, const Task& task, const Json& wanted) {
  if (!value.is_object() || !wanted.is_object()) return true;
  return std::ranges::all_of(wanted.object(), [&](const auto& member) {
    const auto& [name, needed] = member;
    if (value.find(name) == nullptr) return true;
    if (needed.is_string()) return value.find(needed.string()) != nullptr;
    if (!needed.is_array()) return is_instance(value, needed, task.doubt, task.depth);
    return std::ranges::all_of(needed.array(), [&](const Json& each) {
      return each.is_string() && value.find(each.string()) != nullptr;
    });
  });
}

bool InstanceCheck::is_among(const Json& value, const Json& values) {
  if (!values.is_array()) return false;
  const auto [found, is_new] = constants_.try_emplace(&values);
  if (is_new) {
    for (const Json& each : values.array()) {
      std::string text = canonical_text(each);
      grammar_.spend(1 + text.size() / 8);
      found->second.insert(std::move(text));
    }
  }
  const std::string text = canonical_text(value);
  grammar_.spend(1 + text.size() / 8);
  return found->second.contains(text);
}

bool InstanceCheck::asserts(const Json& value, const Task& task, const std::string& keyword,
                            const Json& wanted) {
  if (keyword == "const") return canonical_text(value) == canonical_text(wanted);
  if (keyword == "enum") return is_among(value, wanted);
  if (keyword == "type") {
    JsonTypes types = types_of(task.schema, SchemaPath("type"));
    if (types.has(JsonType::number)) types.add(JsonType::integer);
    if (!value.is_number()) return types.has(json_type_of(value));
    const bool whole = value.is_integer() || value.number() == std::floor(value.number());
    return types.has(JsonType::number) || (whole && types.has(JsonType::integer));
  }
  // What this check does not know is in doubt.
  if (keyword == "unevaluatedProperties") return !value.is_object() || task.doubt;
  if (keyword == "contains" || keyword == "unevaluatedItems")
    return !value.is_array() || task.doubt;
  if (keyword == "$dynamicRef" || keyword == "$recursiveRef" || keyword == "extends" ||
      keyword == "disallow" || keyword == "divisibleBy")
    return task.doubt;
  if (value.is_string()) return string_is(value, task, keyword, wanted);
  if (value.is_number()) return number_is(value, task, keyword, wanted);
  if (value.is_array()) return list_is(value, task, keyword, wanted);
  if (value.is_object()) return object_is(value, task, keyword, wanted);
  return true;
}

bool InstanceCheck::matches(const std::string& text, const std::string& pattern, bool doubt) {
  return (doubt ? patterns_.perhaps(pattern) : patterns_.surely(pattern)).contains(text);
}

bool InstanceCheck::string_is(const Json& value, const Task& task, const std::string& keyword,
                              const Json& wanted) {
  const std::string& text = value.string();
  if (wanted.is_number() && (keyword == "minLength" || keyword == "maxLength")) {
    grammar_.spend(1 + text.size() / 8);
    const auto length = static_cast<double>(count_code_points(text));
    return keyword == "minLength" ? length >= wanted.number() : length <= wanted.number();
  }
  if (keyword == "pattern" && wanted.is_string()) return matches(text, wanted.string(), task.doubt);
  if (keyword != "format" || !wanted.is_string()) return true;
  const std::string form = format_pattern(wanted.string());
  return form.empty() || task.doubt || patterns_.whole(form).contains(text);
}

bool InstanceCheck::number_is(const Json& value, const Task& task, const std::string& keyword,
                              const Json& wanted) {
  if (!wanted.is_number()) return true;
  const long double number = exact_number(value), bound = exact_number(wanted);
  const auto flagged = [&](const char* name) {
    const Json* flag = task.schema.find(name);
    return flag != nullptr && *flag == Json(true);
  };
  if (keyword == "minimum") return flagged("exclusiveMinimum") ? number > bound : number >= bound;
  if (keyword == "maximum") return flagged("exclusiveMaximum") ? number < bound : number <= bound;
  if (keyword == "exclusiveMinimum") return number > bound;
  if (keyword == "exclusiveMaximum") return number < bound;
  return keyword != "multipleOf" || is_multiple(value, wanted) || task.doubt;
}

bool InstanceCheck::list_is(const Json& value, const Task& task, const std::string& keyword,
                            const Json& wanted) {
  const Json::Array& list = value.array();
  const auto size = static_cast<double>(list.size());
  if (keyword == "minItems" && wanted.is_number()) return size >= wanted.number();
  if (keyword == "maxItems" && wanted.is_number()) return size <= wanted.number();
  if (keyword == "uniqueItems" && wanted == Json(true)) {
    std::unordered_set<std::string> texts;
    for (const Json& each : list) texts.insert(canonical_text(each));
    grammar_.spend(8 * list.size());
    return texts.size() == list.size();
  }
  const auto each_is = [&](std::size_t from, const Json& schema) {
    for (std::size_t i = from; i < list.size(); ++i)
      if (!is_instance(list[i], schema, task.doubt, task.depth + 1)) return false;
    return true;
  };
  if (keyword == "prefixItems" || (keyword == "items" && wanted.is_array())) {
    if (!wanted.is_array()) return true;
    for (std::size_t i = 0; i < std::min(list.size(), wanted.array().size()); ++i)
      if (!is_instance(list[i], wanted.array()[i], task.doubt, task.depth + 1)) return false;
    return true;
  }
  const Json* first = task.schema.find(keyword == "items" ? "prefixItems" : "items");
  const std::size_t from = first != nullptr && first->is_array() ? first->array().size() : 0;
  if (keyword == "items") return each_is(from, wanted);
  return keyword != "additionalItems" || from == 0 || each_is(from, wanted);
}

/// additionalProperties: of the members that neither properties nor patternProperties describe.
bool InstanceCheck::others_are(const Json& value, const Task& task, const Json& wanted) {
  const Json* properties = task.schema.find("properties");
  const Json* patterns = task.schema.find("patternProperties");
  return std::ranges::all_of(value.object(), [&](const auto& member) {
    if (properties != nullptr && properties->find(member.first) != nullptr) return true;
    if (patterns != nullptr && patterns->is_object() &&
        std::ranges::any_of(patterns->object(), [&](const auto& each) {
          return matches(member.first, each.first, task.doubt);
        }))
      return true;
    return is_instance(member.second, wanted, task.doubt, task.depth + 1);
  });
}

bool InstanceCheck::object_is(const Json& value, const Task& task, const std::string& keyword,
                              const Json& wanted) {
  const auto size = static_cast<double>(value.object().size());
  if (keyword == "minProperties" && wanted.is_number()) return size >= wanted.number();
  if (keyword == "maxProperties" && wanted.is_number()) return size <= wanted.number();
  if (keyword == "required" && wanted.is_array())
    return std::ranges::all_of(wanted.array(), [&](const Json& name) {
      return name.is_string() && value.find(name.string()) != nullptr;
    });
  if (keyword == "additionalProperties") return others_are(value, task, wanted);
  if (keyword == "propertyNames")
    return std::ranges::all_of(value.object(), [&](const auto& member) {
      return is_instance(Json(member.first), wanted, task.doubt, task.depth + 1);
    });
  if (!wanted.is_object()) return true;
  return std::ranges::all_of(value.object(), [&](const auto& member) {
    const auto& [name, part] = member;
    grammar_.spend(1);
    if (keyword == "properties") {
      const Json* described = wanted.find(name);
      return described == nullptr || is_instance(part, *described, task.doubt, task.depth + 1);
    }
    if (keyword != "patternProperties") return true;
    return std::ranges::all_of(wanted.object(), [&](const auto& each) {
      return !matches(name, each.first, !task.doubt) ||
             is_instance(part, each.second, task.doubt, task.depth + 1);
    });
  });
}

}  // namespace troupe::engine::constraints

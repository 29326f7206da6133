#include "engine/constraints/schema_source.h"

#include <algorithm>
#include <array>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/constraints/json_schema_types.h"

namespace troupe::engine::constraints {

namespace {

/// Keywords whose values are schemas by name, and those that are schemas or lists of schemas: what
/// other keywords have is data.
constexpr std::array<std::string_view, 6> schema_maps = {
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"};
constexpr std::array<std::string_view, 16> schema_parts = {"allOf",
                                                           "anyOf",
                                                           "oneOf",
                                                           "not",
                                                           "if",
                                                           "then",
                                                           "else",
                                                           "items",
                                                           "prefixItems",
                                                           "additionalItems",
                                                           "contains",
                                                           "additionalProperties",
                                                           "propertyNames",
                                                           "unevaluatedProperties",
                                                           "unevaluatedItems",
                                                           "contentSchema"};

template <class List>
bool is_among(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::ranges::end(list);
}

/// Parts of a URI with their delimiters; the fragment is left out.
struct Uri {
  std::string_view scheme, authority, path, query;
};

Uri parts_of(std::string_view text) {
  Uri out;
  const std::size_t colon = text.find_first_of(":/?");
  if (colon != std::string_view::npos && colon > 0 && text[colon] == ':') {
    out.scheme = text.substr(0, colon + 1);
    text.remove_prefix(colon + 1);
  }
  if (text.starts_with("//")) {
    out.authority = text.substr(0, std::min(text.find_first_of("/?", 2), text.size()));
    text.remove_prefix(out.authority.size());
  }
  out.path = text.substr(0, std::min(text.find('?'), text.size()));
  out.query = text.substr(out.path.size());
  return out;
}

std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  bool slash = false;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string_view part = path.substr(at, end - at);  // with the slash before it
    const std::string_view name = part.starts_with("/") ? part.substr(1) : part;
    slash = name == "." || name == "..";
    if (name == ".." && !kept.empty()) kept.pop_back();
    if (!slash) kept.push_back(part);
    at = end;
  }
  std::string out;
  for (const std::string_view part : kept) out += part;
  return slash ? out + "/" : out;
}

}  // namespace

std::string resolved_uri(std::string_view base, std::string_view reference) {
  const Uri from = parts_of(base), to = parts_of(reference);
  if (!to.scheme.empty()) return cat(to.scheme, to.authority, without_dots(to.path), to.query);
  if (!to.authority.empty()) return cat(from.scheme, to.authority, without_dots(to.path), to.query);
  if (to.path.empty())
    return cat(from.scheme, from.authority, from.path, to.query.empty() ? from.query : to.query);
  if (to.path.starts_with("/"))
    return cat(from.scheme, from.authority, without_dots(to.path), to.query);
  const std::size_t slash = from.path.rfind('/');
  const auto folder =
      slash == std::string_view::npos ? std::string_view() : from.path.substr(0, slash + 1);
  return cat(from.scheme, from.authority, without_dots(cat(folder, to.path)), to.query);
}

bool SchemaSource::references_stand_alone() const {
  const Json* draft = root_.find("$schema");
  return draft != nullptr && draft->is_string() &&
         draft->string().find("json-schema.org/draft-0") != std::string::npos;
}

void SchemaSource::index_schema(Place& place) {
  const Json& value = *place.value;
  const bool old = references_stand_alone();
  if (old && value.find("$ref") != nullptr) return;
  const Json* id = value.find("$id");
  if (id == nullptr && old) id = value.find("id");  // of draft 4
  if (id != nullptr && id->is_string()) {
    const std::string_view text = id->string();
    const std::size_t hash = std::min(text.find('#'), text.size());
    const std::string_view anchor = text.substr(std::min(hash + 1, text.size()));
    if (hash > 0) place.base = resolved_uri(place.base, text.substr(0, hash));
    if (hash > 0) targets_.try_emplace(place.base, &value);
    if (!anchor.empty()) targets_.try_emplace(cat(place.base, "#", anchor), &value);
  }
  for (const char* keyword : {"$anchor", "$dynamicAnchor"})
    if (const Json* anchor = value.find(keyword); anchor != nullptr && anchor->is_string())
      targets_.try_emplace(cat(place.base, "#", anchor->string()), &value);
}

void SchemaSource::index() {
  if (std::exchange(indexed_, true)) return;
  std::vector<Place> open = {{&root_, "", false}};
  while (!open.empty()) {
    Place place = std::move(open.back());
    open.pop_back();
    grammar_.spend(1 + place.base.size() / 16);
    if (place.value->is_array()) {
      for (const Json& each : place.value->array())
        if (each.is_object()) open.push_back({&each, place.base, false});
      continue;
    }
    if (!place.value->is_object()) continue;
    if (!place.named) {
      index_schema(place);
      if (place.value == &root_) root_base_ = place.base;
      if (place.base != root_base_) bases_.emplace(place.value, place.base);
    }
    for (const auto& [name, member] : place.value->object()) {
      grammar_.spend(1);
      if (!member.is_object() && !member.is_array()) continue;
      const bool named = !place.named && is_among(schema_maps, name);
      if (place.named || named || is_among(schema_parts, name))
        open.push_back({&member, place.base, named});
    }
  }
  targets_.try_emplace(root_base_, &root_);
}

const Json* SchemaSource::at_pointer(const Json& from, std::string_view pointer) {
  const Json* at = &from;
  for (std::size_t begin = 0; begin < pointer.size() && at != nullptr;) {
    const std::size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
    const auto key = unescaped_pointer(std::string(pointer.substr(begin + 1, end - begin - 1)));
    at = pointer[begin] == '/' ? members_.find(*at, key) : nullptr;
    begin = end;
  }
  return at;
}

const Json& SchemaSource::find(const Json& schema, const std::string& reference,
                               const SchemaPath& where) {
  index();
  grammar_.spend(1 + reference.size() / 8);
  const auto nested = bases_.find(&schema);
  const std::string& base = nested == bases_.end() ? root_base_ : nested->second;
  const std::size_t hash = std::min(reference.find('#'), reference.size());
  const std::string_view fragment =
      std::string_view(reference).substr(std::min(hash + 1, reference.size()));
  const std::string uri =
      hash == 0 ? base : resolved_uri(base, std::string_view(reference).substr(0, hash));
  const auto resource = targets_.find(uri);
  if (resource == targets_.end())
    schema_unsupported(
        where, cat("$ref: only references within the schema (\"#/...\") are supported, found ",
                   quote(reference)));
  const Json* out = nullptr;
  if (fragment.empty() || fragment.starts_with("/")) {
    out = at_pointer(*resource->second, fragment);
  } else if (const auto anchor = targets_.find(cat(uri, "#", fragment)); anchor != targets_.end()) {
    out = anchor->second;
  }
  if (out == nullptr)
    schema_mistake(where, cat("$ref: there is no ", quote(reference), " in the schema"));
  return *out;
}

}  // namespace troupe::engine::constraints

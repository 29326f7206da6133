#include "engine/checkpoint/identity.h"

#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

Json files_json(const std::vector<PartFile>& files) {
  Json::Array list;
  for (const PartFile& file : files)
    list.push_back(
        Json::Object{{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.xxh3}});
  return list;
}

Result<InputPart> part_of(const Json& json, const std::string& where) {
  const auto name = get_string(json, "name", where);
  RETURN_IF_ERROR(name);
  InputPart out{.name = *name, .files = {}};
  const Json* files = json.find("files");
  if (!files || !files->is_array())
    return fail(Errc::corrupt, cat(where, ": \"files\" must be a list"));
  for (const Json& file : files->array()) {
    const auto file_name = get_string(file, "name", where);
    const auto bytes = get_integer(file, "bytes", where);
    const auto sum = get_string(file, "xxh3_128", where);
    RETURN_IF_ERROR(file_name);
    RETURN_IF_ERROR(bytes);
    RETURN_IF_ERROR(sum);
    out.files.push_back({*file_name, static_cast<std::uint64_t>(*bytes), *sum, ""});
  }
  return out;
}

Result<Identity> read_identity(const Json& json, const std::string& where) {
  Identity out;
  const Json *parts = json.find("parts"), *settings = json.find("settings");
  if (!parts || !parts->is_array() || !settings || !settings->is_object())
    return fail(Errc::corrupt,
                cat(where, ": expected the list \"parts\" and the object \"settings\""));
  for (const Json& each : parts->array()) {
    auto part = part_of(each, where);
    RETURN_IF_ERROR(part);
    out.parts.push_back(std::move(*part));
  }
  for (const auto& [key, value] : settings->object()) {
    if (!value.is_string())
      return fail(Errc::corrupt, cat(where, ": \"settings\": ", quote(key), " must be a text"));
    out.settings.emplace_back(key, value.string());
  }
  return out;
}

}  // namespace

Json Identity::to_json() const {
  Json::Array list;
  for (const InputPart& part : parts)
    list.push_back(Json::Object{{"name", part.name}, {"files", files_json(part.files)}});
  Json::Object values;
  for (const auto& [key, value] : settings) values.emplace_back(key, value);
  return Json::Object{{"parts", std::move(list)}, {"settings", std::move(values)}};
}

Result<Identity> Identity::from_json(const Json& json, const std::string& where) {
  auto out = read_identity(json, where);
  if (!out) return fail(Errc::corrupt, out.error().what);
  return out;
}

Result<std::optional<Identity>> identity_in(const Json& state, const std::string& where) {
  const Json* recorded = state.find(identity_key);
  if (!recorded) return std::nullopt;
  auto out = Identity::from_json(*recorded, where);
  RETURN_IF_ERROR(out);
  return std::move(*out);
}

}  // namespace troupe::engine::checkpoint

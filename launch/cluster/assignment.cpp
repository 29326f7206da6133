#include "launch/cluster/assignment.h"

#include <initializer_list>
#include <utility>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::cluster {
namespace {

constexpr std::string_view assignment_text = "the assignment from launch";

struct TextField {
  const char* key;
  std::string Assignment::*member;
};
constexpr TextField texts[] = {{"node", &Assignment::node},
                               {"endpoint", &Assignment::endpoint},
                               {"server_key", &Assignment::server_key},
                               {"public_key", &Assignment::public_key},
                               {"secret_key", &Assignment::secret_key},
                               {"resume_from", &Assignment::resume_from},
                               {"build", &Assignment::build}};

Json to_json(const std::vector<InputFile>& files) {
  Json::Array out;
  for (const InputFile& file : files)
    out.push_back(
        Json::Object{{"path", file.path}, {"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}});
  return out;
}

Result<std::vector<InputFile>> inputs_in(const Json& line) {
  const Json* list = line.find("inputs");
  if (list == nullptr || !list->is_array())
    return fail(Errc::bad_input, cat(assignment_text, ": inputs: expected a list"));
  std::vector<InputFile> files;
  for (const Json& each : list->array()) {
    auto path = get_string(each, "path", assignment_text);
    const auto bytes = get_integer(each, "bytes", assignment_text);
    auto sum = get_string(each, "xxh3_128", assignment_text);
    RETURN_IF_ERROR(path);
    RETURN_IF_ERROR(bytes);
    RETURN_IF_ERROR(sum);
    files.push_back({std::move(*path), static_cast<std::uint64_t>(*bytes), std::move(*sum)});
  }
  return files;
}

}  // namespace

std::string to_line(const Assignment& assignment) {
  Json line = Json::Object{};
  for (const TextField& field : texts) line.set(field.key, assignment.*field.member);
  line.set("role", std::string(recipes::to_string(assignment.role)))
      .set("tp", assignment.grid.tp)
      .set("dp", assignment.grid.dp)
      .set("pp", assignment.grid.pp)
      .set("cp", assignment.grid.cp)
      .set("ranks_together", assignment.ranks_together)
      .set("inputs", to_json(assignment.inputs))
      .set("config", recipes::to_yaml(assignment.config));
  return line.dump() + "\n";
}

Result<Assignment> assignment_of(std::string_view line) {
  const auto json = parse_json(line, assignment_text, {.depth = 4, .bytes = 1u << 20});
  RETURN_IF_ERROR(json);
  Assignment out;
  const auto name = get_string(*json, "role", assignment_text);
  RETURN_IF_ERROR(name);
  const auto role = recipes::role_from(*name);
  if (!role)
    return fail(Errc::bad_input, cat(assignment_text, ": role: expected one of ",
                                     join(recipes::role_list(), ", "), "; found ", quote(*name)));
  out.role = *role;
  for (const TextField& field : texts) {
    auto text = get_string(*json, field.key, assignment_text);
    RETURN_IF_ERROR(text);
    out.*field.member = std::move(*text);
  }
  for (const auto& [key, into] : std::initializer_list<std::pair<const char*, int*>>{
           {"tp", &out.grid.tp},
           {"dp", &out.grid.dp},
           {"pp", &out.grid.pp},
           {"cp", &out.grid.cp},
           {"ranks_together", &out.ranks_together}}) {
    const auto number = get_integer(*json, key, assignment_text);
    RETURN_IF_ERROR(number);
    *into = static_cast<int>(*number);
  }
  auto inputs = inputs_in(*json);
  RETURN_IF_ERROR(inputs);
  out.inputs = std::move(*inputs);
  const auto config = get_string(*json, "config", assignment_text);
  RETURN_IF_ERROR(config);
  auto resolved = recipes::config_of(*config, std::string(assignment_text));
  RETURN_IF_ERROR(resolved);
  out.config = std::move(*resolved);
  out.grid.order = out.config.parallel.order;
  return out;
}

}  // namespace troupe::launch::cluster

#include "launch/run/group_status.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::launch::run {
namespace {

Json to_json(const GroupStatus& group) {
  Json out = Json::Object{
      {"node", group.node},     {"role", group.role},           {"pid", group.pid},
      {"state", group.state},   {"restarts", group.restarts},   {"queue", group.queue},
      {"leased", group.leased}, {"waits_for", group.waits_for}, {"seconds", group.seconds}};
  if (group.version) out.set("version", *group.version);
  return out;
}

Result<GroupStatus> group_of(const Json& json, const std::string& where) {
  GroupStatus out;
  struct Text {
    const char* key;
    std::string GroupStatus::*member;
  };
  struct Number {
    const char* key;
    std::int64_t GroupStatus::*member;
  };
  for (const auto& [key, member] :
       {Text{"node", &GroupStatus::node}, Text{"role", &GroupStatus::role},
        Text{"state", &GroupStatus::state}, Text{"waits_for", &GroupStatus::waits_for}}) {
    auto text = get_string(json, key, where);
    RETURN_IF_ERROR(text);
    out.*member = std::move(*text);
  }
  for (const auto& [key, member] :
       {Number{"pid", &GroupStatus::pid}, Number{"restarts", &GroupStatus::restarts},
        Number{"queue", &GroupStatus::queue}, Number{"leased", &GroupStatus::leased}}) {
    const auto number = get_integer(json, key, where);
    RETURN_IF_ERROR(number);
    out.*member = *number;
  }
  const Json *version = json.find("version"), *seconds = json.find("seconds");
  if (version && version->is_integer() && version->integer() >= 0)
    out.version = static_cast<std::uint64_t>(version->integer());
  if (seconds && seconds->is_number()) out.seconds = seconds->number();
  return out;
}

}  // namespace

Json to_json(const RunStatus& status) {
  Json::Array groups;
  for (const GroupStatus& group : status.groups) groups.push_back(to_json(group));
  return Json::Object{
      {"time", status.time}, {"process", status.process}, {"groups", std::move(groups)}};
}

Result<RunStatus> status_of(const Json& json, const std::string& where) {
  RunStatus out;
  const Json *time = json.find("time"), *groups = json.find("groups");
  const auto process = get_integer(json, "process", where);
  RETURN_IF_ERROR(process);
  if (!time || !time->is_number() || !groups || !groups->is_array())
    return fail(Errc::bad_input, cat(where, ": expected the members time and groups of a status"));
  out.time = time->number();
  out.process = *process;
  for (const Json& each : groups->array()) {
    auto group = group_of(each, where);
    RETURN_IF_ERROR(group);
    out.groups.push_back(std::move(*group));
  }
  return out;
}

Result<std::optional<RunStatus>> read_status(const std::string& folder) {
  const std::string path = cat(folder, "/", status_file);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<RunStatus>();
  const auto json = read_json(path);
  RETURN_IF_ERROR(json);
  auto status = status_of(*json, path);
  RETURN_IF_ERROR(status);
  return std::optional<RunStatus>(std::move(*status));
}

namespace {

std::vector<std::string> cells_of(const GroupStatus& group) {
  const std::string since = group.waits_for.empty() ? "" : cat(to_text(group.seconds, 2), " s");
  return {group.node,
          group.role,
          cat(group.pid),
          group.state,
          group.version ? cat(*group.version) : "-",
          cat(group.queue),
          group.role == "rollout" ? cat(group.leased) : "-",
          cat(group.restarts),
          group.waits_for.empty() ? "-" : cat(group.waits_for, ", ", since)};
}

}  // namespace

std::string status_table(const RunStatus& status) {
  std::vector<std::vector<std::string>> rows{
      {"NODE", "ROLE", "PID", "STATE", "VERSION", "QUEUE", "LEASED", "RESTARTS", "WAITS FOR"}};
  for (const GroupStatus& group : status.groups) rows.push_back(cells_of(group));
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      out += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    out += row.back() + "\n";
  }
  return out;
}

}  // namespace troupe::launch::run

#include "launch/evaluation/task_library.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/text/text.h"
#include "launch/evaluation/shipped/shipped_tasks.h"

namespace troupe::launch::evaluation {
namespace {

namespace fs = std::filesystem;

Result<std::vector<std::string>> files_below(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed)) {
    const std::string type = entry.path().extension().string();
    if (entry.is_regular_file() && (type == ".yaml" || type == ".yml"))
      out.push_back(entry.path().string());
  }
  if (failed) return fail(Errc::not_found, cat(folder, ": ", failed.message()));
  std::ranges::sort(out);
  return out;
}

std::string name_of(const TaskText& text) {
  const Json* name = text.keys.find(is_group(text) ? "group" : "task");
  return name != nullptr && name->is_string() ? name->string() : "";
}

}  // namespace

Result<TaskLibrary> TaskLibrary::load(const std::vector<std::string>& folders) {
  TaskLibrary out;
  for (const std::string& folder : folders) {
    const auto files = files_below(folder);
    RETURN_IF_ERROR(files);
    for (const std::string& file : *files) {
      auto text = read_task_file(file);
      RETURN_IF_ERROR(text);
      const std::string name = name_of(*text);
      if (name.empty()) continue;  // a file that others include
      if (out.own_.contains(name))
        return fail(Errc::usage,
                    cat(file, ": the name ", name, " is also that of ", out.own_.at(name).file));
      if (!is_group(*text)) {
        const auto task = task_config(*text);
        RETURN_IF_ERROR(task);
        for (const std::string& tag : task->tags) out.tags_[tag].push_back(name);
      }
      out.own_.emplace(name, std::move(*text));
    }
  }
  return out;
}

std::vector<std::string> TaskLibrary::names() const {
  std::vector<std::string> out;
  for (const auto& [name, text] : shipped_tasks()) out.push_back(name);
  for (const auto& [name, text] : own_) out.push_back(name);
  for (const auto& [name, members] : tags_) out.push_back(name);
  return out;
}

Result<TaskText> TaskLibrary::text_of(const std::string& name) const {
  if (const auto own = own_.find(name); own != own_.end()) return own->second;
  if (const auto shipped = shipped_tasks().find(name); shipped != shipped_tasks().end())
    return parse_task_text(shipped->second, cat("shipped/", name, ".yaml"));
  const std::string near = nearest(name, names());
  return fail(Errc::usage, cat("no task, group or tag ", quote(name),
                               near.empty() ? "" : cat("; did you mean ", near, '?'),
                               " (docs/evaluation.md lists them; --include-path adds your own)"));
}

Result<> TaskLibrary::add(const std::string& name, TaskSelection& out,
                          std::vector<std::string>& open) const {
  if (const auto tag = tags_.find(name); tag != tags_.end() && !own_.contains(name)) {
    for (const std::string& member : tag->second) RETURN_IF_ERROR(add(member, out, open));
    return {};
  }
  const auto text = text_of(name);
  RETURN_IF_ERROR(text);
  if (!is_group(*text)) {
    if (std::ranges::find(out.tasks, name, &TaskConfig::name) != out.tasks.end()) return {};
    auto task = task_config(*text);
    RETURN_IF_ERROR(task);
    out.tasks.push_back(std::move(*task));
    return {};
  }
  if (std::ranges::find(open, name) != open.end())
    return fail(Errc::usage, cat(text->file, ": the group ", name, " contains itself"));
  auto group = group_config(*text);
  RETURN_IF_ERROR(group);
  open.push_back(name);
  std::vector<std::string> members;
  for (const std::string& member : group->members) {
    RETURN_IF_ERROR(add(member, out, open));
    // A tag stands for its tasks.
    const auto tag = tags_.find(member);
    if (tag != tags_.end() && !own_.contains(member))
      members.insert(members.end(), tag->second.begin(), tag->second.end());
    else
      members.push_back(member);
  }
  group->members = std::move(members);
  open.pop_back();
  if (std::ranges::find(out.groups, name, &GroupConfig::name) == out.groups.end())
    out.groups.push_back(std::move(*group));
  return {};
}

Result<TaskSelection> TaskLibrary::select(const std::vector<std::string>& names) const {
  TaskSelection out;
  std::vector<std::string> open;
  for (const std::string& name : names) RETURN_IF_ERROR(add(name, out, open));
  return out;
}

}  // namespace troupe::launch::evaluation

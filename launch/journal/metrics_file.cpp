#include "launch/journal/metrics_file.h"

#include <cmath>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/system_calls.h"
#include "engine/base/text.h"

namespace troupe::launch {

Result<LineFile> LineFile::open(const OutputFolder& folder, const std::string& name) {
  auto file = folder.append(name);
  RETURN_IF_ERROR(file);
  return LineFile(std::move(*file), folder.path_of(name));
}

Result<> LineFile::append(std::string_view text) {
  return write_whole(file_.get(), text, path_);
}

std::string metrics_line(std::int64_t step, const algorithms::Metrics& metrics) {
  Json line;
  line.set("step", step);
  for (const auto& [name, value] : metrics)
    line.set(name, std::isfinite(value) ? Json(value) : Json());
  return line.dump() + "\n";
}

namespace {

using Visit = std::function<void(const Json&, std::string_view)>;

void visit_lines(std::string_view rest, const std::string& path, const Visit& visit) {
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const auto json = parse_json(line, path);
    if (json && json->is_object()) visit(*json, line);
  }
}

}  // namespace

void for_each_line(const std::string& path, const Visit& visit) {
  if (const auto text = read_file(path)) visit_lines(*text, path, visit);
}

Result<> truncate_after(const OutputFolder& folder, const std::string& name, std::int64_t step,
                        bool once) {
  if (!folder.contains(name)) return {};
  const std::string path = folder.path_of(name);
  const auto whole = folder.read(name);
  RETURN_IF_ERROR(whole);  // do not replace an unreadable file
  std::string kept;
  std::int64_t last = -1;
  visit_lines(*whole, path, [&](const Json& line, std::string_view text) {
    const auto at = get_integer(line, "step", path);
    if (!at || *at > step || *at < last || (once && *at == last)) return;
    last = *at;
    kept.append(text).push_back('\n');
  });
  return folder.replace(name, kept);
}

}  // namespace troupe::launch

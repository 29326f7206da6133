#include "launch/journal/metrics_file.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/files/file.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/text/text.h"

namespace troupe::launch::journal {

Result<LineFile> LineFile::open(const OutputFolder& folder, const std::string& name,
                                OnFullDisk full) {
  auto file = folder.append(name);
  RETURN_IF_ERROR(file);
  return LineFile(std::move(*file), folder.path_of(name), full);
}

Result<> LineFile::append(std::string_view text) {
  return write_whole(file_.get(), text, path_, full_);
}

Result<> LineFile::sync() {
  if (::fdatasync(file_.get()) != 0) return system_error(path_, "make durable");
  return {};
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

// Calls `damage` with what is no object on a line of its own.
void visit_lines(std::string_view rest, const std::string& path, const Visit& visit,
                 const std::function<void(std::string_view)>& damage) {
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::string_view line = rest.substr(0, end), whole = rest.substr(0, end + 1);
    rest.remove_prefix(end + 1);
    const auto json = parse_json(line, path);
    if (json && json->is_object())
      visit(*json, line);
    else
      damage(whole);
  }
  if (!rest.empty()) damage(rest);
}

}  // namespace

void for_each_line(const std::string& path, const Visit& visit) {
  if (const auto text = read_file(path)) visit_lines(*text, path, visit, [](std::string_view) {});
}

Result<KeptLines> truncate_after(const OutputFolder& folder, const std::string& name,
                                 std::int64_t step, bool once) {
  if (!folder.contains(name)) return KeptLines();
  const std::string path = folder.path_of(name);
  const auto whole = folder.read(name);
  RETURN_IF_ERROR(whole);  // do not replace an unreadable file
  KeptLines out;
  std::string kept;
  std::int64_t last = -1;
  const auto visit = [&](const Json& line, std::string_view text) {
    const auto at = get_integer(line, "step", path);
    if (!at || *at > step || *at < last || (once && *at == last)) return;
    last = *at;
    kept.append(text).push_back('\n');
    out.steps.push_back(*at);
  };
  visit_lines(*whole, path, visit, [&](std::string_view damaged) {
    out.damaged_bytes += damaged.size();
    out.zero_bytes += static_cast<std::size_t>(std::ranges::count(damaged, '\0'));
  });
  out.sum.add(kept);
  RETURN_IF_ERROR(folder.replace(name, kept));
  return out;
}

}  // namespace troupe::launch::journal

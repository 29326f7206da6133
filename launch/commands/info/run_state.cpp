#include "launch/commands/info/run_state.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "engine/base/json/fields.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/directory_lock.h"
#include "launch/journal/metrics_file.h"
#include "launch/journal/timings_file.h"

namespace troupe::launch::commands {

namespace {

constexpr std::size_t last_steps = 20, last_warnings = 10;

std::optional<double> number_of(const Json& line, std::string_view key) {
  const Json* found = line.find(key);
  return found && found->is_number() ? std::optional(found->number()) : std::nullopt;
}

void read_metrics(const std::string& folder, RunState& out) {
  journal::for_each_line(folder + "/metrics.jsonl", [&](const Json& line, std::string_view) {
    out.step = get_integer(line, "step", folder).value_or(out.step);
    if (const auto reward = number_of(line, "reward")) out.reward = reward;
    if (const auto reward = number_of(line, "eval/reward")) out.evaluated = reward;
  });
}

/// What timings.jsonl says of the last part of the run.
struct LastPart {
  std::optional<journal::RunEnd> ended;
  bool knows_steps = false;
  std::deque<std::pair<std::int64_t, double>> walls;  ///< of its last steps
  void begin(const Json& header, RunState& out) {
    walls.clear();
    ended.reset();
    const Json* steps = header.find("steps");
    knows_steps = steps && steps->is_integer();
    out.steps = knows_steps ? steps->integer() : 0;
  }
  void end(const Json& how) {
    ended = journal::RunEnd::failed;
    for (const journal::RunEnd each : {journal::RunEnd::complete, journal::RunEnd::interrupted})
      if (how == Json(std::string(name_of(each)))) ended = each;
  }
  void step(const Json& line) {
    const auto step = number_of(line, "step"), wall = number_of(line, "wall");
    if (!step || !wall) return;
    walls.emplace_back(static_cast<std::int64_t>(*step), *wall);
    if (walls.size() > last_steps + 1) walls.pop_front();
  }
  /// Of a step of the part; nullopt before its second step.
  std::optional<double> seconds_of_step() const {
    if (walls.size() < 2 || walls.back().first == walls.front().first) return std::nullopt;
    return (walls.back().second - walls.front().second) /
           static_cast<double>(walls.back().first - walls.front().first);
  }
};

void add_warnings(const Json& line, RunState& out) {
  const Json* warnings = line.find("warnings");
  if (!warnings || !warnings->is_array()) return;
  for (const Json& warning : warnings->array())
    if (warning.is_string()) out.warnings.push_back(warning.string());
  if (out.warnings.size() > last_warnings)
    out.warnings.erase(out.warnings.begin(),
                       out.warnings.end() - static_cast<std::ptrdiff_t>(last_warnings));
}

Progressed state_of(const LastPart& part) {
  if (part.ended == journal::RunEnd::complete) return Progressed::complete;
  if (part.ended == journal::RunEnd::interrupted) return Progressed::interrupted;
  if (part.ended == journal::RunEnd::failed) return Progressed::failed;
  return part.knows_steps ? Progressed::killed : Progressed::unknown;
}

}  // namespace

RunState read_run_state(const std::string& folder) {
  RunState out;
  read_metrics(folder, out);
  LastPart part;
  journal::for_each_line(folder + "/timings.jsonl", [&](const Json& line, std::string_view) {
    add_warnings(line, out);
    if (line.find("step")) return part.step(line);
    const Json* ended = line.find("ended");
    return ended ? part.end(*ended) : part.begin(line, out);
  });
  const auto owner = engine::checkpoint::DirectoryLock::owner(folder);
  out.state = owner ? Progressed::running : state_of(part);
  out.process = owner.value_or(0);
  const auto each = part.seconds_of_step();
  if (owner && each && out.steps > 0)
    out.seconds_left = *each * static_cast<double>(std::max<std::int64_t>(0, out.steps - out.step));
  return out;
}

}  // namespace troupe::launch::commands

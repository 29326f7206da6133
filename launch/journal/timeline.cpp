#include "launch/journal/timeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/journal/line_tail.h"
#include "launch/journal/svg.h"

namespace troupe::launch::journal {

namespace {

// Limits the picture of a step with many calls, such as scoring a whole data set.
constexpr std::size_t max_drawn = 4096;
constexpr const char *lines_name = "timeline.jsonl", *older_lines_name = "timeline.jsonl.1";
constexpr double left = 150, width = 1000, right = 110, head = 74, row = 34, foot = 40;
// The common messages have the same color in every picture.
constexpr std::pair<std::string_view, const char*> message_colors[] = {
    {"generate", "#1f5fa8"},        {"train_step", "#c8553d"},      {"logprobs", "#3a8f5c"},
    {"score", "#8a5fb0"},           {"compute_rewards", "#c99a2e"}, {"publish", "#4aa3a2"},
    {"prepare_weights", "#7cc0bf"}, {"commit_weights", "#2b6f6e"},  {"save", "#5b4a3a"},
    {"finish_save", "#5b4a3a"}};
constexpr const char* other_colors[] = {"#b0508f", "#7d8f3a", "#3a6f8f"};

std::string color_of_message(const std::string& type, std::size_t index) {
  const auto* found =
      std::ranges::find(message_colors, type, &std::pair<std::string_view, const char*>::first);
  return found == std::end(message_colors) ? other_colors[index % std::size(other_colors)]
                                           : found->second;
}

// "policy" where the node is the only process or has the role's name, "rollout-1" where it is one
// of several.
std::string label_of(const transports::Address& by) {
  if (by.node == "process" || by.node == by.actor) return by.actor;
  if (by.node.starts_with(by.actor + "-")) return by.node;
  return to_string(by);
}

// Actors from top to bottom in the order of their first call.
std::vector<std::string> rows_of(const std::vector<actors::AskRecord>& asks) {
  std::vector<std::string> rows;
  for (const auto& ask : asks) {
    const std::string name = label_of(ask.by);
    if (std::ranges::find(rows, name) == rows.end()) rows.push_back(name);
  }
  return rows;
}

std::string bar(double x0, double x1, double y, double height, std::string_view look) {
  return cat("<rect x=\"", to_text(x0, 1), "\" y=\"", to_text(y, 1), "\" width=\"",
             to_text(std::max(x1 - x0, 0.8), 1), "\" height=\"", to_text(height, 1), "\" ", look,
             "/>\n");
}

// Time during which at least one handler of an actor ran.
double busy_seconds(const std::vector<actors::AskRecord>& asks, const std::string& actor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const auto& ask : asks) {
    if (label_of(ask.by) == actor && ask.ended > ask.began)
      spans.emplace_back(ask.began, ask.ended);
  }
  std::ranges::sort(spans);
  std::int64_t sum = 0, until = 0;
  for (const auto& [began, ended] : spans) {
    sum += std::max<std::int64_t>(0, ended - std::max(began, until));
    until = std::max(until, ended);
  }
  return static_cast<double>(sum) * 1e-9;
}

// The legend, and the color of each message type.
std::pair<std::string, std::map<std::string, std::string>> draw_legend(
    const std::vector<actors::AskRecord>& asks) {
  std::string out;
  std::map<std::string, std::string> color_of;
  std::vector<std::string> types;
  for (const auto& ask : asks)
    if (color_of.emplace(ask.type, color_of_message(ask.type, types.size())).second)
      types.push_back(ask.type);
  const double room =
      std::min(160.0, (width + right) / std::max(1.0, static_cast<double>(types.size())));
  for (std::size_t i = 0; i < types.size(); ++i) {
    const double at = left + room * static_cast<double>(i);
    out += bar(at, at + 12, 44, 12, cat("fill=\"", color_of[types[i]], "\"")) +
           svg_text(at + 18, 54, "", types[i]);
  }
  return {out, color_of};
}

// Maps nanoseconds to horizontal positions.
struct TimeAxis {
  std::int64_t first, last;
  double seconds() const { return static_cast<double>(last - first) * 1e-9; }
  double x(std::int64_t at) const {
    return left + width * static_cast<double>(at - first) / static_cast<double>(last - first);
  }
};

// Vertical lines with their times.
std::string draw_grid(const TimeAxis& axis, double bottom) {
  std::string out;
  for (const double tick : axis_ticks(0, axis.seconds(), 5)) {
    const double at = left + width * tick / axis.seconds();
    out += cat("<line class=\"g\" x1=\"", to_text(at, 1), "\" x2=\"", to_text(at, 1), "\" y1=\"",
               head, "\" y2=\"", to_text(bottom, 1), "\"/>\n");
    out += svg_text(at, bottom + 18, "class=\"x\"", cat(axis_number(tick), " s"));
  }
  return out;
}

// The bars of one actor: first the calls, then, on top of them, the running handlers.
std::string draw_bars(const std::vector<actors::AskRecord>& asks, const std::string& actor,
                      const std::map<std::string, std::string>& color_of, const TimeAxis& axis,
                      double y) {
  std::string out;
  for (const bool dark : {false, true}) {
    for (const auto& ask : asks) {
      if (label_of(ask.by) != actor) continue;
      const std::string fill =
          cat("fill=\"", color_of.at(ask.type), dark ? "\"" : "\" fill-opacity=\"0.15\"");
      if (!dark) out += bar(axis.x(ask.asked), axis.x(ask.answered), y + 11, 12, fill);
      if (dark && ask.ended > ask.began)
        out += bar(axis.x(ask.began), axis.x(ask.ended), y + 6, 22, fill);
    }
  }
  return out;
}

}  // namespace

std::string timeline_svg(std::int64_t first_step, std::int64_t last_step,
                         const std::vector<actors::AskRecord>& given) {
  auto asks = given;
  std::ranges::sort(asks, {}, &actors::AskRecord::asked);
  const auto rows = rows_of(asks);
  std::int64_t first = asks.empty() ? 0 : asks.front().asked, last = first + 1;
  for (const auto& ask : asks) last = std::max(last, ask.answered);
  const TimeAxis axis{first, last};
  const double bottom = head + row * static_cast<double>(rows.size());
  std::string out =
      svg_head(left + width + right, bottom + foot,
               ".r{text-anchor:end}.x{text-anchor:middle;fill:#777}.g{stroke:#e4e4e4}");
  const std::string steps = first_step < last_step ? cat("Steps ", first_step, " to ", last_step)
                                                   : cat("Step ", last_step);
  out += svg_text(20, 28, "class=\"h\"",
                  cat(steps, ": running handlers (dark), calls waiting for an answer (light)"));
  const auto [legend, color_of] = draw_legend(asks);
  out += legend;
  out += draw_grid(axis, bottom);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double y = head + row * static_cast<double>(i);
    out += svg_text(left - 12, y + 21, "class=\"r\"", rows[i]);
    out += draw_bars(asks, rows[i], color_of, axis, y);
    const double percent = 100 * busy_seconds(asks, rows[i]) / axis.seconds();
    out += svg_text(left + width + 10, y + 21, "", cat("busy ", to_text(percent, 0), " %"));
  }
  return out + "</svg>\n";
}

Timeline::Timeline(const OutputFolder& folder, std::int64_t done_steps, std::uint64_t max_bytes)
    : folder_(folder), max_bytes_(max_bytes), next_step_(done_steps + 1) {
  if (max_bytes_ == 0) return;
  const auto older = truncate_tail_after(folder_, older_lines_name, done_steps);
  const auto size = truncate_tail_after(folder_, lines_name, done_steps);
  bytes_ = size.value_or(0);
  file_.emplace(folder_, lines_name, !older ? fail(older) : !size ? fail(size) : Result<>());
}

void Timeline::append(const std::string& line) {
  if (!file_->is_open()) return;
  if (bytes_ > 0 && bytes_ + line.size() > max_bytes_ / 2) {
    const auto renamed = folder_.rename(lines_name, older_lines_name);
    file_.emplace(folder_, lines_name, renamed);
    bytes_ = 0;
  }
  file_->append(line);
  bytes_ += line.size();
}

void Timeline::answered(const actors::AskRecord& ask) {
  if (!file_) return;
  if (!origin_) origin_ = ask.asked;
  const auto seconds = [&](std::int64_t at) {
    return at == 0 ? Json() : Json(static_cast<double>(at - *origin_) * 1e-9);
  };
  Json line;
  line.set("step", next_step_).set("actor", to_string(ask.by)).set("message", ask.type);
  line.set("asked", seconds(ask.asked))
      .set("began", seconds(ask.began))
      .set("ended", seconds(ask.ended));
  line.set("answered", seconds(ask.answered));
  if (ask.error) line.set("error", true);
  append(line.dump() + "\n");
  if (current_.size() < max_drawn) current_.push_back(ask);
}

void Timeline::record(std::int64_t step) {
  // The first update of a rollout step follows its sampling; an evaluation samples afterwards.
  const auto samples = [](const std::vector<actors::AskRecord>& asks) {
    const auto first = std::ranges::find_if(
        asks, [](const auto& ask) { return ask.type == "generate" || ask.type == "train_step"; });
    return first != asks.end() && first->type == "generate";
  };
  if (samples(current_) || !samples(last_) || last_.size() + current_.size() > max_drawn) {
    last_.clear();
    first_drawn_ = step;
  }
  std::ranges::move(current_, std::back_inserter(last_));
  current_.clear();
  next_step_ = step + 1;
}

Result<> Timeline::draw() const {
  if (last_.empty()) return {};
  return folder_.replace("timeline.svg", timeline_svg(first_drawn_, next_step_ - 1, last_));
}

}  // namespace troupe::launch::journal

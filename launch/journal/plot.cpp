#include "launch/journal/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "engine/base/text/text.h"
#include "launch/journal/metrics_file.h"
#include "launch/journal/svg.h"

namespace troupe::launch::journal {

namespace {

constexpr double panel_width = 460, panel_height = 230, left = 62, right = 16, top = 34,
                 bottom = 30, head = 40;
constexpr std::size_t max_points = 800;
constexpr const char* training_color = "#1f5fa8";
constexpr std::array<const char*, 4> evaluation_colors{"#c8553d", "#3a8f5c", "#8a5fb0", "#c99a2e"};

/// The metrics of all methods that have a panel, in their order.
constexpr std::array panel_metrics{"reward",
                                   "loss",
                                   "rewards/accuracies",
                                   "rewards/margins",
                                   "accuracy",
                                   "margin",
                                   "kl",
                                   "objective/kl",
                                   "entropy",
                                   "policy/entropy_avg",
                                   "completions/mean_length",
                                   "staleness/mean",
                                   "sampling/sampling_logp_difference/mean",
                                   "clip_ratio/region_mean",
                                   "cispo_clip_ratio",
                                   "critic/vf_loss",
                                   "critic/vf_explained_var",
                                   "frac_reward_zero_std",
                                   "grad_norm",
                                   "learning_rate"};

using Points = std::vector<std::pair<double, double>>;

/// Means of neighbors, at most max_points, to limit the file size.
Points thinned(const Points& points) {
  const std::size_t group = (points.size() + max_points - 1) / max_points;
  if (group <= 1) return points;
  Points out;
  for (std::size_t i = 0; i < points.size(); i += group) {
    const std::size_t end = std::min(points.size(), i + group);
    double x = 0, y = 0;
    for (std::size_t k = i; k < end; ++k) {
      x += points[k].first;
      y += points[k].second;
    }
    out.emplace_back(x / static_cast<double>(end - i), y / static_cast<double>(end - i));
  }
  return out;
}

/// Moving mean, centered except near the ends, where the window has a half of its width at least.
Points smoothed(const Points& points) {
  const std::size_t reach = points.size() / 40;
  auto out = points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t begin = i < reach ? 0 : i - reach,
                      end = std::min(points.size(), i + reach + 1);
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += points[k].second;
    out[i].second = sum / static_cast<double>(end - begin);
  }
  return out;
}

struct Scale {
  double x0, x1, y0, y1, left_edge, top_edge;
  double x(double at) const {
    return left_edge + left + (at - x0) / (x1 - x0) * (panel_width - left - right);
  }
  double y(double at) const {
    return top_edge + panel_height - bottom - (at - y0) / (y1 - y0) * (panel_height - top - bottom);
  }
};

Scale scale_of(const std::vector<Curve>& lines, double left_edge, double top_edge) {
  Scale s{1e300, -1e300, 1e300, -1e300, left_edge, top_edge};
  for (const Curve& line : lines) {
    for (const auto& [x, y] : line.points) {
      s.x0 = std::min(s.x0, x);
      s.x1 = std::max(s.x1, x);
      s.y0 = std::min(s.y0, y);
      s.y1 = std::max(s.y1, y);
    }
  }
  if (s.x1 <= s.x0) {
    s.x0 -= 1;
    s.x1 += 1;
  }
  const double size = std::max(std::abs(s.y0), std::abs(s.y1)), range = s.y1 - s.y0;
  if (size == 0) s.y1 = 1;
  const double room = range > 0.01 * size || size == 0 ? 0.06 * (s.y1 - s.y0) : 0.1 * size;
  s.y0 -= room;
  s.y1 += room;
  return s;
}

std::string polyline(const Scale& s, const Points& points, const std::string& attributes) {
  std::string out = "<polyline fill=\"none\" " + attributes + " points=\"";
  for (const auto& [x, y] : points) out += cat(to_text(s.x(x), 1), ',', to_text(s.y(y), 1), ' ');
  return out + "\"/>\n";
}

std::string circle(const Scale& s, const std::pair<double, double>& at, const char* color) {
  return cat("<circle cx=\"", to_text(s.x(at.first), 1), "\" cy=\"", to_text(s.y(at.second), 1),
             "\" r=\"3\" fill=\"", color, "\"/>\n");
}

std::string axes(const Scale& s) {
  std::string out;
  for (const double at : axis_ticks(s.y0, s.y1)) {
    out += cat("<line class=\"g\" x1=\"", to_text(s.x(s.x0), 1), "\" x2=\"", to_text(s.x(s.x1), 1),
               "\" y1=\"", to_text(s.y(at), 1), "\" y2=\"", to_text(s.y(at), 1), "\"/>\n");
    out += svg_text(s.left_edge + left - 8, s.y(at) + 4, "class=\"y\"", axis_number(at));
  }
  for (const double at : axis_ticks(s.x0, s.x1)) {
    if (at == std::floor(at))
      out += svg_text(s.x(at), s.top_edge + panel_height - bottom + 18, "class=\"x\"",
                      axis_number(at, 9));
  }
  return out;
}

// A training curve: every step, and the moving mean.
std::string training_line(const Scale& s, const Points& points, bool noisy) {
  const auto smooth = noisy ? smoothed(points) : points;
  if (smooth.size() == 1) return circle(s, points[0], training_color);
  return polyline(s, points, "stroke=\"#9dbfe6\" stroke-width=\"1\"") +
         polyline(s, smooth, cat("stroke=\"", training_color, "\" stroke-width=\"2\""));
}

std::string evaluation_line(const Scale& s, const Points& points, const char* color) {
  std::string out = polyline(s, points, cat("stroke=\"", color, "\" stroke-width=\"1.5\""));
  for (const auto& point : points)
    if (points.size() <= 60) out += circle(s, point, color);
  return out;
}

std::string draw(const Panel& panel, double left_edge, double top_edge) {
  std::vector<Curve> lines = panel.lines;
  for (Curve& line : lines) line.points = thinned(line.points);
  const Scale s = scale_of(lines, left_edge, top_edge);
  std::string out = svg_text(left_edge + left, top_edge + 22, "class=\"t\"", panel.title) + axes(s);
  double label = left_edge + panel_width - right;
  std::size_t evaluations = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool evaluation = !lines[i].name.empty();
    const char* color =
        evaluation ? evaluation_colors[evaluations++ % evaluation_colors.size()] : training_color;
    out += evaluation ? evaluation_line(s, lines[i].points, color)
                      : training_line(s, lines[i].points, lines[i].noisy);
    const std::string last = cat(evaluation ? lines[i].name : "last", ' ',
                                 axis_number(panel.lines[i].points.back().second));
    out += svg_text(label, top_edge + 22, cat("class=\"v\" style=\"fill:", color, "\""), last);
    label -= 12 + 6.6 * static_cast<double>(last.size());
  }
  return out;
}

}  // namespace

std::string svg(const std::string& title, const std::vector<Panel>& panels) {
  std::vector<Panel> shown;
  for (Panel panel : panels) {
    std::erase_if(panel.lines, [](const Curve& line) { return line.points.empty(); });
    if (!panel.lines.empty()) shown.push_back(std::move(panel));
  }
  const std::size_t rows = (shown.size() + 1) / 2;
  const double width = 2 * panel_width + 10,
               height = head + std::max<double>(1, static_cast<double>(rows)) * panel_height + 24;
  std::string out = svg_head(width, height,
                             ".v{text-anchor:end}.y{text-anchor:end;fill:#777}.x{text-"
                             "anchor:middle;fill:#777}"
                             ".g{stroke:#e4e4e4}");
  out += svg_text(20, 28, "class=\"h\"", title);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    out += draw(shown[i], i % 2 == 0 ? 0 : panel_width,
                head + static_cast<double>(i / 2) * panel_height);
  }
  out += svg_text(width - right, height - 8, "class=\"x\" style=\"text-anchor:end\"",
                  "horizontal axes: optimizer steps");
  return out + "</svg>\n";
}

std::vector<Panel> panels_of(const std::string& metrics_file) {
  std::map<std::string, Points> points;
  for_each_line(metrics_file, [&](const Json& line, std::string_view) {
    const auto step = get_number(line, "step", metrics_file);
    if (!step) return;
    for (const auto& [name, value] : line.object())
      if (value.is_number()) points[name].emplace_back(*step, value.number());
  });
  // The loss of reinforcement learning is around 0, whatever the policy does.
  if (points.contains("reward")) points.erase("loss");
  std::vector<Panel> panels;
  for (const char* name : panel_metrics) {
    Panel panel{name, {}};
    if (points.contains(name))
      panel.lines.push_back({"", points[name], name != std::string_view("learning_rate")});
    const std::string held_out = cat("eval/", name);
    if (points.contains(held_out)) panel.lines.push_back({"eval", points[held_out]});
    if (!panel.lines.empty()) panels.push_back(std::move(panel));
  }
  Panel passes{"eval/pass@k", {}};
  for (const auto& [name, of_metric] : points)
    if (name.starts_with("eval/pass@")) passes.lines.push_back({name.substr(5), of_metric});
  if (!passes.lines.empty()) panels.insert(panels.begin() + !panels.empty(), std::move(passes));
  return panels;
}

Result<> plot_run(const OutputFolder& folder, const std::string& title) {
  return folder.replace("plot.svg", svg(title, panels_of(folder.path_of("metrics.jsonl"))));
}

}  // namespace troupe::launch::journal

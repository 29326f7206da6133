#include "launch/journal/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "launch/journal/metrics_file.h"
#include "launch/journal/svg.h"

namespace troupe::launch {

namespace {

constexpr double panel_width = 460, panel_height = 230, left = 62, right = 16, top = 34,
                 bottom = 30, head = 40;
constexpr std::size_t max_points = 800;

std::string number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.4g", value);
  return buffer;
}

/// Ticks at 1, 2 or 5 times a power of ten.
std::vector<double> ticks(double low, double high, int wanted) {
  const double raw = (high - low) / wanted, power = std::pow(10, std::floor(std::log10(raw)));
  const double unit = raw / power, step = power * (unit <= 1   ? 1
                                                   : unit <= 2 ? 2
                                                   : unit <= 5 ? 5
                                                               : 10);
  std::vector<double> out;
  for (double at = std::ceil(low / step) * step; at <= high + step * 1e-9; at += step)
    out.push_back(std::abs(at) < step * 1e-9 ? 0 : at);
  return out;
}

/// Means of neighbors, at most max_points, to limit the file size.
std::vector<std::pair<double, double>> thinned(
    const std::vector<std::pair<double, double>>& points) {
  const std::size_t group = (points.size() + max_points - 1) / max_points;
  if (group <= 1) return points;
  std::vector<std::pair<double, double>> out;
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

/// Centered moving mean, which does not lag as an exponential mean does.
std::vector<std::pair<double, double>> smoothed(
    const std::vector<std::pair<double, double>>& points) {
  const std::size_t reach = points.size() / 40;
  auto out = points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t side = std::min({reach, i, points.size() - 1 - i});
    double sum = 0;
    for (std::size_t k = i - side; k <= i + side; ++k) sum += points[k].second;
    out[i].second = sum / static_cast<double>(2 * side + 1);
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

Scale scale_of(const std::vector<std::pair<double, double>>& points, double left_edge,
               double top_edge) {
  Scale s{points.front().first, points.back().first, 1e300, -1e300, left_edge, top_edge};
  for (const auto& [x, y] : points) {
    s.y0 = std::min(s.y0, y);
    s.y1 = std::max(s.y1, y);
  }
  if (s.x1 <= s.x0) {
    s.x0 -= 1;
    s.x1 += 1;
  }
  const double room = std::max((s.y1 - s.y0) * 0.06, std::max(std::abs(s.y1), 1e-9) * 1e-3);
  s.y0 -= room;
  s.y1 += room;
  return s;
}

std::string polyline(const Scale& s, const std::vector<std::pair<double, double>>& points,
                     const char* attributes) {
  std::string out = "<polyline fill=\"none\" " + std::string(attributes) + " points=\"";
  for (const auto& [x, y] : points) out += cat(to_text(s.x(x), 1), ',', to_text(s.y(y), 1), ' ');
  return out + "\"/>\n";
}

std::string panel(const Curve& curve, double left_edge, double top_edge) {
  const auto points = thinned(curve.points), smooth = smoothed(points);
  const Scale s = scale_of(points, left_edge, top_edge);
  std::string out = svg_text(left_edge + left, top_edge + 22, "class=\"t\"", curve.title);
  out += svg_text(left_edge + panel_width - right, top_edge + 22, "class=\"v\"",
                  cat("last ", number(curve.points.back().second)));
  for (const double at : ticks(s.y0, s.y1, 4)) {
    out += cat("<line class=\"g\" x1=\"", to_text(s.x(s.x0), 1), "\" x2=\"", to_text(s.x(s.x1), 1),
               "\" y1=\"", to_text(s.y(at), 1), "\" y2=\"", to_text(s.y(at), 1), "\"/>\n");
    out += svg_text(left_edge + left - 8, s.y(at) + 4, "class=\"y\"", number(at));
  }
  for (const double at : ticks(s.x0, s.x1, 5)) {
    if (at == std::floor(at))
      out += svg_text(s.x(at), top_edge + panel_height - bottom + 18, "class=\"x\"", number(at));
  }
  if (smooth.size() == 1) {
    return out + cat("<circle cx=\"", to_text(s.x(points[0].first), 1), "\" cy=\"",
                     to_text(s.y(points[0].second), 1), "\" r=\"3\" fill=\"#1f5fa8\"/>\n");
  }
  return out + polyline(s, points, "stroke=\"#9dbfe6\" stroke-width=\"1\"") +
         polyline(s, smooth, "stroke=\"#1f5fa8\" stroke-width=\"2\"");
}

}  // namespace

std::string svg(const std::string& title, const std::vector<Curve>& curves) {
  std::vector<Curve> shown;
  for (const Curve& curve : curves) {
    if (!curve.points.empty()) shown.push_back(curve);
  }
  const std::size_t rows = (shown.size() + 1) / 2;
  const double width = 2 * panel_width + 10,
               height = head + std::max<double>(1, static_cast<double>(rows)) * panel_height + 24;
  std::string out = svg_head(width, height,
                             ".v{text-anchor:end;fill:#1f5fa8}.y{text-anchor:end;fill:#777}.x{text-"
                             "anchor:middle;fill:#777}"
                             ".g{stroke:#e4e4e4}");
  out += svg_text(20, 28, "class=\"h\"", title);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    out += panel(shown[i], i % 2 == 0 ? 0 : panel_width,
                 head + static_cast<double>(i / 2) * panel_height);
  }
  out += svg_text(width - right, height - 8, "class=\"v\"", "horizontal axes: optimizer steps");
  return out + "</svg>\n";
}

std::vector<Curve> curves_of(const std::string& metrics_file) {
  std::vector<Curve> curves;
  for (const char* name : {"loss", "reward", "rewards/accuracies", "rewards/margins", "kl",
                           "entropy", "completions/mean_length", "grad_norm"}) {
    curves.push_back({name, {}});
  }
  for_each_line(metrics_file, [&](const Json& line, std::string_view) {
    const auto step = get_number(line, "step", metrics_file);
    for (Curve& curve : curves) {
      const Json* value = line.find(curve.title);
      if (step && value && value->is_number()) curve.points.emplace_back(*step, value->number());
    }
  });
  std::erase_if(curves, [](const Curve& curve) { return curve.points.empty(); });
  return curves;
}

Result<> plot_run(const std::string& folder, const std::string& title) {
  return write_file_durably(folder + "/plot.svg", svg(title, curves_of(folder + "/metrics.jsonl")));
}

}  // namespace troupe::launch

#include "launch/journal/svg.h"

#include <cmath>
#include <cstdio>

#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"

namespace troupe::launch::journal {

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : for_terminal(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

}  // namespace

std::string svg_head(double width, double height, std::string_view style) {
  const std::string w = to_text(width, 0), h = to_text(height, 0);
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", w, ' ', h, "\" width=\"",
             w, "\" height=\"", h, "\">\n",
             "<style>text{font-family:sans-serif;fill:#333;font-size:12px}.h{font-size:17px;font-"
             "weight:bold}"
             ".t{font-size:14px;font-weight:bold}",
             style, "</style>\n<rect width=\"", w, "\" height=\"", h, "\" fill=\"white\"/>\n");
}

std::vector<double> axis_ticks(double low, double high, std::size_t least) {
  if (!std::isfinite(high - low) || low >= high) return {low, high};
  std::vector<double> out;
  double power = std::pow(10, std::ceil(std::log10(high - low)));
  // The widest step with enough ticks.
  for (const double factors[] = {1, 0.5, 0.2}; out.size() < least; power /= 10) {
    for (const double factor : factors) {
      const double step = power * factor;
      out.clear();
      for (double at = std::ceil(low / step - 1e-9); at * step <= high + step * 1e-9; ++at)
        out.push_back(at == 0 ? 0 : at * step);
      if (out.size() >= least) break;
    }
  }
  return out;
}

std::string axis_number(double value, int digits) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
  return buffer;
}

std::string svg_text(double x, double y, std::string_view attributes, std::string_view text) {
  return cat("<text x=\"", to_text(x, 1), "\" y=\"", to_text(y, 1), "\" ", attributes, ">",
             escaped(text), "</text>\n");
}

}  // namespace troupe::launch::journal

// SVG elements shared by the plots of a run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::launch::journal {

/// The opening tag, the style (titles: classes t and h; and `style`) and a white background.
std::string svg_head(double width, double height, std::string_view style);
/// One line of text, escaped; `attributes`: "class=\"t\"".
std::string svg_text(double x, double y, std::string_view attributes, std::string_view text);

/// Round positions on an axis: multiples of 1, 2 or 5 times a power of ten from `low` to `high`,
/// `least` or more, as few as possible. Only the ends where the range is empty or not finite.
std::vector<double> axis_ticks(double low, double high, std::size_t least = 3);
/// A number in at most `digits` significant digits.
std::string axis_number(double value, int digits = 4);

}  // namespace troupe::launch::journal

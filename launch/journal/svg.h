// SVG elements shared by the plots of a run.
#pragma once

#include <string>
#include <string_view>

namespace troupe::launch {

/// The opening tag, the style (titles: classes t and h; and `style`) and a white background.
std::string svg_head(double width, double height, std::string_view style);
/// One line of text, escaped; `attributes`: "class=\"t\"".
std::string svg_text(double x, double y, std::string_view attributes, std::string_view text);

}  // namespace troupe::launch

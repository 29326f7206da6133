// The few lines of SVG that all pictures of a run share.
#pragma once

#include <string>
#include <string_view>

namespace troupe::launch {

/// The opening tag, the style (that of titles, class t and h, and `style`) and a white ground.
std::string svg_head(double width, double height, std::string_view style);
/// One line of text; `look` are attributes ("class=\"t\""). Anything may stand in `words`.
std::string svg_text(double x, double y, std::string_view look, std::string_view words);

}  // namespace troupe::launch

// The text of an example as the model reads it, with the tokens marked that are trained on.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "launch/commands/explain/data_preview.h"

namespace troupe::launch {

/// The text of token ids, special tokens included. Empty: the ids themselves are shown.
using TokenText = std::function<std::string(std::span<const std::int32_t>)>;

/// How tokens with a weight in the loss are marked: [[in brackets]], or in green.
enum class MaskStyle { brackets, color };
/// `color` if stdout is a terminal that shows colors and NO_COLOR is not set.
MaskStyle mask_style_of_stdout();

/// Lines of at most 80 columns. Control characters are escaped; a line also ends at a newline of
/// the text. The middle of a long sequence is left out.
std::string example_text(const ShownExample& example, const TokenText& text, MaskStyle style);

}  // namespace troupe::launch

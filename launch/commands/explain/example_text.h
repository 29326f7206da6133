// The text of an example as the model reads it, with the tokens marked that are trained on.
#pragma once

#include <string>

#include "launch/commands/explain/data_preview.h"
#include "launch/commands/explain/token_runs.h"

namespace troupe::launch::commands {

/// How tokens with a weight in the loss are marked: [[in brackets]], or in green.
enum class MaskStyle { brackets, color };
/// `color` if stdout is a terminal that shows colors and NO_COLOR is not set.
MaskStyle mask_style_of_stdout();

/// Lines of at most 80 columns. Control characters are escaped; a line also ends at a newline of
/// the text. The middle of a long sequence is left out.
std::string example_text(const ShownExample& example, const TokenText& text, MaskStyle style);

}  // namespace troupe::launch::commands

// Strings in a Python file, read as data: lists, mappings and texts that MindSpeed-LLM keeps in its
// program and not in files of their own. Nothing is executed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::launch::evaluation::mindspeed {

struct SourceString {
  std::string text;        ///< after escapes
  bool formatted = false;  ///< an f-string: text has fields and doubled braces
};

/// The strings between the bracket at the end of `head` ("patterns = [") and the one that closes
/// it. Strings that follow each other without a comma or a colon are one, as in Python. `file` is
/// for messages. Errc::bad_input where `head` is missing, or anything but strings follows.
Result<std::vector<SourceString>> source_strings(std::string_view source, std::string_view head,
                                                 const std::string& file);

/// An f-string with the value of its field {options}.
std::string with_options(const SourceString& text, std::string_view options);

}  // namespace troupe::launch::evaluation::mindspeed

// What string methods and text filters share: case, stripping, replacing, formatting.
#pragma once

#include <string>

#include "engine/tokenizer/jinja/machine.h"

namespace troupe::engine::tokenizer::jinja {

std::string upper(const std::string& text);
std::string lower(const std::string& text);
std::string title(const std::string& text);
std::string capitalize(const std::string& text);
std::string swap_case(const std::string& text);

/// Without the characters of `which` (white space when null) at its ends.
std::string strip_text(const std::string& text, const std::string* which, bool left, bool right);

/// At most `most` replacements; any number when negative.
Value replace_text(Machine& machine, const std::string& text, const std::string& old, const std::string& with, std::int64_t most);

enum class CharacterClass { digit, numeric, letter, letter_or_number, space };
/// True when there are characters and all are of the class.
bool every(const std::string& text, CharacterClass wanted);

/// "{} {name}".format(...): places by order, number or name, attributes and items of none.
Value format_braces(Machine& machine, const std::string& format, const Arguments& arguments);

}  // namespace troupe::engine::tokenizer::jinja

// Rules about the form of a text: equality, tags, length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::rules {

struct ExactOptions {
  bool strip = true;             ///< white space at both ends does not count
  bool collapse_spaces = false;  ///< runs of white space count as one space
  bool ignore_case = false;      ///< ASCII letters only
};

bool exact_match(std::string_view text, std::string_view answer, const ExactOptions& options);

/// True when the text is <t1>...</t1> <t2>...</t2> ...: each tag of `tags` once, in order, nothing
/// but white space between and around.
bool has_format(std::string_view text, const std::vector<std::string>& tags);

/// What the last <tag>...</tag> holds, or the whole text without one.
std::string_view inside_tag(std::string_view text, std::string_view tag);

/// 0 up to `longest` - `buffer`, falling to -1 at `longest` and staying there (DAPO's soft overlong
/// punishment, arXiv:2503.14476 eq. 13); below `shortest` -1.
double length_penalty(double length, double shortest, double longest, double buffer);

/// Characters (code points) of UTF-8 text; stray bytes count one each.
std::size_t count_characters(std::string_view text);
/// Runs of anything but white space.
std::size_t count_words(std::string_view text);

}  // namespace troupe::actors::rules

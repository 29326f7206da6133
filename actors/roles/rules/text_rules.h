// Rules on the form of a text: equality, tags, length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::rules {

struct ExactOptions {
  bool strip = true;             ///< ignore white space at both ends
  bool collapse_spaces = false;  ///< treat runs of white space as one space
  bool ignore_case = false;      ///< ASCII letters only
};

bool exact_match(std::string_view text, std::string_view answer, const ExactOptions& options);

/// True when the text is <t1>...</t1> <t2>...</t2> ...: each of `tags` once and in order, with only
/// white space between and around them.
bool has_format(std::string_view text, const std::vector<std::string>& tags);

/// Returns the content of the last <tag>...</tag>, or the whole text without one.
std::string_view inside_tag(std::string_view text, std::string_view tag);

/// 0 up to `longest` - `buffer`, falling to -1 at `longest` and staying there (DAPO's soft overlong
/// punishment, arXiv:2503.14476 eq. 13); below `shortest` -1.
double length_penalty(double length, double shortest, double longest, double buffer);

/// Number of code points of UTF-8 text; each invalid byte counts as one.
std::size_t count_characters(std::string_view text);
/// Number of words, separated by white space.
std::size_t count_words(std::string_view text);

}  // namespace troupe::actors::rules

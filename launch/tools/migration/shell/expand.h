// Expansion of the words of a script: quotation marks, parameters, arithmetic, braces and
// splitting, as bash does them. Nothing is executed: what a command would print is unknown.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/migration/shell/fields.h"
#include "launch/tools/migration/shell/limits.h"
#include "launch/tools/migration/shell/state.h"
#include "launch/tools/migration/shell/syntax.h"

namespace troupe::launch::tools::migration::shell {

/// The parts of ${...}.
struct Parameter {
  std::string name;  ///< of a variable, a number, or one of @ * # ? $ ! - 0
  bool length = false, indirect = false;
  std::optional<std::string> index;  ///< of name[index]
  std::string operation;             ///< ":-", "%%", ...; empty: none
  std::string word;                  ///< what follows the operation
};

/// `text`: between the braces. nullopt for text that is no parameter.
std::optional<Parameter> parameter_of(std::string_view text);

/// What a parameter has.
struct Looked {
  bool set = false, list = false;
  std::vector<Value> values;
  std::string unknown;  ///< of a list whose items are not known
};

class Expander {
 public:
  Expander(ShellState& state, Budget& budget) : state_(state), budget_(budget) {}

  /// All of these throw Failure (Errc::usage) for what exceeds a bound.
  std::vector<Field> fields(const Word& word);
  std::vector<Field> fields(const std::vector<Word>& words);
  Value single(const Word& word);
  Value pattern(const Word& word);
  /// A here-document: no quotation marks, no splitting.
  Value document(const HereDocument& here);
  Value arithmetic(const Word& expression);

 private:
  void walk(std::string_view raw, bool quoted, Fields& out);
  std::size_t backslash(std::string_view raw, std::size_t at, bool quoted, Fields& out);
  std::size_t quotation(std::string_view raw, std::size_t at, Fields& out);
  std::size_t dollar(std::string_view raw, std::size_t at, bool quoted, Fields& out);
  std::size_t name(std::string_view raw, std::size_t at, bool quoted, Fields& out);
  void dollar_quoted(std::string_view text, Fields& out);
  void parameter(const Parameter& parameter, std::string_view raw, bool quoted, Fields& out);
  void word(const Parameter& parameter, bool quoted, Fields& out);
  Looked in_bashs_order(const Parameter& parameter, const Variable& variable) const;
  bool alternative(const Parameter& parameter, const Looked& found, bool quoted, Fields& out);
  Value changed(const Parameter& parameter, const Value& value);
  Looked look_up(const Parameter& parameter);
  Looked special(const std::string& name);
  Looked variable(const Parameter& parameter);
  Looked indirect(const Parameter& parameter);
  Looked slice(const Parameter& parameter, Looked found);
  Value length(const Looked& found) const;
  Value substring(const Parameter& parameter, const Value& value);
  Value unset(const Parameter& parameter, std::string_view raw) const;
  Value output_of(std::string_view command);
  Value text_of(std::string_view raw, Fields::Mode mode, bool quoted);
  std::string separators() const;

  ShellState& state_;
  Budget& budget_;
  std::size_t line_ = 0;
  int depth_ = 0;
  enum class InWord { none, unquoted, within_quotes };
  InWord in_word_ = InWord::none;  ///< of a parameter: ${A:-word}
};

// Brace expansion.

/// a{b,c} and a{1..3} as the words they stand for. Throws Failure for more than a bound.
std::vector<std::string> braces(const std::string& raw, Budget& budget);

// The commands in a script that print a folder: they need no execution.

/// What `pwd`, `dirname PATH` and `cd PATH && pwd` print; nullopt for another command, and for what
/// is not known. `path` expands the path.
std::optional<std::string> printed_folder(
    std::string_view command, const ShellState& state,
    const std::function<std::optional<std::string>(const std::string&)>& path);

}  // namespace troupe::launch::tools::migration::shell

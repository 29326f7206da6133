// The parts of ${...}.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::launch::tools::migration::shell {

struct Parameter {
  std::string name;  ///< of a variable, a number, or one of @ * # ? $ ! - 0
  bool length = false, indirect = false;
  std::optional<std::string> index;  ///< of name[index]
  std::string operation;             ///< ":-", "%%", ...; empty: none
  std::string word;                  ///< what follows the operation
};

/// `text`: between the braces. nullopt for text that is no parameter.
std::optional<Parameter> parameter_of(std::string_view text);

}  // namespace troupe::launch::tools::migration::shell

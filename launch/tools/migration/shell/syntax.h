// The syntax tree of a bash script. Words keep the text of the script; they are expanded when
// the script is evaluated.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::launch::tools::migration::shell {

struct Word {
  std::string raw;  ///< with its quotation marks and line continuations
  std::size_t line = 0;
};

struct Assignment {
  std::string name;
  std::optional<Word> index;  ///< of a[index]=...
  bool append = false;        ///< +=
  bool array = false;         ///< =( ... )
  Word value;
  std::vector<Word> items;  ///< of an array; raw text such as [key]=value included
};

struct HereDocument {
  Word text;
  bool literal = false;  ///< its delimiter is quoted: nothing in it is expanded
};

struct Node {
  enum class Kind {
    simple,          ///< assignments, words, here
    sequence,        ///< children in turn
    and_or,          ///< children; name has & or | for each after the first: && and ||
    pipeline,        ///< children, each in an environment of its own if there are several
    if_then,         ///< condition, body, condition, body, ..., and a body if the number is odd
    case_of,         ///< words[0]; arms
    for_each,        ///< name, words (has_list), children[0]
    for_arithmetic,  ///< three words, children[0]
    while_loop,      ///< condition, body; negated: until
    function,        ///< name, children[0]
    subshell,        ///< children[0]
    group,           ///< children[0]
    arithmetic,      ///< (( words[0] ))
    test,            ///< [[ words ]]
  };
  struct Arm {
    std::vector<Word> patterns;
    std::size_t body = 0;        ///< of children
    bool falls_through = false;  ///< ends with ;& or ;;&
  };

  Kind kind = Kind::simple;
  std::size_t line = 0;
  std::vector<Assignment> assignments;
  std::vector<Word> words;
  std::vector<std::shared_ptr<const Node>> children;
  std::vector<Arm> arms;
  std::string name;
  bool negated = false, has_list = false;
  std::optional<HereDocument> here;
};
using NodePointer = std::shared_ptr<const Node>;

}  // namespace troupe::launch::tools::migration::shell

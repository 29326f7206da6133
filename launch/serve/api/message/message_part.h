// MessagePart: what a piece of output adds to the assistant's message.
#pragma once

#include <string>
#include <vector>

namespace troupe::launch::serve::api {

/// A piece of a tool call. The first piece of a call has its name.
struct CallPart {
  int index = 0;  ///< of the call in its message
  std::string name;
  std::string arguments;
};

struct MessagePart {
  std::string reasoning, content;
  std::vector<CallPart> calls;

  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

}  // namespace troupe::launch::serve::api

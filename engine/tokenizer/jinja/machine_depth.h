// The guard that bounds the machine's recursion.
#pragma once

#include "engine/base/text.h"
#include "engine/tokenizer/jinja/machine.h"

namespace troupe::engine::tokenizer::jinja {

class Machine::Depth {
 public:
  explicit Depth(Machine& machine) : machine_(machine) {
    if (++machine_.depth_ > machine_.limits_.depth) {
      --machine_.depth_;
      raise("the template recurses too deeply");
    }
  }
  ~Depth() { --machine_.depth_; }
  Depth(const Depth&) = delete;

 private:
  Machine& machine_;
};

}  // namespace troupe::engine::tokenizer::jinja

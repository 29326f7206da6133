// Guards of the machine: of the depth of its recursion, and of the scope it is in.
#pragma once

#include "engine/base/text.h"
#include "engine/jinja/machine.h"

namespace troupe::engine::jinja {

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

/// A new scope for as long as it lives.
class Machine::Enter {
 public:
  Enter(Machine& machine, std::shared_ptr<Scope> parent)
      : machine_(machine), before_(machine.scope_) {
    machine.scope_ = std::make_shared<Scope>(std::move(parent));
  }
  explicit Enter(Machine& machine) : Enter(machine, machine.scope_) {}
  ~Enter() { machine_.scope_ = before_; }
  Enter(const Enter&) = delete;

 private:
  Machine& machine_;
  std::shared_ptr<Scope> before_;
};

}  // namespace troupe::engine::jinja

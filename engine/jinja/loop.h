// The `loop` variable of a for block.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  Loop(std::vector<Value> through, int level)
      : items(std::move(through)), level_(level), counted_(items.capacity() * sizeof(Value)) {
    for (const Value& item : items) depth_ = std::max(depth_, item.depth() + 1);
  }
  std::string type_name() const override { return "LoopContext"; }
  int depth() const override { return depth_; }
  std::optional<Value> attribute(std::string_view name) override;
  std::string text() const override;
  bool callable() const override { return true; }
  const std::vector<Value>* items_inside() const override { return &items; }
  Value call(Runtime& runtime, Arguments& arguments) override;

  std::vector<Value> items;
  std::size_t index = 0;
  std::function<std::string(const Value&)> recurse;  ///< of recursive loops, while they run

 private:
  Value changed(Runtime& runtime, const Arguments& arguments);
  int level_;
  MemoryCount counted_;
  int depth_ = 0;
  std::optional<Value> last_changed_;
};

}  // namespace troupe::engine::jinja

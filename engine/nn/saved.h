// Saved: what forward leaves for backward, last in first out. Inference passes Saved::nothing(), which drops what it is given.
#pragma once

#include <vector>

#include "engine/base/check.h"
#include "engine/tensor/tensor.h"

namespace troupe::engine::nn {

class Saved {
 public:
  static Saved nothing() {
    Saved none;
    none.keeps_ = false;
    return none;
  }
  bool keeps() const { return keeps_; }
  void push(Tensor x) {
    if (keeps_) stack_.push_back(std::move(x));
  }
  Tensor pop() {
    check(!stack_.empty(), "Saved: backward pops more than forward pushed");
    Tensor top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }
  bool empty() const { return stack_.empty(); }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& x : stack_) sum += x.bytes();
    return sum;
  }

 private:
  std::vector<Tensor> stack_;
  bool keeps_ = true;
};

}  // namespace troupe::engine::nn

// Saved: the stack of tensors that forward saves for backward. Inference passes Saved::nothing(),
// which discards them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/errors/check.h"
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
    if (!top && make_ && stack_.size() == making_) top = std::exchange(make_, nullptr)();
    return top;
  }
  /// Position of the next push.
  std::size_t mark() const { return stack_.size(); }
  /// Replaces the tensor at a position; returns the one that was there.
  Tensor exchange(std::size_t place, Tensor x) {
    return std::exchange(stack_.at(place), std::move(x));
  }
  /// Drops x wherever it was pushed since `mark`; backward recomputes it and calls restore() before
  /// it pops what was pushed until then. Pairs nest as forward and backward do.
  void forget(std::size_t mark, const Tensor& x) {
    if (!keeps_) return;
    std::vector<std::size_t> places;
    for (std::size_t i = mark; i < stack_.size(); ++i) {
      Tensor& kept = stack_[i];
      if (kept.buffer() != x.buffer() || kept.offset_bytes() != x.offset_bytes() ||
          kept.shape() != x.shape())
        continue;
      places.push_back(i);
      kept = Tensor();
    }
    forgotten_.push_back(std::move(places));
  }
  /// Puts make() where the last forgotten tensor was; does not call it where it was nowhere.
  template <class Make>
  void restore(Make make) {
    check(!forgotten_.empty(), "Saved: backward restores more than forward forgot");
    const auto places = std::move(forgotten_.back());
    forgotten_.pop_back();
    if (places.empty()) return;
    const Tensor again = make();
    for (const auto place : places) stack_.at(place) = again;
  }
  /// Like restore(), but calls make() when the tensor is popped, before the next restore(): for
  /// tensors that are recomputed from a gradient which the reader's backward computes before it
  /// pops. The tensor must have been pushed at most once.
  void restore_when_popped(std::function<Tensor()> make) {
    check(!forgotten_.empty() && !make_, "Saved: backward restores more than forward forgot");
    const auto places = std::move(forgotten_.back());
    forgotten_.pop_back();
    if (places.empty()) return;
    check(places.size() == 1, "Saved: a tensor restored when popped was pushed once");
    making_ = places[0];
    make_ = std::move(make);
  }
  /// Saves the input of layers whose forward pass backward repeats.
  void push_input(const Tensor& x) {
    if (keeps_) inputs_.push_back(stack_.size());
    push(x);
  }
  /// Repeats the forward pass from the last input that was pushed, before repeated() asks for it:
  /// run(input, saved). No effect where there is none, or where this was called before.
  template <class Run>
  void repeat_in_advance(Run run) {
    if (inputs_.empty() || repeated_) return;
    auto saved = std::make_unique<Saved>();
    run(stack_[inputs_.back()], *saved);
    repeated_ = std::move(saved);
  }
  bool is_repeated() const { return repeated_ != nullptr; }
  /// Pops the last input that was pushed; returns what the repeated forward pass saves.
  template <class Run>
  Saved repeated(Run run) {
    repeat_in_advance(run);
    check(repeated_ && inputs_.back() + 1 == stack_.size(),
          "Saved: backward repeats layers that are not the last");
    inputs_.pop_back();
    stack_.pop_back();
    return std::move(*std::exchange(repeated_, nullptr));
  }
  bool empty() const { return stack_.empty() && forgotten_.empty(); }
  /// Bytes of memory; a tensor that was pushed twice counts once.
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < stack_.size(); ++i) {
      const bool again =
          std::any_of(stack_.begin(), stack_.begin() + static_cast<std::ptrdiff_t>(i),
                      [&](const Tensor& x) { return x.buffer() == stack_[i].buffer(); });
      if (stack_[i] && !again) sum += stack_[i].bytes();
    }
    return sum;
  }

 private:
  std::vector<Tensor> stack_;
  std::vector<std::vector<std::size_t>> forgotten_;
  std::function<Tensor()> make_;
  std::size_t making_ = 0;
  std::vector<std::size_t> inputs_;  ///< places of the inputs of push_input()
  std::unique_ptr<Saved> repeated_;  ///< of the last input
  bool keeps_ = true;
};

}  // namespace troupe::engine::nn

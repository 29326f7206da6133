#include "engine/generate/output_constraint.h"

#include <algorithm>
#include <limits>

#include "engine/base/text/text.h"

namespace troupe::engine::generate {

namespace {

/// A limit of a constraint is no lack of room in the generator, which would pass.
Error as_bad_input(const Failure& failure) {
  return {Errc::bad_input, failure.error().what};
}

}  // namespace

using constraints::Automaton;
using constraints::TokenMask;

OutputConstraint::OutputConstraint(std::shared_ptr<constraints::Constraint> constraint,
                                   bool without_space)
    : constraint_(std::move(constraint)),
      state_(constraint_ ? constraint_->start() : 0),
      without_space_(without_space) {
}

void OutputConstraint::append(std::int32_t token, std::span<const std::int32_t> ends) {
  if (!constrains() || error_ || std::ranges::find(ends, token) != ends.end()) return;
  without_space_ = false;
  mask_.reset();
  walk_.reset();
  try {
    state_ = constraint_->after(state_, token);
    if (state_ == Automaton::dead)
      error_ = Error{Errc::internal, cat("token ", token, " violates the request's constraint")};
  } catch (const Failure& failure) {
    error_ = as_bad_input(failure);  // thrown by allowed(), which concerns this sequence only
  }
}

bool OutputConstraint::prepare(std::uint64_t& budget) {
  if (!constrains() || mask_ != nullptr) return true;
  if (error_) throw Failure(*error_);
  if (walk_ == nullptr) walk_ = std::make_shared<constraints::MaskWalk>();
  try {
    mask_ = constraint_->allowed(state_, *walk_, budget);
  } catch (const Failure& failure) {
    throw Failure(as_bad_input(failure));
  }
  if (mask_ != nullptr) walk_.reset();
  return mask_ != nullptr;
}

std::shared_ptr<const TokenMask> OutputConstraint::allowed(
    std::span<const std::int32_t> ends) const {
  if (!constrains()) return nullptr;
  OutputConstraint whole = *this;
  std::uint64_t budget = std::numeric_limits<std::uint64_t>::max();
  whole.prepare(budget);
  std::shared_ptr<const TokenMask> mask = whole.mask_;
  const bool may_end = constraint_->may_end(state_);
  const bool changes =
      std::ranges::any_of(ends, [&](std::int32_t end) { return mask->has(end) != may_end; });
  if (changes || without_space_) {
    auto changed = std::make_shared<TokenMask>(*mask);
    for (const std::int32_t id : constraint_->tokens().ids())
      if (without_space_ && constraint_->tokens().bytes_of(id).starts_with(' '))
        changed->assign(id, false);
    for (const std::int32_t end : ends) changed->assign(end, may_end);
    mask = std::move(changed);
  }
  if (!mask->empty()) return mask;
  throw Failure(Error{Errc::bad_input,
                      "no token of the vocabulary continues the output that the request's "
                      "constraint describes"});
}

bool OutputConstraint::must_end() const {
  return constrains() && !error_ && constraint_->must_end(state_);
}

}  // namespace troupe::engine::generate

// OutputConstraint: where a sequence is in the outputs that its request allows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "engine/base/errors/error.h"
#include "engine/constraints/constraint.h"

namespace troupe::engine::generate {

/// Constrains nothing by default.
class OutputConstraint {
 public:
  OutputConstraint() = default;
  /// `without_space`: the first token does not begin with a space.
  OutputConstraint(std::shared_ptr<constraints::Constraint> constraint, bool without_space);

  bool constrains() const { return constraint_ != nullptr; }
  /// A token was sampled; end tokens of the request are ignored.
  void append(std::int32_t token, std::span<const std::int32_t> ends);
  /// Computes what allowed() needs, within `budget`, which is reduced by the work; false when it is
  /// not enough, and the next call continues. In the units of Constraint::allowed(). Throws as
  /// allowed() does.
  bool prepare(std::uint64_t& budget);
  /// The tokens that may be sampled, whether or not they are prepared; among the request's end
  /// tokens, those that may end the output. Throws Failure (Errc::bad_input) beyond the limits of
  /// the constraint, and when no token of the vocabulary continues the output.
  std::shared_ptr<const constraints::TokenMask> allowed(std::span<const std::int32_t> ends) const;
  /// Whether no further token may follow.
  bool must_end() const;

 private:
  std::shared_ptr<constraints::Constraint> constraint_;
  constraints::Constraint::State state_ = 0;
  bool without_space_ = false;  // of the next token
  std::optional<Error> error_;  // of append()
  // Of the state, when they are prepared; before that, the part that is computed.
  std::shared_ptr<const constraints::TokenMask> mask_;
  std::shared_ptr<constraints::MaskWalk> walk_;
};

}  // namespace troupe::engine::generate

// What stands behind an Expr; included by the sources of this folder only, which are the only ones
// to know Eigen.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <vector>

#include "engine/base/check.h"
#include "engine/loss/tape.h"

namespace troupe::engine::loss {

using Array = Eigen::ArrayXd;

struct Node {
  Array value;
  bool scalar = false;
  bool tracked = false;  ///< depends on a variable
  std::vector<std::shared_ptr<const Node>> inputs;
  /// Given d L / d value, returns d L / d inputs[i], in the input's own shape. Called for tracked
  /// inputs only.
  std::function<Array(std::size_t i, const Array& upstream)> pull;
};

using Pull = std::function<Array(std::size_t, const Array&)>;

/// A node over `inputs`; without a tracked input it is a constant and forgets them.
Expr make(Array value, bool scalar, std::vector<Expr> inputs, Pull pull);

inline Expr constant(Array value, bool scalar) {
  return make(std::move(value), scalar, {}, {});
}

}  // namespace troupe::engine::loss

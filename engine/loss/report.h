// Report: named statistics that a loss leaves behind, so kept that no split of the batch can change
// what is shown.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/base/json.h"
#include "engine/loss/tape.h"

namespace troupe::engine::loss {

/// Names of the statistics that controllers read.
inline constexpr char entropy_statistic[] = "entropy";
inline constexpr char ratio_statistic[] = "val/ratio";

struct Statistic {
  enum class Kind { mean, least, greatest };
  Kind kind = Kind::mean;
  double sum = 0, count = 0;  ///< of a mean; least and greatest keep their number in `sum`
  double value() const;       ///< a mean of nothing is 0
};

/// Means travel as (sum, count): merged over micro-batches and ranks they are means over the whole
/// global batch.
class Report {
 public:
  void mean(const std::string& name, double sum, double count);
  /// The mean of x, each element weighing as `weight` says ([T] with a mask); elements of weight 0
  /// may be NaN.
  void mean(const std::string& name, const Expr& x, const Expr& weight);
  /// The mean of all elements of x.
  void mean(const std::string& name, const Expr& x);
  void least(const std::string& name, double value);
  void greatest(const std::string& name, double value);

  void merge(const Report& other);
  bool empty() const { return statistics_.empty(); }
  std::optional<double> find(const std::string& name) const;
  const std::map<std::string, Statistic>& statistics() const { return statistics_; }
  /// What a person sees: one number per name.
  std::map<std::string, double> values() const;

  /// For the wire: {"kl": ["mean", 1.5, 12]}.
  Json to_json() const;
  static Result<Report> from_json(const Json& json);

 private:
  void add(const std::string& name, Statistic statistic);
  std::map<std::string, Statistic> statistics_;
};

}  // namespace troupe::engine::loss

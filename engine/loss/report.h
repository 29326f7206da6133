// Report: named statistics of a loss, stored so that no split of the batch changes their values.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/base/json/json.h"
#include "engine/loss/tape.h"

namespace troupe::engine::loss {

/// Names of the statistics that controllers read.
inline constexpr char entropy_statistic[] = "entropy";
inline constexpr char ratio_statistic[] = "val/ratio";

struct Statistic {
  enum class Kind { mean, min, max };
  Kind kind = Kind::mean;
  double sum = 0, count = 0;  ///< min and max store their value in `sum`
  double value() const;
  bool empty() const { return count == 0; }  ///< a mean of nothing, which has no value
};

/// Means are stored as (sum, count): merged over micro-batches and ranks, they are means over the
/// global batch.
class Report {
 public:
  void mean(const std::string& name, double sum, double count);
  /// Mean of x with weights (a mask); elements of weight 0 may be NaN.
  void mean(const std::string& name, const Expr& x, const Expr& weight);
  /// Mean of all elements of x.
  void mean(const std::string& name, const Expr& x);
  void min(const std::string& name, double value);
  void max(const std::string& name, double value);

  void merge(const Report& other);
  bool empty() const { return statistics_.empty(); }
  std::optional<double> find(const std::string& name) const;
  const std::map<std::string, Statistic>& statistics() const { return statistics_; }
  /// One number per name, for display; nothing for a mean of nothing.
  std::map<std::string, double> values() const;

  /// Serialization: {"kl": ["mean", 1.5, 12]}.
  Json to_json() const;
  static Result<Report> from_json(const Json& json);

 private:
  void add(const std::string& name, Statistic statistic);
  std::map<std::string, Statistic> statistics_;
};

}  // namespace troupe::engine::loss

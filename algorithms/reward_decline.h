// RewardDecline: an evaluated reward that fell below its value before training, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/reward_trend.h"
#include "algorithms/training/journal.h"

namespace troupe::algorithms {

/// Compares eval/reward and eval/pass@1 with their first values. One fell if it is below by half of
/// its scale, or by a fifth of it in three evaluations in a row; the scale is the larger one of the
/// first value and the standard error of one completion's reward, so that the noise of an
/// evaluation of some dozens of prompts is no fall. Where the answers have been equal for
/// some steps, a fifth of the first value in two evaluations is enough.
class RewardDecline {
 public:
  enum class Kind {
    fell,
    collapse,       ///< and entropy or the differences within groups are gone
    hacking,        ///< while the training reward rose (Gao et al. 2023, arXiv:2210.10760)
    length_hacking  ///< nothing fell, but longer completions raise the training reward alone
  };
  /// Of a prompt: whether entropy has collapsed, or groups have equal rewards.
  enum class Answers { different, equal, equal_for_long };
  struct Finding {
    Kind kind = Kind::fell;
    std::string name;           ///< "reward", "pass@1"
    double start = 0, now = 0;  ///< of it; of the mean length with length_hacking
  };

  /// Of a step with or without an evaluation. A finding is given once, until the values have
  /// returned to their start; in the first steps, where the trend of the training reward is not
  /// known, with the next evaluation at the latest.
  std::optional<Finding> add(const Metrics& metrics, const RewardTrend& training, Answers answers);
  /// A collapse was reported: no fall is until the values have returned.
  void collapsed() { reported_ = true; }

 private:
  struct Evaluated {
    std::optional<double> start;
    double now = 0, scale = 0;
    std::int64_t low = 0;  ///< evaluations in a row that are below by a fifth
    void add(double value, double spread);
    std::int64_t low_by_value = 0;  ///< the same by a fifth of the first value
    bool fell(Answers answers) const {
      const bool equal = answers == Answers::equal_for_long;
      return low >= 3 || now < *start - 0.5 * scale || (equal && low_by_value >= 2);
    }
  };
  /// With an evaluation: completions that are longer only. A fall is left to named().
  std::optional<Finding> evaluated(const Metrics& metrics, const RewardTrend& training,
                                   Answers answers);
  std::optional<Finding> named(const RewardTrend& training, Answers answers);
  bool length_grew() const { return first_length_ > 0 && length_ >= 2 * first_length_; }

  Evaluated reward_, passed_;
  double first_length_ = 0, length_ = 0;
  std::int64_t longer_ = 0;  ///< evaluations in a row with longer completions and no gain
  enum class Lower { none, reward, passes };
  Lower lower_ = Lower::none;  ///< which is below its start
  std::int64_t fallen_ = 0;    ///< evaluations in a row in which one has
  bool reported_ = false;
};

}  // namespace troupe::algorithms

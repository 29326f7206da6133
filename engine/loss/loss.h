// Loss: the interface of an objective. A loss is a plain struct that reads like its paper's
// equation.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/base/json/fields.h"
#include "engine/base/json/json.h"
#include "engine/data/experience.h"
#include "engine/loss/report.h"
#include "engine/loss/tape.h"

namespace troupe::engine::loss {

/// Outputs of the model's heads per token, [T], indexed like an Experience. Outputs that the loss
/// does not need are empty. The first token of a sequence has no log-probability: 0, and mask 0.
struct TokenStats {
  Expr logp, entropy;
  Expr whole_entropy;  ///< over the whole vocabulary, whatever was left to sample from; detached
  Expr collision;      ///< log of the sum of p^2 over the vocabulary; detached
  /// One [T] per label of the score head or per candidate (its logit up to a constant of the
  /// token).
  std::vector<Expr> scores;
};

/// Hidden state at which a token's scores are read.
enum class ReadAt {
  /// The state before the token, as for its log-probability: a critic's value of the state in which
  /// the token was sampled.
  before,
  /// The state of the token: a reward model's score of everything up to it.
  token,
};
constexpr std::array<std::string_view, 2> names_of(ReadAt) {
  return {"before", "token"};
}

/// Inputs that a loss requires.
struct Needs {
  bool logp = true;      ///< log-probabilities of the tokens
  bool entropy = false;  ///< entropy of the model's distribution at each token
  bool whole_entropy = false;
  bool collision = false;
  bool scores = false;  ///< scores of the score head, or of `candidates`
  ReadAt scores_at = ReadAt::token;
  /// Token ids whose log-probabilities under the language head are the scores; empty: score head.
  std::vector<std::int32_t> candidates;
  bool reference = false;  ///< Experience::reference_logp
  double temperature = 1;  ///< of the softmax for log-probabilities and entropies
  /// The loss of a sequence depends on the other sequences of the batch (a quantile, a sort, a
  /// subtracted mean): the trainer evaluates it once on the whole batch before the backward passes
  /// of the micro-batches.
  bool whole_batch = false;
  /// The gradients depend only on the batch, not on the model's outputs (negative log-likelihood):
  /// they can be computed beforehand, with zeros for outputs, and the language head runs forward
  /// and backward in one pass.
  bool grad_is_input_independent = false;
};

/// Checked first: otherwise clang recurses on std::copyable for types that are not losses.
template <class L>
concept Named = requires {
  { L::name } -> std::convertible_to<std::string_view>;
};

/// A loss returns a scalar to minimize. Its denominators (b.count, b.scale) are constants of the
/// global batch, so that losses and gradients of micro-batches add up to those of the whole.
/// Metrics go into `report`. Optional members: `Needs needs() const` and `Result<> validate()
/// const`.
template <class L>
concept Loss = Named<L> && std::copyable<L> && std::default_initializable<L> &&
    requires(const L& loss, const TokenStats& now, const data::Experience& b, Report& report) {
  { loss(now, b, report) } -> std::same_as<Expr>;
  { fields_to_json(loss) } -> std::same_as<Json>;
};

/// A loss by name and settings, for messages between processes.
struct LossSpec {
  std::string name;
  Json fields;
  bool operator==(const LossSpec&) const = default;
};
inline auto fields(LossSpec& s) {
  return std::tie(s.name, s.fields);
}

template <Loss L>
LossSpec spec_of(const L& loss) {
  return {std::string(L::name), fields_to_json(loss)};
}

/// A type-erased loss.
class AnyLoss {
 public:
  template <class L>
  requires(!std::same_as<L, AnyLoss> && Loss<L>) AnyLoss(const L& loss) : spec_(spec_of(loss)) {
    if constexpr (requires { loss.needs(); }) needs_ = loss.needs();
    call_ = loss;
  }
  Expr operator()(const TokenStats& now, const data::Experience& b, Report& report) const {
    return call_(now, b, report);
  }
  const LossSpec& spec() const { return spec_; }
  const Needs& needs() const { return needs_; }

 private:
  LossSpec spec_;
  Needs needs_;
  std::function<Expr(const TokenStats&, const data::Experience&, Report&)> call_;
};

using LossFactory = std::function<Result<AnyLoss>(const Json& fields)>;
using LossTable = std::map<std::string, LossFactory, std::less<>>;

/// Entry of a table: `table.insert(entry<DpoLoss>())`. Absent fields keep their defaults; invalid
/// settings are Errc::usage.
template <Loss L>
LossTable::value_type entry() {
  return {std::string(L::name), [](const Json& fields) -> Result<AnyLoss> {
            auto loss = fields_from_json<L>(fields, std::string(L::name));
            RETURN_IF_ERROR(loss);
            if constexpr (requires { loss->validate(); }) {
              RETURN_IF_ERROR(loss->validate());
            }
            return AnyLoss(*loss);
          }};
}

/// Creates the loss that a spec names. Errc::usage for an unknown name, with the nearest known one.
Result<AnyLoss> make_loss(const LossTable& table, const LossSpec& spec);

/// Outputs of the model for a micro-batch: [T] each; empty where the loss does not need them.
struct Outputs {
  std::span<const float> logp, entropy, collision;
  std::vector<std::vector<float>> scores;
  std::span<const float> whole_entropy = {};
};

/// Value of a loss on one micro-batch (its part of the global batch's loss) and its gradients by
/// each output: [T], or empty where the output is absent or (entropy) the loss does not depend on
/// it.
struct ValueAndGrads {
  double loss = 0;
  std::vector<float> dlogp, dentropy;
  std::vector<std::vector<float>> dscores;
};

/// Evaluates a loss in float64 without its gradients. Adds metrics to `report`.
double value(const AnyLoss& loss, const Outputs& outputs, const data::Experience& batch,
             Report& report);
/// Evaluates a loss and its gradients in float64. Values at tokens with mask 0 are ignored. Adds
/// metrics to `report`.
ValueAndGrads value_and_grads(const AnyLoss& loss, const Outputs& outputs,
                              const data::Experience& batch, Report& report);

}  // namespace troupe::engine::loss

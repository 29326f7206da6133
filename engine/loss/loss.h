// Loss: what a trainer needs to know of an objective. A loss is a plain struct that reads like its
// paper's equation.
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

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/data/experience.h"
#include "engine/loss/report.h"
#include "engine/loss/tape.h"

namespace troupe::engine::loss {

/// What the model's heads say about each token, [T], indexed as an Experience is. What the loss did
/// not ask for is an empty Expr. The first token of a sequence has no log-probability: 0, and mask
/// 0.
struct TokenStats {
  Expr logp, entropy;
  Expr collision;  ///< log of the sum over the vocabulary of p^2; a constant: no gradient flows
                   ///< through it
  std::vector<Expr> scores;  ///< one [T] a column: the score head's labels, or the candidates'
                             ///< logits up to a constant of the token
};

/// Where a token's scores are read.
enum class ReadAt {
  before,  ///< the hidden state before the token, as its log-probability is: a critic's value of
           ///< the state that the token was chosen in
  token,   ///< the token's own hidden state: a reward model's judgement of everything up to it
};
constexpr std::array<std::string_view, 2> names_of(ReadAt) {
  return {"before", "token"};
}

/// What must be there before a loss can be computed.
struct Needs {
  bool logp = true;      ///< log-probabilities of the tokens; false where only scores are read
  bool entropy = false;  ///< of the model's distribution at each token
  bool collision = false;
  bool scores = false;  ///< of the model's score head, or of `candidates`
  ReadAt scores_at = ReadAt::token;
  std::vector<std::int32_t> candidates;  ///< token ids whose log-probabilities under the language
                                         ///< head are the scores (empty: the score head)
  bool reference = false;                ///< Experience::reference_logp
  double temperature =
      1;  ///< log-probabilities and entropies are those of softmax(logits / temperature)
  /// The loss of a sequence depends on the others of the batch (a quantile, a sort, a mean that is
  /// subtracted): the trainer evaluates it once, on everything, before it goes back through the
  /// micro-batches.
  bool whole_batch = false;
  /// The derivatives depend on the batch alone, not on what the model says (a negative
  /// log-likelihood): they may be asked for beforehand, with zeros for outputs, and the model's
  /// head is gone through once, forward and back.
  bool constant_slopes = false;
};

/// Asked before anything else of a loss: clang would go in circles over whether a thing that is
/// none can be copied.
template <class L>
concept Named = requires {
  { L::name } -> std::convertible_to<std::string_view>;
};

/// A loss returns a scalar to be minimised. Whatever it divides by (b.count, b.scale) is a constant
/// counted on the global batch, so that the losses and the gradients of micro-batches add up to
/// those of the whole. Its metrics go into `report`. Optionally: `Needs needs() const` (default:
/// nothing) and `Result<> validate() const` (default: every setting is fine).
template <class L>
concept Loss = Named<L> && std::copyable<L> && std::default_initializable<L> &&
    requires(const L& loss, const TokenStats& now, const data::Experience& b, Report& report) {
  { loss(now, b, report) } -> std::same_as<Expr>;
  { fields_to_json(loss) } -> std::same_as<Json>;
};

/// A loss by name and settings: how it travels between processes.
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

/// Any loss, by value.
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

/// One line of a table: `table.insert(entry<DpoLoss>())`. Absent fields keep their defaults;
/// nonsense is refused (Errc::usage).
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

/// The loss that a spec names. Errc::usage, with the nearest known name, when the table has none
/// such.
Result<AnyLoss> make_loss(const LossTable& table, const LossSpec& spec);

/// What the model gave for a micro-batch: [T] each; empty where the loss does not need it.
struct Outputs {
  std::span<const float> logp, entropy, collision;
  std::vector<std::vector<float>> scores;
};

/// A loss on one micro-batch: its share of the global batch's loss, and its derivatives by each
/// output: [T], or empty when the output is absent or (entropy) the loss does not depend on it.
struct Evaluation {
  double loss = 0;
  std::vector<float> dlogp, dentropy;
  std::vector<std::vector<float>> dscores;
};

/// Computes in float64. A token with mask 0 may carry anything. Metrics are added to `report`.
Evaluation evaluate(const AnyLoss& loss, const Outputs& outputs, const data::Experience& batch,
                    Report& report);

}  // namespace troupe::engine::loss

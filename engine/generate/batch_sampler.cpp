#include "engine/generate/batch_sampler.h"

#include <algorithm>
#include <exception>
#include <ranges>

#include "engine/generate/sampler.h"
#include "engine/generate/validate_request.h"

namespace troupe::engine::generate {

namespace {

constexpr std::int64_t max_host_logits = 1 << 24;  // 64 MB at a time

/// The n largest logits as log-probabilities at temperature 1; ties by id.
std::vector<Alternative> top_alternatives(std::span<const float> logits, float lse, int count) {
  if (count == 0) return {};
  std::vector<std::int32_t> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  const auto n = std::min<std::ptrdiff_t>(count, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + n, ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<Alternative> top;
  for (std::ptrdiff_t i = 0; i < n; ++i) top.push_back({ids[i], logits[ids[i]] - lse});
  return top;
}

/// Rows of logits [M, V/tp] on the host. Ranks of a tensor-parallel group gather whole rows first,
/// so that every rank samples the same tokens.
class HostLogits {
 public:
  HostLogits(models::Decoder& decoder, const Tensor& logits)
      : device_(decoder.device()),
        logits_(logits),
        width_(static_cast<std::size_t>(decoder.spec().vocabulary)),
        gathered_(decoder.tp() != nullptr ? decoder.head().gather_logits(logits)
                                          : std::vector<float>()) {}
  /// Calls visit(i, row i [V]) for several rows at once. When all are done, rethrows the exception
  /// of the first row that threw.
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(logits_.shape()[0]));
    const auto try_row = [&](std::int64_t i, std::span<const float> row) {
      try {
        visit(static_cast<std::size_t>(i), row);
      } catch (...) {
        thrown[static_cast<std::size_t>(i)] = std::current_exception();
      }
    };
    if (gathered_.empty()) device_.visit_rows(logits_, try_row);
    for (std::size_t at = 0; at < gathered_.size(); at += width_)
      try_row(static_cast<std::int64_t>(at / width_), std::span(gathered_).subspan(at, width_));
    const auto first = std::ranges::find_if(
        thrown, [](const std::exception_ptr& each) { return each != nullptr; });
    if (first != thrown.end()) std::rethrow_exception(*first);
  }

 private:
  ops::Device& device_;
  const Tensor& logits_;
  std::size_t width_;
  std::vector<float> gathered_;
};

}  // namespace

std::vector<SampledToken> BatchSampler::sample(std::vector<RowToSample> rows,
                                               const Tensor& hidden) const {
  // One call of token_logprob serves one temperature: rows of equal temperature become neighbours.
  std::stable_sort(rows.begin(), rows.end(), [](const RowToSample& a, const RowToSample& b) {
    return a.inverse_temperature < b.inverse_temperature;
  });
  std::vector<SampledToken> out;
  const auto block = static_cast<std::size_t>(
      std::max<std::int64_t>(1, max_host_logits / decoder_.spec().vocabulary));
  for (std::size_t i = 0; i < rows.size(); i += block)
    sample_block(std::span(rows).subspan(i, std::min(block, rows.size() - i)), hidden, out);
  return out;
}

void BatchSampler::sample_block(std::span<const RowToSample> rows, const Tensor& hidden,
                                std::vector<SampledToken>& out) const {
  ops::Device& device = decoder_.device();
  std::vector<std::int32_t> indices;
  for (const RowToSample& each : rows) indices.push_back(each.row);
  Tensor last = device.empty({std::ssize(rows), decoder_.spec().width});  // [M, D]
  device.gather_rows(hidden, indices, last);
  const nn::Head& head = decoder_.head();
  const Tensor logits = head.logits(last, precision_, packed_);  // [M, V/tp]
  const HostLogits host(decoder_, logits);

  std::vector<std::int32_t> ids(rows.size());
  host.for_each([&](std::size_t i, std::span<const float> row) {
    const RowToSample& each = rows[i];
    require_finite_logits(row, *each.request, each.tokens.size());
    ids[i] = sample_token(row, each.context(), each.request->sample_id);
  });
  const nn::TokenScores scores = head.scores(logits, ids, 1.0F);
  const std::vector<float> logp = ops::to_host(device, scores.logp),
                           lse = ops::to_host(device, scores.lse);
  const std::vector<float> sampling_logp = sampling_logprobs(rows, logits, ids, logp);
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < rows.size(); ++i)
    out.push_back({rows[i].sequence, ids[i], logp[i], sampling_logp[i], {}});
  const auto alternatives = [&](std::size_t i) { return rows[i].request->params.top_logprobs; };
  if (std::ranges::none_of(std::views::iota(std::size_t{0}, rows.size()), alternatives)) return;
  host.for_each([&](std::size_t i, std::span<const float> row) {
    out[before + i].top = top_alternatives(row, lse[i], alternatives(i));
  });
}

/// `logp`, replaced where a row's temperature is not 1.
std::vector<float> BatchSampler::sampling_logprobs(std::span<const RowToSample> rows,
                                                   const Tensor& logits,
                                                   std::span<const std::int32_t> ids,
                                                   std::vector<float> logp) const {
  const auto count = std::ssize(rows);
  for (std::ptrdiff_t begin = 0, end = 0; begin < count; begin = end) {
    const float inverse = rows[begin].inverse_temperature;
    while (end < count && rows[end].inverse_temperature == inverse) ++end;
    if (inverse == 1.0F) continue;
    const nn::TokenScores part =
        decoder_.head().scores(logits.rows(begin, end), ids.subspan(begin, end - begin), inverse);
    std::ranges::copy(ops::to_host(decoder_.device(), part.logp), logp.begin() + begin);
  }
  return logp;
}

}  // namespace troupe::engine::generate

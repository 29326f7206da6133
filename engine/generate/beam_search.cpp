#include "engine/generate/beam_search.h"

#include <algorithm>
#include <cmath>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/generate/beam_selection.h"
#include "engine/generate/kv_cache.h"
#include "engine/generate/last_stage.h"
#include "engine/generate/logits_processors.h"
#include "engine/generate/page_pool.h"
#include "engine/generate/row_batch.h"
#include "engine/generate/stop_strings.h"
#include "engine/generate/validate_request.h"

namespace troupe::engine::generate {

namespace {
constexpr std::int64_t max_cache_bytes = std::int64_t{8} << 30;
constexpr std::size_t default_chunk = 512;  // tokens of a prompt in one forward pass

struct Beam {
  std::vector<std::int32_t> tokens;  // prompt and output
  std::vector<float> logp;           // [output]
  double score = 0;
  std::vector<std::int32_t> pages;
};

std::vector<double> log_softmax(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp(z - top);
  const double lse = top + std::log(sum);
  std::vector<double> out(logits.begin(), logits.end());
  for (double& z : out) z -= lse;
  return out;
}

void renormalize(LogitsRow& row) {
  const std::vector<double> p = probabilities(row);
  for (std::size_t i = 0; i < p.size(); ++i)
    row.score[static_cast<std::size_t>(row.kept[i])] = std::log(p[i]);
}

class Search {
 public:
  Search(models::Decoder& decoder, const Request& request, const GeneratorConfig& config,
         std::size_t limit, std::int32_t pages)
      : decoder_(decoder),
        packed_(decoder, config.precision, config.weights),
        request_(request),
        config_(config),
        ends_(end_tokens(request.params, config.eos_ids)),
        limit_(limit),
        selection_(request.params.beams, limit - request.prompt.size()),
        pool_(pages),
        cache_(decoder.make_cache(pages, config.page_size)) {
    std::sort(ends_.begin(), ends_.end());
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
    packed_.refresh();
  }

  Result<std::vector<Generation>> run() {
    Tensor last = forward_prompt();
    for (;;) {
      if (config_.stop && config_.stop())
        return fail(Errc::cancelled, "beam search was stopped before its end");
      Tensor logits;  // [R, V/tp], on the last pipeline stage
      if (last) logits = decoder_.head().logits(last, config_.precision, packed_.in_use());
      const std::vector<Continuation> best = continuations(logits);
      collect(best, logits);
      const std::vector<Continuation> running = selection_.continuing(best);
      fork(running, model_logp(logits, running));
      if (!selection_.may_improve(best, running, beams_.front().logp.size()))
        return selection_.take_returned();
      last = forward_last_tokens();
    }
  }

 private:
  std::span<const std::int32_t> output(const Beam& beam) const {
    return std::span(beam.tokens).subspan(request_.prompt.size());
  }
  bool is_end(std::int32_t token) const {
    return std::binary_search(ends_.begin(), ends_.end(), token);
  }

  /// Hidden states [rows, D] of tokens first .. first + count of each beam; the pages are
  /// allocated. Absent where another pipeline stage has them.
  Tensor forward(std::span<const Beam> beams, std::size_t first, std::size_t count) {
    RowBatch batch;
    for (const Beam& beam : beams)
      batch.add(std::span(beam.tokens).subspan(first, count), static_cast<std::int32_t>(first),
                static_cast<std::int32_t>(beam.tokens.size()), beam.pages);
    return batch.forward(decoder_, cache_, config_.precision, packed_.in_use());
  }

  /// Computes the prompt once for all beams. [1, D]
  Tensor forward_prompt() {
    Beam first;
    first.tokens = request_.prompt;
    const std::size_t length = first.tokens.size(),
                      page = static_cast<std::size_t>(config_.page_size);
    for (std::size_t i = 0; i < length; i += page) first.pages.push_back(pool_.take());
    std::size_t chunk = config_.tokens_per_step > 0
                            ? static_cast<std::size_t>(config_.tokens_per_step)
                            : default_chunk;
    if (decoder_.spec().keys_depend_on_length())
      chunk = length;  // keys depend on the length of the sequence
    Tensor last;
    for (std::size_t i = 0; i < length; i += chunk) {
      const std::size_t count = std::min(chunk, length - i);
      const Tensor hidden = forward(std::span(&first, 1), i, count);
      if (hidden)
        last = hidden.rows(static_cast<std::int64_t>(count) - 1, static_cast<std::int64_t>(count));
    }
    beams_.assign(static_cast<std::size_t>(request_.params.beams.count), first);
    for (std::size_t b = 1; b < beams_.size(); ++b) {
      beams_[b].score = beam_ban;  // the beams are still equal: only one may continue
      for (const std::int32_t held : beams_[b].pages) pool_.share(held);
    }
    return last;
  }

  /// Computes the last token of each beam. [R, D]
  Tensor forward_last_tokens() {
    const std::size_t position = beams_.front().tokens.size() - 1,
                      page_index = position / static_cast<std::size_t>(config_.page_size);
    if (decoder_.spec().keys_change_at(std::ssize(beams_.front().tokens)))
      return forward_all_tokens();
    std::vector<PageCopy> copies;
    for (Beam& beam : beams_) {
      if (page_index == beam.pages.size()) {
        beam.pages.push_back(pool_.take());
      } else if (const std::int32_t shared = beam.pages[page_index]; pool_.holders(shared) > 1) {
        beam.pages[page_index] = pool_.take();
        copies.push_back({shared, beam.pages[page_index]});
        pool_.release(shared);
      }
    }
    copy_pages(decoder_.device(), cache_, copies);
    return forward(beams_, position, 1);
  }

  /// Recomputes every beam from its first token, where all keys have changed.
  Tensor forward_all_tokens() {
    const std::size_t length = beams_.front().tokens.size(),
                      page = static_cast<std::size_t>(config_.page_size);
    for (Beam& beam : beams_) {
      for (const std::int32_t held : beam.pages) pool_.release(held);
      beam.pages.clear();
    }
    std::vector<std::int32_t> ends;
    for (Beam& beam : beams_) {
      for (std::size_t i = 0; i < length; i += page) beam.pages.push_back(pool_.take());
      ends.push_back(static_cast<std::int32_t>((ends.size() + 1) * length - 1));
    }
    const Tensor hidden = forward(beams_, 0, length);
    if (!hidden) return {};
    Tensor last = decoder_.device().empty({std::ssize(ends), hidden.shape()[1]});
    decoder_.device().gather_rows(hidden, decoder_.device().indices(ends), last);
    return last;
  }

  /// Row of the logits of a beam. In the first step all beams share one row.
  std::int32_t row_of(std::size_t beam, const Tensor& logits) const {
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(static_cast<std::int64_t>(beam), logits.shape()[0] - 1));
  }

  bool sampling() const { return !request_.params.is_greedy(); }
  BeamDraw draw(const Beam& beam) const {
    return {request_.params.seed, request_.sample_id, beam.tokens.size()};
  }

  /// Log-probabilities of a beam's next token after penalties and, when sampling, filters.
  LogitsRow row_after_processors(std::span<const float> logits, const Beam& beam) const {
    ProcessorContext context{request_.params, beam.tokens, request_.prompt.size(), ends_, limit_};
    context.min_kept = std::max<std::size_t>(2, 1 + ends_.size());
    LogitsRow row = apply_penalties(log_softmax(logits), context);
    if (row.kept.empty()) return row;
    if (sampling()) apply_filters(row, context);
    if (request_.params.beams.renormalize) renormalize(row);
    return row;
  }

  /// The best continuations over all beams, best first; when sampling, those that are drawn.
  std::vector<Continuation> continuations(const Tensor& logits) const {
    return LastStage(decoder_, "the continuations of the beams").values<Continuation>([&] {
      return continuations_of(logits);
    });
  }
  std::vector<Continuation> continuations_of(const Tensor& logits) const {
    const std::vector<float> host =
        decoder_.head().gather_logits(logits);  // [R, V], the same on every rank
    const auto width = static_cast<std::size_t>(decoder_.spec().vocabulary);
    const std::size_t wanted = selection_.wanted(ends_.size());
    std::vector<Continuation> all;
    for (std::size_t b = 0; b < beams_.size(); ++b) {
      const Beam& beam = beams_[b];
      const auto z =
          std::span(host).subspan(static_cast<std::size_t>(row_of(b, logits)) * width, width);
      require_finite_logits(z, request_, beam.tokens.size());
      const LogitsRow row = row_after_processors(z, beam);
      if (sampling())
        add_drawn(row, b, beam.score, wanted, draw(beam), all);
      else
        add_best(row, b, beam.score, wanted, all);
    }
    if (all.empty())
      throw Failure(
          Error{Errc::usage,
                "beam search: every token of every beam is banned; relax the penalties and bans"});
    if (sampling())
      keep_drawn(all, wanted);
    else
      keep_best(all, wanted);
    for (Continuation& each : all) each.ends = ends(each);
    return all;
  }

  std::vector<std::int32_t> output_with(const Continuation& next) const {
    const auto before = output(beams_[next.parent]);
    std::vector<std::int32_t> ids(before.begin(), before.end());
    ids.push_back(next.token);
    return ids;
  }

  bool ends(const Continuation& next) const {
    if (is_end(next.token) || beams_[next.parent].tokens.size() + 1 >= limit_) return true;
    const auto& stops = request_.params.stop_strings;
    return !stops.empty() &&
           find_stop(output_with(next), stops, config_.decode, request_.params.min_new_tokens)
               .found();
  }

  /// Log-probability of each continuation's token under the model: the bits that the trainer
  /// computes.
  std::vector<float> model_logp(const Tensor& logits, std::span<const Continuation> next) const {
    return LastStage(decoder_, "the log-probabilities of the beams").values<float>([&] {
      return logp_of(logits, next);
    });
  }
  std::vector<float> logp_of(const Tensor& logits, std::span<const Continuation> next) const {
    ops::Device& device = decoder_.device();
    std::vector<std::int32_t> rows, targets;
    for (const Continuation& each : next) {
      rows.push_back(row_of(each.parent, logits));
      targets.push_back(each.token);
    }
    Tensor own = device.empty({std::ssize(rows), logits.shape()[1]});
    device.gather_rows(logits, device.indices(rows), own);
    return ops::to_host(device, decoder_.head().scores(own, {targets}).logp);
  }

  /// Passes ended continuations to the selection.
  void collect(const std::vector<Continuation>& best, const Tensor& logits) {
    std::vector<Continuation> ended;
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (selection_.may_return(best, i)) ended.push_back(best[i]);
    }
    if (ended.empty()) return;
    const std::vector<float> logp = model_logp(logits, ended);
    for (std::size_t i = 0; i < ended.size(); ++i) {
      Generation done;
      done.id = request_.id;
      done.sample_id = request_.sample_id;
      done.prompt_tokens = static_cast<std::int32_t>(request_.prompt.size());
      done.ids = output_with(ended[i]);
      done.logp = beams_[ended[i].parent].logp;
      done.logp.push_back(logp[i]);
      done.sampling_logp = done.logp;
      describe_end(done);
      selection_.end(std::move(done), ended[i].score);
    }
  }

  void describe_end(Generation& done) const {
    StopMatch match;
    if (!is_end(done.ids.back()))
      match = find_stop(done.ids, request_.params.stop_strings, config_.decode,
                        request_.params.min_new_tokens);
    done.finish =
        is_end(done.ids.back()) || match.found() ? FinishReason::stop : FinishReason::length;
    done.stop_string = std::move(match.stop);
    if (!done.stop_string.empty()) {
      done.text = std::move(match.text);
    } else if (config_.decode) {
      done.text = config_.decode(done.ids);
    }
  }

  void fork(const std::vector<Continuation>& running, const std::vector<float>& logp) {
    std::vector<Beam> children;
    for (std::size_t i = 0; i < running.size(); ++i) {
      Beam child = beams_[running[i].parent];
      child.tokens.push_back(running[i].token);
      child.logp.push_back(logp[i]);
      child.score = running[i].score;
      for (const std::int32_t page : child.pages) pool_.share(page);
      children.push_back(std::move(child));
    }
    for (const Beam& beam : beams_) {
      for (const std::int32_t page : beam.pages) pool_.release(page);
    }
    beams_ = std::move(children);
  }

  models::Decoder& decoder_;
  models::PackedWeights packed_;
  const Request& request_;
  const GeneratorConfig& config_;
  std::vector<std::int32_t> ends_;
  std::size_t limit_;  // tokens of prompt and output
  BeamSelection selection_;
  PagePool pool_;
  nn::KvCache cache_;
  std::vector<Beam> beams_;  // best first
};

/// Maximum number of pages in use: the prompt's full pages once, the rest per beam, and one during
/// a copy. Nothing is shared where keys depend on the length.
std::int64_t pages_needed(const Request& request, std::int64_t limit, std::int64_t page_size,
                          bool keys_change) {
  const std::int64_t shared = keys_change ? 0 : std::ssize(request.prompt) / page_size,
                     each = (limit - 1 + page_size - 1) / page_size;
  return shared + request.params.beams.count * (each - shared) + 1;
}

}  // namespace

Result<std::vector<Generation>> beam_search(models::Decoder& decoder, const Request& request,
                                            const GeneratorConfig& config) {
  const models::DecoderSpec& spec = decoder.spec();
  check(config.page_size >= 1 && config.page_size <= 4096, "beam_search: page_size");
  RETURN_IF_ERROR(validate_request(request, spec, static_cast<bool>(config.decode)));
  const std::int64_t limit = std::min(
      std::ssize(request.prompt) + std::int64_t{request.params.max_new_tokens}, spec.max_positions);
  for (std::int64_t length = std::ssize(request.prompt) + 1;
       spec.keys_depend_on_length() && length < limit; ++length)
    if (spec.keys_change_at(length))
      return fail(
          Errc::unsupported,
          cat("request ", request.id, ": the rotary positions of this model change at ", length,
              " tokens, and beam search cannot cross this length; lower max_new_tokens"));
  const std::int64_t needed =
      pages_needed(request, limit, config.page_size, spec.keys_depend_on_length());
  const std::int64_t page_bytes =
      std::max<std::int64_t>(config.page_size * cached_token_bytes(spec), 1);
  const std::int64_t maximum = config.pages > 0 ? config.pages
                                                : std::min(max_cache_bytes / page_bytes,
                                                           max_cached_tokens / config.page_size);
  if (needed > maximum) {
    return fail(Errc::full,
                cat("request ", request.id, ": ", request.params.beams.count, " beams of ", limit,
                    " tokens need ", needed, " pages of the cache, which may have ", maximum,
                    " of ", config.page_size, " tokens; lower num_beams or max_new_tokens"));
  }
  return Search(decoder, request, config, static_cast<std::size_t>(limit),
                static_cast<std::int32_t>(needed))
      .run();
}

}  // namespace troupe::engine::generate

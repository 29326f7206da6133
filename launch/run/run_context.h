// Stage: where an algorithm is run: what its recipe needs to get from a configuration to the end of
// the run.
#pragma once

#include "engine/base/log.h"
#include "engine/data/loader/loader.h"
#include "launch/run/conduct.h"
#include "launch/run/settings.h"

namespace troupe::launch {

class Stage {
 public:
  Stage(const Session& session, const TextModel& text, Cast& cast, RunJournal& journal,
        const actors::Stop& stop)
      : session_(session), text_(text), cast_(cast), journal_(journal), stop_(stop) {}

  const RunConfig& config() const { return session_.config(); }
  const Session& session() const { return session_; }
  const TextModel& text() const { return text_; }

  engine::data::DataOptions data_options() const;
  /// Batches of `batches_of` times train.batch_size rows, from where the run goes on.
  template <class T>
  engine::data::Loader<T> loader(const engine::data::DataOptions& options,
                                 std::int64_t batches_of = 1) {
    auto out = value_or_throw(
        engine::data::make_loader<T>(options, text(), loader_settings(config(), batches_of)));
    const auto& report =
        out.dataset()
            .report;  // when rows were left out or cut, the data library has warned of it already
    if (!out.streams() && report.bad + report.untrainable + report.truncated == 0)
      log_info(report.text());
    if (const Json* place = session_.state().find("data")) value_or_throw(out.restore(*place));
    return out;
  }

  /// The actors that the recipe needs.
  algorithms::Cluster cluster();
  /// `batches`: what one run over the loader gives (0: without end); `updates`: optimizer steps
  /// that share one.
  algorithms::Plan begin(std::int64_t batches, std::int64_t updates = 1);
  /// Runs it; the exit code.
  int drive(actors::Task<void> algorithm, const algorithms::Plan& plan);

 private:
  const Session& session_;
  const TextModel& text_;
  Cast& cast_;
  RunJournal& journal_;
  const actors::Stop& stop_;
};

}  // namespace troupe::launch

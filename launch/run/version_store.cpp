#include "launch/run/version_store.h"

#include "engine/base/check.h"
#include "launch/run/kept_files.h"
#include "launch/run/resumable.h"

namespace troupe::launch::run {

std::string VersionStore::save(std::int64_t step,
                               const std::vector<algorithms::SharedWeights>& weights,
                               const std::vector<algorithms::FinishedSample>& samples) {
  return stage_kept(session_.folder(), step, weights, samples);
}

algorithms::SharedWeights VersionStore::load(std::int64_t step, std::uint64_t version) {
  check(step == session_.done(), "VersionStore: another checkpoint than that of the session");
  const std::string& checkpoint = session_.resume_from();
  return read_kept_version(checkpoint, version, trained_spec(session_.config(), checkpoint));
}

std::vector<algorithms::FinishedSample> VersionStore::load_samples(std::int64_t step) {
  check(step == session_.done(), "VersionStore: another checkpoint than that of the session");
  const std::string& checkpoint = session_.resume_from();
  return read_kept_samples(checkpoint,
                           kept_bounds(session_.config(), checkpoint, step, session_.state()));
}

}  // namespace troupe::launch::run

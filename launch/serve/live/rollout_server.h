// RolloutServer: the OpenAI API over the weights of a rollout of a run, and the endpoints of
// programs that make its samples.
#pragma once

#include <memory>

#include "actors/roles/rollout_service.h"
#include "launch/serve/api/loaded_engine.h"
#include "launch/serve/serve_config.h"

namespace troupe::launch::serve::live {

/// What a run's server loads and offers.
struct RolloutServerOptions {
  ServeConfig serve;
  api::ServedModelOptions model;
  api::EngineOptions engine;
  bool makes_samples = false;      ///< clients lease samples and return them
  bool between_sequences = false;  ///< weights change between two sequences, not two tokens
  std::int64_t group = 1;          ///< samples of one prompt
  std::chrono::seconds lease_timeout{600};
  std::int64_t max_leases = 0;          ///< of a client at a time; 0: no limit
  std::vector<std::string> lease_keys;  ///< names of keys that may lease samples; none: all
  std::int64_t max_length = 0;          ///< tokens of the longest sample; 0: those of the model
  std::int64_t mask_bytes = 0;          ///< of the sampling masks of a sample; 0: none are taken
  bool masks_required = false;
};

/// Requests have an engine of their own: a decoder that reads the rollout's weights where they lie,
/// with a thread and a cache of its own. They do not change what the rollout samples.
class RolloutServer final : public actors::roles::RolloutService {
 public:
  /// Listens as serve.* says; requests wait until there are weights. Errors of
  /// ModelSet::load(), ApiKeys::read() and Server::start().
  static Result<std::shared_ptr<RolloutServer>> start(const RolloutServerOptions& options);
  /// Gives requests in progress a second.
  ~RolloutServer() override;

  void adopt(std::uint64_t version, const SharedArray<float>& values) override;
  bool makes_samples() const override;
  void offer(const std::vector<actors::protocol::SampleRequest>& requests,
             std::uint64_t version) override;
  std::vector<actors::protocol::Completion> take() override;

 private:
  struct Impl;
  explicit RolloutServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::launch::serve::live

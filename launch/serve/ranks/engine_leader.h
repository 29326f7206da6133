// EngineLeader: rank 0 of a server whose model several ranks share. It tells the others what its
// services call, through the channel of the group, so that all generators get the same calls in the
// same order (engine_follower.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "actors/group/group_channel.h"
#include "engine/base/error.h"
#include "engine/parallel/communicator.h"
#include "engine/serving/other_ranks.h"
#include "launch/serve/ranks/messages.h"

namespace troupe::launch::serve::ranks {

class EngineLeader final : public engine::serving::OtherRanks {
 public:
  /// `world` outlives this.
  EngineLeader(std::shared_ptr<actors::group::GroupChannel> channel,
               engine::parallel::Communicator& world);

  // All functions are called by the thread of the service. Calls are sent before the next step.

  void submit(const engine::generate::Request& request,
              const engine::serving::RequestSource& source) override;
  void cancel(std::uint64_t id) override;
  void step(std::int64_t sampled) override;
  void pool(const engine::serving::PoolingBatch& batch) override;
  void abort(const std::string& why) noexcept override;

  /// The others begin to read a folder.
  void read_folder(const std::string& folder, bool adapter);
  /// Waits until the others have read it. `mine`: what this rank has read. Errors of any rank:
  /// none uses it then.
  Result<> use_adapter(const Result<std::shared_ptr<const engine::nn::LoraModel>>& mine);
  Result<> use_weights(const Result<>& mine);

 private:
  /// An object of this process that the other ranks know by its number.
  struct Known {
    std::uint64_t number = 0;
    std::weak_ptr<const void> object;
  };
  template <class M>
  void send(M message);
  void add(EngineCall call);
  void send_calls(bool steps, std::int64_t sampled);
  void release_unused();
  Result<> use_folder(std::uint64_t adapter, const Result<>& mine);

  std::shared_ptr<actors::group::GroupChannel> channel_;
  engine::parallel::Communicator& world_;
  EngineCalls calls_;
  std::map<const void*, Known> known_;
  std::uint64_t numbers_ = 0;
};

}  // namespace troupe::launch::serve::ranks

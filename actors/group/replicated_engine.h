// ReplicatedEngine: the engine of rank 0 where several ranks share the decoder (models::ModelPart).
// It tells the others what is called here, through the channel of the group, so that their engines
// (engine_follower.h) get the same calls in the same order and return the same results.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/group/engine_messages.h"
#include "actors/group/group_channel.h"
#include "engine/base/errors/error.h"
#include "engine/parallel/communicator.h"
#include "engine/serving/engine.h"

namespace troupe::actors::group {

/// `search` is Engine::beam_search() of every rank; `stop` is that of rank 0. Errors of any rank.
Result<std::vector<engine::generate::Generation>> search_on_all_ranks(
    GroupChannel& channel, engine::parallel::Communicator& world, const std::function<bool()>& stop,
    const std::function<Result<std::vector<engine::generate::Generation>>(std::function<bool()>)>&
        search);

/// Functions throw where a rank cannot be reached. A failure of step() or pool() that is not one of
/// a request ends all ranks.
class ReplicatedEngine final : public engine::serving::Engine {
 public:
  /// `world` outlives this.
  ReplicatedEngine(engine::models::Decoder& decoder, engine::generate::GeneratorConfig config,
                   std::shared_ptr<GroupChannel> channel, engine::parallel::Communicator& world)
      : Engine(decoder, std::move(config)), channel_(std::move(channel)), world_(world) {}

  // Calls are sent with the next step.

  bool cancel(std::uint64_t id) override;
  void step() override;
  Result<std::vector<engine::generate::Generation>> beam_search(
      const engine::generate::Request& request, std::function<bool()> stop) override;
  std::vector<float> pool(const engine::serving::PoolingBatch& batch) override;

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
  Result<> accept(engine::generate::Request request,
                  const engine::serving::RequestSource& source) override;
  /// Other ranks cannot repeat a step that one of them has not computed.
  bool can_repeat_step() const override { return false; }
  void announce(const engine::generate::Request& request,
                const engine::serving::RequestSource& source);
  template <class M>
  void send(M message);
  void add(EngineCall call);
  void send_calls(bool steps);
  void release_unused();
  Result<> use_folder(std::uint64_t adapter, const Result<>& mine);

  std::shared_ptr<GroupChannel> channel_;
  engine::parallel::Communicator& world_;
  EngineCalls calls_;
  std::map<const void*, Known> known_;
  std::uint64_t numbers_ = 0;
};

}  // namespace troupe::actors::group

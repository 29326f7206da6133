// EngineFollower: what the other ranks of a server do: the calls that rank 0 tells them
// (engine_leader.h), with their part of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "actors/group/group_channel.h"
#include "engine/base/error.h"
#include "engine/generate/generator.h"
#include "launch/serve/api/loaded_engine.h"
#include "launch/serve/ranks/messages.h"

namespace troupe::launch::commands {

class EngineFollower {
 public:
  /// Errc::usage for invalid sizes.
  static Result<std::unique_ptr<EngineFollower>> create(serve::api::LoadedEngine loaded);

  /// Returns when the leader has ended. Throws where this rank failed and the group cannot
  /// continue.
  void serve(actors::group::GroupChannel& channel);

 private:
  using Adapter = std::shared_ptr<const engine::nn::LoraModel>;
  /// What a folder has: either an adapter, or the function that copies weights into the model.
  struct Read {
    Adapter adapter;
    std::function<Result<>()> weights;
  };

  explicit EngineFollower(serve::api::LoadedEngine loaded) : loaded_(std::move(loaded)) {}
  template <class M>
  bool handle_as(const actors::group::GroupCall& call);
  void on(serve::ranks::EngineCalls message);
  void on(const serve::ranks::Pool& message);
  void on(serve::ranks::ReadFolder message);
  void on(const serve::ranks::UseFolder& message);
  void apply(serve::ranks::EngineCall call);
  engine::generate::Request request_of(serve::ranks::RequestMessage message) const;
  void step();

  serve::api::LoadedEngine loaded_;
  std::optional<engine::generate::Generator> generator_;  ///< absent: the model pools
  std::map<std::uint64_t, std::shared_ptr<engine::constraints::Constraint>> constraints_;
  std::map<std::uint64_t, Adapter> adapters_;
  std::future<Result<Read>> reading_;
  std::uint64_t version_ = 0;
  actors::group::GroupChannel* channel_ = nullptr;  ///< during serve()
};

}  // namespace troupe::launch::commands

// EngineFollower: what the other ranks of an engine do: the calls that rank 0 tells them
// (replicated_engine.h), with their part of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
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

/// What a rank makes the objects of requests of. Those that no message asks for may be absent.
struct EngineParts {
  /// Request::decode of a prompt.
  std::function<engine::generate::TextDecoder(const std::vector<std::int32_t>& prompt,
                                              bool skips_special)>
      text;
  /// RequestSource::constraint.
  std::function<std::shared_ptr<engine::constraints::Constraint>(const std::string& source)>
      constraint;
  std::function<Result<std::shared_ptr<const engine::nn::LoraModel>>(const std::string& folder)>
      adapter;
  /// The function that copies other weights into the decoder.
  std::function<Result<std::function<Result<>()>>(const std::string& folder)> weights;
};

class EngineFollower {
 public:
  /// `engine`, which the first call starts unless it has started, `channel`, `world` and what the
  /// parts refer to outlive this.
  EngineFollower(engine::serving::Engine& engine, EngineParts parts, GroupChannel& channel,
                 engine::parallel::Communicator& world)
      : engine_(engine), parts_(std::move(parts)), channel_(channel), world_(world) {}

  /// Returns when the leader has ended. Throws where this rank failed and the group cannot
  /// continue.
  void serve();

 private:
  using Adapter = std::shared_ptr<const engine::nn::LoraModel>;
  /// What a folder has: either an adapter, or the function that copies weights into the model.
  struct Read {
    Adapter adapter;
    std::function<Result<>()> weights;
  };

  template <class M>
  bool handle_as(const GroupCall& call);
  void on(EngineCalls message);
  void on(Beams message);
  void on(const Pool& message);
  void on(ReadFolder message);
  void on(const UseFolder& message);
  void apply(EngineCall call);
  void submit(engine::generate::Request request);
  engine::generate::Request request_of(RequestMessage message) const;

  engine::serving::Engine& engine_;
  EngineParts parts_;
  GroupChannel& channel_;
  engine::parallel::Communicator& world_;
  std::map<std::uint64_t, std::shared_ptr<engine::constraints::Constraint>> constraints_;
  std::map<std::uint64_t, Adapter> adapters_;
  std::future<Result<Read>> reading_;
};

}  // namespace troupe::actors::group

// Rollout: draws samples from its own copy of the policy's weights, which LoadWeights replaces between requests.
#pragma once

#include <memory>

#include "actors/protocol/generate.h"
#include "actors/protocol/train.h"
#include "actors/runtime/message.h"
#include "engine/generate/generator.h"

namespace troupe::actors::roles {

class Rollout {
 public:
  using Handled = Messages<protocol::Generate, protocol::LoadWeights>;
  /// `config.decode` gives the text of completions. Errc::usage when the generator's sizes cannot work.
  static Result<Rollout> create(std::unique_ptr<engine::models::Decoder> model, engine::generate::GeneratorConfig config);

  Result<std::vector<protocol::Drawn>> on(protocol::Generate message);
  Result<> on(protocol::LoadWeights message);

 private:
  Rollout(std::unique_ptr<engine::models::Decoder> model, engine::generate::Generator generator, engine::generate::TextDecoder decode);

  std::unique_ptr<engine::models::Decoder> model_;
  engine::generate::Generator generator_;
  engine::generate::TextDecoder decode_;
  std::uint64_t version_ = 0;
};

}  // namespace troupe::actors::roles

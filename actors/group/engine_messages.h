// The messages from rank 0 of an engine to the others, which they handle one after the other. Names
// are those of GroupCall::type.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/serving/pooling_batch.h"

namespace troupe::actors::group {

/// A request. Its functions and objects are made again at each rank.
struct RequestMessage {
  engine::generate::Request request;
  bool decodes = false;                       ///< its texts are needed, to end at stop strings
  bool skips_special = true;                  ///< texts leave out special tokens
  std::uint64_t constraint = 0, adapter = 0;  ///< numbers of objects; 0: none
  std::vector<std::uint64_t> allowed = {};    ///< words of the TokenMask; empty: all tokens
};
inline auto fields(RequestMessage& m) {
  // Names every member, so that a new one does not compile.
  auto& [id, prompt, params, sample_id, decode, constraint, allowed, begins_without_space, adapter,
         cache_salt, prompt_alternatives, scored_from, generates, reported] = m.request;
  return std::tie(id, sample_id, prompt, params, m.decodes, m.skips_special, m.constraint,
                  m.adapter, m.allowed, begins_without_space, cache_salt, prompt_alternatives,
                  scored_from, generates, reported);
}

/// submit and cancel are those of Generator. constrain makes a constraint, release forgets a
/// constraint or an adapter that no other request will use.
enum class EngineCallKind : std::uint8_t { submit, cancel, constrain, release };
constexpr std::array<std::string_view, 4> names_of(EngineCallKind) {
  return {"submit", "cancel", "constrain", "release"};
}

struct EngineCall {
  EngineCallKind kind = EngineCallKind::submit;
  std::uint64_t number = 0;               ///< of the request to cancel, or of the object
  std::string constraint;                 ///< to make: serialized()
  std::optional<RequestMessage> request;  ///< to submit
};
inline auto fields(EngineCall& c) {
  return std::tie(c.kind, c.number, c.constraint, c.request);
}

/// Calls in their order, and then Generator::step().
struct EngineCalls {
  static constexpr std::string_view name = "EngineCalls";
  std::vector<EngineCall> calls;
  bool steps = false;
  /// Tokens that the leader has sampled before the step. The others have sampled as many.
  std::int64_t sampled = 0;
};
inline auto fields(EngineCalls& m) {
  return std::tie(m.calls, m.steps, m.sampled);
}

/// generate::beam_search() on all ranks.
struct Beams {
  static constexpr std::string_view name = "Beams";
  RequestMessage request;
};
inline auto fields(Beams& m) {
  return std::tie(m.request);
}

/// A pass of the PoolingService.
struct Pool {
  static constexpr std::string_view name = "Pool";
  engine::serving::PoolingBatch batch;
};
inline auto fields(Pool& m) {
  return std::tie(m.batch);
}

/// Begins to read a folder, beside what follows: an adapter, or other weights of the model.
struct ReadFolder {
  static constexpr std::string_view name = "ReadFolder";
  std::string folder;
  bool adapter = false;
};
inline auto fields(ReadFolder& m) {
  return std::tie(m.folder, m.adapter);
}

/// Uses what was read, if every rank could read it.
struct UseFolder {
  static constexpr std::string_view name = "UseFolder";
  std::uint64_t adapter = 0;  ///< its number; 0: weights
};
inline auto fields(UseFolder& m) {
  return std::tie(m.adapter);
}

}  // namespace troupe::actors::group

// Generator's state, shared by generator.cpp (requests in, results out) and generator_step.cpp (one
// forward pass).
#pragma once

#include <map>
#include <unordered_map>

#include "engine/generate/generator.h"
#include "engine/generate/scheduler.h"

namespace troupe::engine::generate {

/// An unfinished request.
struct Live {
  Request request;
  std::vector<std::int32_t> tokens;  // prompt and output
  std::vector<std::int32_t> ends;    // tokens that end it
  std::int32_t limit = 0;            // tokens of prompt and output at most
  Generation result;
};

struct PromptGroup {
  std::uint64_t number = 0;
  std::size_t users = 0;
};

/// A sequence whose next token is to be chosen, and where its last hidden state lies.
struct Pick {
  std::uint64_t sequence = 0;
  Live* live = nullptr;
  std::int32_t row = 0;  // of the forward pass
  float inverse_temperature = 1;
};

/// What was chosen for a Pick.
struct Choice {
  std::uint64_t sequence = 0;
  std::int32_t token = 0;
  float logp = 0, sampling_logp = 0;
  std::vector<Alternative> top;
};

struct Generator::Impl {
  models::Decoder& decoder;
  GeneratorConfig config;
  Scheduler scheduler;
  nn::KvCache cache;
  models::PackedWeights packed;
  bool weights_are_new = true;                             // and not packed yet
  std::map<std::uint64_t, Live> live;                      // by number of arrival
  std::unordered_map<std::uint64_t, std::uint64_t> names;  // request id -> number
  std::map<std::vector<std::int32_t>, PromptGroup> groups;
  std::vector<Generation> finished;
  std::uint64_t arrivals = 0, group_numbers = 0, version = 0;
  GeneratorStats stats;

  Impl(models::Decoder& model, GeneratorConfig how, SchedulerConfig sizes);
  Result<> refuse(const Request& request) const;
  void add(Request request);
  void end(std::uint64_t sequence, FinishReason reason);
  void forget_all();

  void step();
  void one_step();
  Tensor forward(const Plan& plan);
  std::vector<Choice> choose_tokens(std::vector<Pick> picks, const Tensor& hidden);
  void choose_block(std::span<const Pick> picks, const Tensor& hidden,
                    std::vector<Choice>& choices);
  void apply(const Choice& choice);
};

}  // namespace troupe::engine::generate

// A server whose model several ranks share, with threads as ranks: every request has the bits of
// generators that get it alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <optional>

#include "actors/group/engine_follower.h"
#include "actors/group/replicated_engine.h"
#include "engine/parallel/grid.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/api/output_text.h"
#include "tests/support/generate_all.h"
#include "tests/support/on_ranks.h"
#include "transports/wire/codec.h"

namespace troupe::launch::serve::ranks {
namespace {

using actors::group::EngineFollower;
using actors::group::GroupChannel;
using actors::group::ReplicatedEngine;
using engine::generate::FinishReason;
using engine::generate::Generation;
using engine::generate::PromptScores;
using engine::parallel::Communicator;
using engine::parallel::Mesh;
using engine::serving::Job;
using testing::HasSubstr;

constexpr int ranks = 2;
const std::string stories = TROUPE_TEST_DATA "/models/stories260k/hf";

struct Wanted {
  std::string prompt;
  engine::generate::SamplingParams params;
  std::string regex = "";
  std::string salt = "";
  int prompt_alternatives = -1;
};

struct Found {
  Generation generation;
  PromptScores scores;
};

Mesh mesh_of(Communicator& own) {
  return value_or_throw(Mesh::create(own.split(0, own.rank()), {.tp = ranks}));
}

serve::api::LoadedEngine load(const Mesh& mesh) {
  serve::api::ServedModelOptions options;
  options.model.model = stories;
  options.model.threads = 1;
  return value_or_throw(serve::api::LoadedEngine::load(
      options, {.max_batch = 4, .cache_tokens = 2048}, engine::models::ModelPart(&mesh.tp())));
}

Job job_of(const serve::api::ServedModel& model, const Wanted& wanted) {
  Job job;
  engine::generate::Request request;
  request.prompt = value_or_throw(model.encode(wanted.prompt, true));
  request.params = wanted.params;
  request.decode = serve::api::TextAfterPrompt(*model.tokenizer(), request.prompt, true);
  request.cache_salt = wanted.salt;
  request.prompt_alternatives = wanted.prompt_alternatives;
  if (wanted.regex.empty()) {
    job.request = std::make_shared<const engine::generate::Request>(std::move(request));
    return job;
  }
  const serve::api::OutputConstraint constraint = value_or_throw(model.constrain(
      {.kind = serve::api::ConstraintKind::regex, .value = wanted.regex, .field = ""}));
  request.constraint = constraint.compiled;
  job.source.constraint = constraint.source;
  job.request = std::make_shared<const engine::generate::Request>(std::move(request));
  return job;
}

/// What each request gives alone, in generators of all ranks.
std::vector<Found> alone(const std::vector<Wanted>& all) {
  std::vector<Found> found(all.size());
  test::on_ranks(ranks, [&](Communicator& own) {
    const Mesh mesh = mesh_of(own);
    serve::api::LoadedEngine loaded = load(mesh);
    PromptScores scores;
    loaded.config.on_prompt = [&](std::uint64_t, const PromptScores& given) { scores = given; };
    auto generator =
        value_or_throw(engine::generate::Generator::create(loaded.model.decoder(), loaded.config));
    for (std::size_t n = 0; n < all.size(); ++n) {
      engine::generate::Request request = *job_of(loaded.model, all[n]).request;
      auto result = value_or_throw(test::generate_all(generator, {std::move(request)}));
      if (mesh.is_root()) found[n] = {std::move(result.at(0)), std::exchange(scores, {})};
    }
  });
  return found;
}

void follow(serve::api::LoadedEngine& loaded, GroupChannel& channel, const Mesh& mesh) {
  engine::serving::Engine engine(loaded.model.decoder(), loaded.config);
  EngineFollower(engine, serve::api::parts_of(loaded), channel, mesh.world()).serve();
}

std::unique_ptr<serve::api::ModelSet> models_of(serve::api::LoadedEngine& loaded,
                                                const std::shared_ptr<GroupChannel>& channel,
                                                const Mesh& mesh) {
  auto engine = std::make_unique<ReplicatedEngine>(loaded.model.decoder(), loaded.config, channel,
                                                   mesh.world());
  return value_or_throw(serve::api::ModelSet::start(std::move(loaded), std::move(engine)));
}

/// Runs `work` at rank 0 of a server, with the models that it serves.
template <class Work>
void serve(const Work& work) {
  test::on_ranks(ranks, [&](Communicator& own) {
    const Mesh mesh = mesh_of(own);
    auto channel = std::make_shared<GroupChannel>(own.split(0, own.rank()));
    serve::api::LoadedEngine loaded = load(mesh);
    if (!mesh.is_root()) return follow(loaded, *channel, mesh);
    work(*models_of(loaded, channel, mesh));
  });
}

void expect_equal(const Found& found, const Found& expected) {
  const auto pairs = [](const auto& rows) {
    std::vector<std::vector<std::pair<std::int32_t, float>>> out;
    for (const auto& row : rows) {
      out.emplace_back();
      for (const auto& each : row) out.back().emplace_back(each.id, each.logp);
    }
    return out;
  };
  EXPECT_EQ(found.generation.ids, expected.generation.ids);
  EXPECT_EQ(found.generation.logp, expected.generation.logp);
  EXPECT_EQ(found.generation.sampling_logp, expected.generation.sampling_logp);
  EXPECT_EQ(pairs(found.generation.top), pairs(expected.generation.top));
  EXPECT_EQ(found.generation.text, expected.generation.text);
  EXPECT_EQ(found.generation.finish, expected.generation.finish);
  EXPECT_EQ(found.generation.stop_string, expected.generation.stop_string);
  EXPECT_EQ(found.scores.logp, expected.scores.logp);
  EXPECT_EQ(pairs(found.scores.top), pairs(expected.scores.top));
}

std::vector<Wanted> requests() {
  std::vector<Wanted> all;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Wanted each{.prompt = seed % 2 == 0 ? "Once upon a time, there was a little girl named Lily."
                                        : "One day, Tim",
                .params = {}};
    each.params.seed = seed;
    each.params.max_new_tokens = 10 + static_cast<std::int32_t>(3 * seed);
    each.params.temperature = seed % 3 == 0 ? 0 : 1.2;
    each.params.top_logprobs = static_cast<int>(seed % 4);
    if (seed % 4 == 1) each.params.stop_strings = {"the", "."};
    if (seed % 4 == 2) each.regex = seed < 8 ? "[a-m ]{3,20}" : "(yes|no)( maybe)*";
    if (seed % 5 == 3) each.salt = "salt";
    if (seed % 5 == 4) each.prompt_alternatives = 2;
    all.push_back(each);
  }
  return all;
}

/// Submits the request; its result is in the future.
std::future<Result<Generation>> submit(engine::serving::GenerationThread& service, Job job) {
  const auto promise = std::make_shared<std::promise<Result<Generation>>>();
  job.on_end = [promise](Result<Generation> result) { promise->set_value(std::move(result)); };
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  value_or_throw(service.submit(std::move(jobs), "client"));
  return promise->get_future();
}

TEST(ServedRanks, RequestsAmongOthersHaveTheBitsOfGeneratorsThatGetThemAlone) {
  const auto all = requests();
  const auto expected = alone(all);
  serve([&](serve::api::ModelSet& models) {
    auto& service = *models.first()->generation;
    const serve::api::ServedModel& model = *models.first()->model;
    for (int round = 0; round < 2; ++round) {  // the second one finds cached prompts
      std::vector<Found> found(all.size());
      std::vector<std::future<Result<Generation>>> outcomes, cancelled;
      for (std::size_t n = 0; n < all.size(); ++n) {
        Job job = job_of(model, all[n]);
        job.on_prompt = [&found, n](const PromptScores& scores) { found[n].scores = scores; };
        outcomes.push_back(submit(service, std::move(job)));
        engine::generate::SamplingParams endless;
        endless.max_new_tokens = 400;
        endless.ignore_eos = true;
        Job other = job_of(model, {.prompt = "The", .params = endless});
        other.on_token = [&service](const engine::generate::TokenEvent& event) {
          if (event.index == 2) service.cancel(event.id);
        };
        cancelled.push_back(submit(service, std::move(other)));
      }
      for (std::size_t n = 0; n < all.size(); ++n) {
        SCOPED_TRACE(n);
        found[n].generation = value_or_throw(outcomes[n].get());
        expect_equal(found[n], expected[n]);
        EXPECT_EQ(value_or_throw(cancelled[n].get()).finish, FinishReason::cancelled);
      }
    }
  });
}

TEST(ServedRanks, ARankThatEndsFailsTheRequestsOfTheServer) {
  std::optional<Result<Generation>> outcome;
  try {
    test::on_ranks(ranks, [&](Communicator& own) {
      const Mesh mesh = mesh_of(own);
      auto channel = std::make_shared<GroupChannel>(own.split(0, own.rank()));
      serve::api::LoadedEngine loaded = load(mesh);
      if (!mesh.is_root()) throw std::runtime_error("the disk is gone");
      const auto models = models_of(loaded, channel, mesh);
      Job job = job_of(*models->first()->model, {.prompt = "The", .params = {}});
      outcome = submit(*models->first()->generation, std::move(job)).get();
    });
    FAIL() << "the group did not end";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("the disk is gone"));
  }
  ASSERT_TRUE(outcome.has_value());
  EXPECT_FALSE(outcome->has_value());
}

/// Runs `lead` with the engine of rank 0 and its channel, while the other rank serves.
template <class Lead>
void with_leader(const Lead& lead) {
  test::on_ranks(ranks, [&](Communicator& own) {
    const Mesh mesh = mesh_of(own);
    auto channel = std::make_shared<GroupChannel>(own.split(0, own.rank()));
    serve::api::LoadedEngine loaded = load(mesh);  // all ranks together
    if (!mesh.is_root()) return follow(loaded, *channel, mesh);
    ReplicatedEngine engine(loaded.model.decoder(), loaded.config, channel, mesh.world());
    lead(engine, *channel);
  });
}

TEST(ServedRanks, GeneratorsThatDifferAreAnError) {
  try {
    with_leader([](ReplicatedEngine&, GroupChannel& channel) {
      const auto calls = std::make_shared<const actors::group::EngineCalls>(
          actors::group::EngineCalls{.calls = {}, .steps = true, .sampled = 5});
      channel.send({"engine", "EngineCalls", transports::wire::encode(*calls, calls)});
    });
    FAIL() << "nobody noticed";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("different numbers of tokens: 5 and 0"));
  }
}

TEST(ServedRanks, AFolderIsUsedByAllRanksOrByNone) {
  with_leader([](ReplicatedEngine& leader, GroupChannel&) {
    leader.read_folder("/nowhere", false);
    const auto of_other = leader.use_weights({});
    ASSERT_FALSE(of_other.has_value());
    EXPECT_THAT(of_other.error().what, HasSubstr("rank 1 of 2: /nowhere"));
    leader.read_folder(stories, false);
    const auto of_own = leader.use_weights(fail(Errc::bad_input, "unreadable here"));
    ASSERT_FALSE(of_own.has_value());
    EXPECT_THAT(of_own.error().what, HasSubstr("rank 0 of 2: unreadable here"));
    leader.read_folder(stories, false);
    EXPECT_TRUE(leader.use_weights({}).has_value());
  });
}

}  // namespace
}  // namespace troupe::launch::serve::ranks

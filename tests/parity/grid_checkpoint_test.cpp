// Checkpoints do not know the grid that wrote them: any other reads them, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/losses/sft_loss.h"
#include "algorithms/losses/value_loss.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/engine/checkpoint/scratch.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

namespace checkpoint = engine::checkpoint;
using engine::train::Trainer;
using testing::HasSubstr;

/// A model with its optimizer on one rank of a grid.
struct Training {
  Training(const GridModel& which, const Mesh& on,
           checkpoint::StoredType stored = checkpoint::StoredType::f32, bool zero = false,
           engine::train::Overlap overlap = engine::train::Overlap::none)
      : model(which),
        mesh(on),
        type(stored),
        trainer(grid_decoder(*device, model, 3, mesh, true),
                {.shard_optimizer = zero, .overlap = overlap}, &mesh) {}

  void steps(int count) {
    auto batch = full_batch(8, 6, 1, model.spec.vocabulary);
    batch.value = batch.returns = batch.advantage;
    using engine::loss::AnyLoss;
    const AnyLoss loss =
        model.spec.labels > 0 ? AnyLoss(algorithms::ValueLoss{}) : AnyLoss(algorithms::SftLoss{});
    for (int i = 0; i < count; ++i) {
      trainer.forward_backward(batch, loss);
      value_or_throw(trainer.update(1e-2));
    }
  }
  checkpoint::Snapshot snapshot() {
    auto& optimizer = trainer.optimizer();
    return {static_cast<std::int64_t>(trainer.version()),
            trainer.model().parameters(),
            {.tied = model.spec.tied, .type = type, .shard_bytes = 9000},
            optimizer.exp_avg(),
            optimizer.exp_avg_sq(),
            Json(Json::Object{{"rows", 7}}),
            {},
            false,
            optimizer.shards(),
            trainer.model().pp() ? &trainer.model().whole() : nullptr};
  }
  std::optional<checkpoint::DirectoryLock> lock(const std::string& output) const {
    if (!mesh.is_root()) return std::nullopt;
    return value_or_throw(checkpoint::DirectoryLock::acquire(output));
  }
  Result<std::string> save(const std::string& output,
                           const checkpoint::WriteOptions& options = {}) {
    const auto own = lock(output);
    return checkpoint::write_checkpoint(mesh, own ? &*own : nullptr, snapshot(), options);
  }
  /// Saves while `count` steps go on.
  Result<std::string> save_during(int count, const std::string& output) {
    const auto own = lock(output);
    const auto write =
        value_or_throw(checkpoint::start_checkpoint(&mesh, own ? &*own : nullptr, snapshot()));
    trainer.optimizer().set_reader(write.get());
    std::optional<Result<std::string>> result;
    for (int i = 0; i < count; ++i) {
      steps(1);
      if (!result) result = write->finish(false);
    }
    trainer.optimizer().set_reader(nullptr);
    return result ? *result : *write->finish(true);
  }
  void load(const std::string& path) {
    auto& optimizer = trainer.optimizer();
    const auto state = value_or_throw(checkpoint::load_checkpoint(
        path, trainer.model().parameters(), model.spec.tied, &optimizer.exp_avg(),
        &optimizer.exp_avg_sq(), optimizer.shards(), &trainer.model().whole()));
    optimizer.set_steps(state.step);
  }
  /// Weights and both moments, logical.
  std::vector<std::vector<float>> everything() {
    const auto& decoder = trainer.model();
    auto& optimizer = trainer.optimizer();
    return {gather_model(decoder, mesh),
            gather_model(decoder, optimizer.exp_avg(), mesh, optimizer.shards()),
            gather_model(decoder, optimizer.exp_avg_sq(), mesh, optimizer.shards())};
  }

  const GridModel& model;
  const Mesh& mesh;
  checkpoint::StoredType type;
  std::unique_ptr<engine::ops::Device> device = engine::ops::make_cpu_device({.threads = 1});
  Trainer trainer;
};

std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder).string()] =
          checkpoint::slurp(entry.path().string());
  return files;
}

// Saved at `from`, loaded and saved again at `to`: the same numbers and the same files.
void expect_survival(const GridModel& model, Grid from, Grid to, checkpoint::StoredType type) {
  checkpoint::Scratch first, second;
  const auto saved = on_grid(from, [&](const Mesh& mesh) {
    Training run(model, mesh, type);
    run.steps(2);
    value_or_throw(run.save(first.path()));
    return run.everything();
  });
  const std::string path = first / "checkpoint-2";
  value_or_throw(checkpoint::verify_checkpoint(path));
  const auto loaded = on_grid(to, [&](const Mesh& mesh) {
    Training run(model, mesh, type);
    run.load(path);
    EXPECT_EQ(run.trainer.version(), 2u);
    EXPECT_EQ(value_or_throw(run.save(second.path())), second / "checkpoint-2")
        << "every rank hears of it";
    return run.everything();
  });
  EXPECT_EQ(loaded[0], saved[0]);
  EXPECT_EQ(contents(second / "checkpoint-2"), contents(path));
}

TEST(GridCheckpoint, IsReadAtAnyOtherGridBitForBit) {
  for (const auto& model : grid_models()) {
    SCOPED_TRACE(model.title);
    const int maximum = model.max_tp;
    expect_survival(model, {2, 2}, {1, 1}, checkpoint::StoredType::f32);
    expect_survival(model, {1, 1}, {1, maximum}, checkpoint::StoredType::f32);
    expect_survival(model, {1, maximum}, {2, 2}, checkpoint::StoredType::bf16);
    expect_survival(model, {2, 1}, {2, maximum}, checkpoint::StoredType::f32);
    expect_survival(model, {1, 1, 2}, {1, 1}, checkpoint::StoredType::f32);
    expect_survival(model, {1, maximum}, {2, 1, 2}, checkpoint::StoredType::bf16);
    expect_survival(model, {1, 2, 2}, {1, 2}, checkpoint::StoredType::f32);
  }
}

/// More than one block of the norm: every replica has a part of the moments.
GridModel model_to_divide() {
  GridModel model = grid_models()[1];
  model.spec.vocabulary = 3001;
  return model;
}

// Saved at `from`, read at `to`, with the optimizer state divided over the replicas or not: the
// same values and the same files.
void expect_survival_of_shards(Grid from, bool divided, Grid to, bool divided_after) {
  const GridModel model = model_to_divide();
  checkpoint::Scratch first, second;
  constexpr auto type = checkpoint::StoredType::bf16;
  const auto saved = on_grid(from, [&](const Mesh& mesh) {
    Training run(model, mesh, type, divided);
    run.steps(2);
    if (const auto* shards = run.trainer.optimizer().shards()) {
      EXPECT_LT(shards->count(), shards->arena_count());
    }
    value_or_throw(run.save(first.path()));
    return run.everything();
  });
  const auto loaded = on_grid(to, [&](const Mesh& mesh) {
    Training run(model, mesh, type, divided_after);
    run.load(first / "checkpoint-2");
    value_or_throw(run.save(second.path()));
    return run.everything();
  });
  EXPECT_EQ(loaded[0], saved[0]);
  EXPECT_EQ(contents(second / "checkpoint-2"), contents(first / "checkpoint-2"));
}

TEST(GridCheckpoint, OfADividedOptimizerIsReadAtAnyOtherGridBitForBit) {
  expect_survival_of_shards({4, 1}, true, {1, 1}, false);
  expect_survival_of_shards({1, 1}, false, {4, 1}, true);
  expect_survival_of_shards({2, 2}, true, {3, 1}, true);
  expect_survival_of_shards({2, 1}, true, {2, 2}, false);
  expect_survival_of_shards({2, 1, 2}, true, {1, 1}, false);
  expect_survival_of_shards({2, 2}, true, {2, 1, 2}, true);
}

TEST(GridCheckpoint, OfADividedOptimizerHasTheBytesOfAnUndividedOne) {
  const GridModel model = model_to_divide();
  for (const Grid grid : {Grid{2, 1}, Grid{3, 1}, Grid{2, 2}}) {
    checkpoint::Scratch whole, divided;
    for (const bool zero : {false, true})
      on_grid(grid, [&](const Mesh& mesh) {
        Training run(model, mesh, checkpoint::StoredType::f32, zero);
        run.steps(3);
        value_or_throw(run.save(zero ? divided.path() : whole.path()));
        return 0;
      });
    EXPECT_EQ(contents(divided / "checkpoint-3"), contents(whole / "checkpoint-3"))
        << to_string(grid);
  }
}

// Neither the files nor the training that continues differ from those of a run that waits.
TEST(GridCheckpoint, AWriteThatOverlapsStepsHasTheBytesOfOneThatIsWaitedFor) {
  using engine::train::Overlap;
  const GridModel model = model_to_divide();
  for (const Grid grid : {Grid{1, 1}, Grid{2, 1}, Grid{1, 2}, Grid{1, 1, 2}, Grid{2, 2}})
    for (const Overlap overlap : {Overlap::none, Overlap::all}) {
      SCOPED_TRACE(cat(to_string(grid), static_cast<int>(overlap)));
      checkpoint::Scratch waited, overlapped;
      constexpr auto type = checkpoint::StoredType::bf16;
      const auto runs = [&](bool waits) {
        return on_grid(grid, [&](const Mesh& mesh) {
          const std::string& output = waits ? waited.path() : overlapped.path();
          Training run(model, mesh, type, grid.dp > 1, overlap);
          run.steps(2);
          if (waits) value_or_throw(run.save(output));
          if (waits) run.steps(2);
          if (!waits) {
            EXPECT_EQ(value_or_throw(run.save_during(2, output)), output + "/checkpoint-2");
          }
          value_or_throw(run.save(output));
          return run.everything();
        });
      };
      EXPECT_EQ(runs(true)[0], runs(false)[0]);
      for (const char* name : {"checkpoint-2", "checkpoint-4"})
        EXPECT_EQ(contents(overlapped / name), contents(waited / name)) << name;
    }
}

TEST(GridCheckpoint, OfACriticIsReadAtAnyOtherGridBitForBit) {
  for (const bool bias : {false, true}) {
    const auto model = scored(grid_models()[1], 1, bias);
    expect_survival(model, {2, 2}, {1, 1}, checkpoint::StoredType::f32);
    expect_survival(model, {1, 1}, {2, 4}, checkpoint::StoredType::bf16);
    expect_survival(model, {1, 1, 2}, {1, 2}, checkpoint::StoredType::f32);
  }
}

void expect_continuation(const GridModel& model) {
  checkpoint::Scratch out;
  const auto whole = on_grid({2, 2}, [&](const Mesh& mesh) {
    Training run(model, mesh);
    run.steps(2);
    value_or_throw(run.save(out.path()));
    run.steps(2);
    return run.everything();
  });
  const auto resumed = on_grid({2, 2}, [&](const Mesh& mesh) {
    Training run(model, mesh);
    run.load(out / "checkpoint-2");
    run.steps(2);
    return run.everything();
  });
  EXPECT_EQ(resumed[0], whole[0]);
}

TEST(GridCheckpoint, ARunThatContinuesAtItsGridHasTheBitsOfOneThatNeverStopped) {
  const auto model = grid_models()[1];
  expect_continuation(model);
  expect_continuation(scored(model, 1, false));
}

TEST(GridCheckpoint, AnErrorOfTheWriterReachesAllRanks) {
  const auto model = grid_models()[0];
  checkpoint::Scratch out;
  const checkpoint::WriteOptions full_disk{.before = [](std::string_view step) -> Result<> {
    if (step == "write optimizer") return fail(Errc::io, "the disk is full");
    return {};
  }};
  const auto answers = on_grid({2, 2}, [&](const Mesh& mesh) {
    Training run(model, mesh);
    const auto saved = run.save(out.path(), full_disk);
    return saved ? Error{Errc::internal, "written"} : saved.error();
  });
  for (const Error& answer : answers) {
    EXPECT_EQ(answer.code, Errc::io);
    EXPECT_EQ(answer.what, "the disk is full");
  }
  EXPECT_EQ(contents(out.path()).count("checkpoint-0/model.safetensors"), 0u);
}

// The ranks write their parts themselves, so the error may be that of any of them: here of the one
// that has the value which F16 cannot store.
TEST(GridCheckpoint, AnErrorOfAnyRankReachesAllRanks) {
  const GridModel model = grid_models()[0];
  for (const Grid grid : {Grid{1, 2}, Grid{1, 1, 2}, Grid{2, 2}}) {
    checkpoint::Scratch out;
    const auto answers = on_grid(grid, [&](const Mesh& mesh) {
      Training run(model, mesh, checkpoint::StoredType::f16);
      const bool last = mesh.world().rank() == grid.tp * grid.pp - 1;
      auto& parameters = run.trainer.model().parameters();
      if (last) run.device->fill(parameters.at("model.layers.1.mlp.up_proj.weight").value, 1e6f);
      const auto saved = run.save(out.path());
      return saved ? Error{Errc::internal, "written"} : saved.error();
    });
    for (const Error& answer : answers) {
      EXPECT_EQ(answer.code, Errc::usage) << to_string(grid);
      EXPECT_THAT(answer.what, HasSubstr("which F16 cannot store")) << to_string(grid);
    }
    EXPECT_THAT(contents(out.path()), testing::SizeIs(1)) << "the lock: " << to_string(grid);
  }
}

TEST(GridCheckpoint, AModelFolderLoadsInParts) {
  const std::string folder = TROUPE_TEST_DATA "/models/stories260k/hf";
  const auto load = [&](const Mesh& mesh) {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    const auto decoder =
        value_or_throw(checkpoint::load_decoder(*device, folder, false, &mesh.tp()));
    return engine::nn::gather_logical(decoder->parameters(), mesh);
  };
  const auto one = load(Mesh());
  EXPECT_GT(one.size(), 200000u);
  for (const int tp : {2, 3, 4, 8}) EXPECT_EQ(on_grid({1, tp}, load)[0], one) << "tp " << tp;
  EXPECT_THROW(on_grid({1, 6}, load), Failure)
      << "six ranks can neither share nor jointly hold four key/value heads";
}

}  // namespace
}  // namespace troupe::test

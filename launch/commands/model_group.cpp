#include "launch/commands/model_group.h"

#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "launch/commands/sampler.h"
#include "launch/run/hangs.h"
#include "launch/run/run_rank.h"
#include "transports/mpi/mpi_world.h"
#include "transports/wire/codec.h"

namespace troupe::launch::commands {

using actors::group::GroupCall;
using engine::parallel::Grid;
using engine::parallel::Mesh;

namespace {

constexpr const char* model_name = "model";
constexpr std::string_view load_name = "load the model", generate_name = "generate";

GroupCall call_of(std::string_view type) {
  return {model_name, std::string(type), {}};
}

void follow(ModelGroup& group, const GenerateOptions& options) {
  std::optional<Sampler> sampler;
  group.follow([&] { sampler.emplace(options, engine::generate::TokenCallback()); },
               [&](const GenerateCall& call) {
                 check(sampler.has_value(), "a prompt for a rank that has not loaded the model");
                 value_or_throw(sampler->generate(call.prompt, call.sampling, call.first_sample));
               });
}

int run_in_group(ModelGroup& group, const GenerateOptions& options,
                 const std::function<int(const GenerateOptions&)>& command) {
  if (group.leads()) return command(options);
  follow(group, options);
  return 0;
}

}  // namespace

Result<std::unique_ptr<ModelGroup>> ModelGroup::create(const Grid& grid, std::int64_t timeout) {
  if (!transports::mpi::under_mpirun())
    return fail(Errc::usage,
                cat("--tp ", grid.tp, " --pp ", grid.pp, ": expected ", grid.ranks(),
                    " ranks, found one process; start it with mpirun -n ", grid.ranks()));
  RETURN_IF_ERROR(engine::parallel::check_fits(grid, transports::mpi::mpirun_size()));
  auto world = transports::mpi::mpi_world(run::mpi_options(timeout));
  RETURN_IF_ERROR(world);
  auto mesh = Mesh::create(std::move(*world), grid);
  RETURN_IF_ERROR(mesh);
  return std::unique_ptr<ModelGroup>(new ModelGroup(std::move(*mesh)));
}

ModelGroup::ModelGroup(Mesh mesh)
    : mesh_(std::move(mesh)), channel_(mesh_.world().split(0, mesh_.world().rank())) {
}

void ModelGroup::announce_load() {
  channel_.send(call_of(load_name));
}

void ModelGroup::announce(const GenerateCall& call) {
  GroupCall message = call_of(generate_name);
  // The encoded parts point into `call`, which stays alive until all ranks have received them.
  message.body = transports::wire::encode(
      call, std::shared_ptr<const void>(std::shared_ptr<const void>(), &call));
  channel_.send(message);
  channel_.run_on_all_ranks("receiving a prompt", [] {});
}

bool ModelGroup::stops(const std::function<bool()>& stop) {
  std::byte stopped{leads() && stop && stop()};
  mesh_.world().broadcast(std::span(&stopped, 1), 0, "whether to stop");
  return stopped != std::byte{};
}

void ModelGroup::follow(const std::function<void()>& load,
                        const std::function<void(const GenerateCall&)>& generate) {
  while (const auto message = channel_.next()) {
    // The leader reports failures, which all ranks have.
    try {
      if (message->type == load_name) {
        load();
        continue;
      }
      GenerateCall call;
      channel_.run_on_all_ranks("receiving a prompt", [&] {
        call = transports::wire::decode<GenerateCall>(message->body, "a prompt of rank 0");
      });
      generate(call);
    } catch (const Failure&) {
    }
  }
}

void ModelGroup::abort(const std::exception& error) {
  run::abort_ranks(mesh_.world(), error);
}

int with_model_group(GenerateOptions options,
                     const std::function<int(const GenerateOptions&)>& command) {
  const bool alone = options.grid.ranks() == 1 && transports::mpi::mpirun_size() == 1;
  if (alone) return command(options);
  const run::HangGuard hangs;
  return run::run_rank(
      [&] { return value_or_throw(ModelGroup::create(options.grid, options.timeout)); },
      [&](ModelGroup& group) {
        options.group = &group;
        return run_in_group(group, options, command);
      });
}

}  // namespace troupe::launch::commands

#include "launch/parity/parity.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

#include "launch/parity/measure.h"
#include "launch/parity/report.h"
#include "launch/parity/table.h"
#include "launch/run/exit_code.h"
#include "launch/run/hangs.h"
#include "launch/run/run_rank.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::parity {
namespace {

using engine::ops::Precision;
using engine::parallel::Mesh;

/// The ranks of mpirun.
struct MpiRank {
  Mesh mesh;
  explicit MpiRank(const Settings& settings)
      : mesh(value_or_throw(Mesh::create(value_or_throw(transports::mpi::mpi_world(
                                             run::mpi_options(settings.config.parallel.timeout))),
                                         settings.grid()))) {}
  void abort(const std::exception& error) const { run::abort_ranks(mesh.world(), error); }
};

/// Runs work(mesh) on threads as ranks. Throws what the first rank that failed has thrown.
template <class Work>
void on_threads(const Settings& settings, const Work& work) {
  const int ranks = settings.grid().ranks();
  engine::parallel::ThreadGroup group(ranks, run::thread_options(settings.config.parallel.timeout));
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, own = std::shared_ptr(group.rank(rank))]() mutable {
      try {
        work(value_or_throw(Mesh::create(own->split(0, own->rank()), settings.grid())));
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        own->abort(error.what());
      }
      own.reset();
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

int finish(const Settings& settings, std::span<const Report> reports) {
  std::cout << (settings.options.json ? report_json(reports).dump() + "\n" : report_text(reports));
  return std::ranges::all_of(reports, &Report::kept) ? 0 : run::exit_parity;
}

int on_mpi_rank(const Settings& settings, const MpiRank& rank) {
  std::vector<Report> reports;
  for (const Precision precision : settings.options.dtypes) {
    Measured measured;
    if (rank.mesh.is_root()) measured = measure_alone(settings, precision);
    measure_grid(settings, precision, rank.mesh, measured);
    reports.push_back(std::move(measured.report));
  }
  return rank.mesh.is_root() ? finish(settings, reports) : 0;
}

}  // namespace

std::vector<Report> measure(const Settings& settings) {
  std::vector<Report> reports;
  for (const Precision precision : settings.options.dtypes) {
    Measured measured = measure_alone(settings, precision);
    if (settings.grid().ranks() > 1)
      on_threads(settings,
                 [&](const Mesh& mesh) { measure_grid(settings, precision, mesh, measured); });
    reports.push_back(std::move(measured.report));
  }
  return reports;
}

int parity(const ParityOptions& options) {
  if (!options.table.empty()) {
    std::cout << table_page(options.table);
    return 0;
  }
  const Settings settings = value_or_throw(settings_of(options));
  const run::HangGuard hangs;
  if (transports::mpi::mpirun_size() == 1) return finish(settings, measure(settings));
  value_or_throw(engine::parallel::check_fits(settings.grid(), transports::mpi::mpirun_size()));
  return run::run_rank([&] { return std::make_unique<MpiRank>(settings); },
                       [&](const MpiRank& rank) { return on_mpi_rank(settings, rank); });
}

}  // namespace troupe::launch::parity

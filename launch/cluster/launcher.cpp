#include "launch/cluster/launcher.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <set>

#include "actors/runtime/thread_scheduler.h"
#include "engine/base/environment/private_folder.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/files/file.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/cluster/assignment.h"
#include "launch/cluster/cluster_memory.h"
#include "launch/cluster/cluster_run.h"
#include "launch/cluster/host_command.h"
#include "launch/cluster/network_namespace.h"
#include "launch/cluster/replacement.h"
#include "launch/cluster/sbatch.h"
#include "launch/cluster/status_writer.h"
#include "launch/cluster/supervisor.h"
#include "launch/cluster/worker_command.h"
#include "launch/memory/check_memory.h"
#include "launch/profile/run_profile.h"
#include "launch/recipes/model_spec.h"
#include "launch/run/algorithm_run.h"
#include "launch/run/exit_code.h"
#include "launch/run/hangs.h"
#include "launch/run/interrupt.h"
#include "launch/run/placement.h"
#include "transports/zmq/hub.h"

namespace troupe::launch::cluster {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::minutes join_timeout{10};  // a large model on a slow disk

/// Nodes that have joined the hub. Filled from the transport's thread.
class JoinedNodes {
 public:
  void add(const std::string& node) {
    const std::lock_guard lock(mutex_);
    nodes_.insert(node);
    changed_.notify_all();
  }
  bool wait(const std::string& node, milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return nodes_.contains(node); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> nodes_;
};

// Ctrl-Z would stop launch alone: its groups, which are process groups of their own, would take it
// for dead within seconds and end.
void refuse_to_be_suspended(int) {
  constexpr std::string_view text =
      "\nCtrl-Z: launch is not suspended, because its processes would continue without it. Ctrl-C "
      "saves a checkpoint and ends the run; the same command resumes it.\n";
  const int before = errno;
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) errno = before;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Controller final : public run::Placement {
 public:
  /// `network_namespaces`: the system allows them.
  Controller(const config::RunConfig& config, std::vector<NodeSpec> nodes, Hosts hosts,
             std::string build, bool network_namespaces)
      : nodes_(std::move(nodes)),
        hosts_(std::move(hosts)),
        build_(std::move(build)),
        network_namespaces_(network_namespaces),
        hangs_(std::chrono::seconds(config.train.timeout)),
        session_(config, "controller.log"),
        profile_(config, "", true),
        run_(session_, profile_),
        supervisor_({.output = config.output,
                     .on_exit = [this] { node_->cancel_asks(); },
                     .replace = [this](ExitedProcess& lost) { return replace(lost); },
                     .access = config.output_mode}) {}
  ~Controller() override {
    supervisor_.kill_all();
    status_.reset();
    node_.reset();
    if (hub_) hub_->close();  // calls the supervisor until then
  }

  int run() {
    const run::Interrupts interrupts(run_.stop());
    std::signal(SIGTSTP, refuse_to_be_suspended);
    open_hub();
    for (const NodeSpec& node : nodes_) start(node);
    supervisor_.watch();
    run_.on_complete([this] { supervisor_.expect_exits(); });
    try {
      text_ = value_or_throw(run::TextModel::load(session_.config(), session_.spec()));
      const int code = run_.run(*this, *text_);
      if (!supervisor_.shut_down())
        log_warning("some processes did not exit at the end of the run and were killed");
      if (const auto lost = supervisor_.kill_all(); !lost.empty())
        log_warning(describe_unneeded(lost));
      return code;
    } catch (const Failure&) {
      if (const std::string found = replacement_.divergence(); !found.empty()) {
        supervisor_.kill_all();
        log_error(found);
        return run::exit_divergent;
      }
      // The exit of a process first shows as a failed call; wait a moment for the cause.
      if (supervisor_.exit_within(milliseconds(500))) return report_exits();
      supervisor_.shut_down();
      throw;
    }
  }

  actors::Node& node() override { return *node_; }
  /// An actor has the name of its role. Waits until the groups have joined.
  std::vector<transports::Address> addresses(recipes::Role role) override {
    std::vector<transports::Address> all;
    for (const NodeSpec& node : nodes_) {
      if (node.role != role) continue;
      wait_for(node.name);
      const bool replaced = role == recipes::Role::rollout && replacement_.replaces(node.name);
      all.push_back({node.name, std::string(to_string(role)), replaced ? 1u : 0u});
    }
    return all;
  }
  algorithms::Recovery* recovery() override { return replacement_.recovery(); }
  std::size_t chunks_per_rollout() const override { return 4; }
  bool streams_weights() const override { return true; }

 private:
  void open_hub() {
    transports::HubOptions options{.name = "controller",
                                   .endpoints = {cat("ipc://", folder_.path(), "/hub")},
                                   .keys = hub_keys_};
    if (!std::ranges::all_of(nodes_, [&](const NodeSpec& node) { return is_here(node, hosts_); }))
      options.endpoints.push_back(
          cat("tcp://", hosts_.controller_address, ':',
              hosts_.controller_port == 0 ? "*" : std::to_string(hosts_.controller_port)));
    for (const NodeSpec& node : nodes_)
      options.spokes.emplace(keys_[node.name].public_key, node.name);
    options.link.linger = milliseconds(200);
    options.link.silence = session_.config().recovery.silence_time();
    options.link.stateless = replacement_.stateless();
    options.link.on_peer = [this](const transports::PeerEvent& event) { note(event); };
    hub_ = value_or_throw(transports::Hub::bind(std::move(options)));
    actors::NodeOptions of_node = run_.node_options();
    of_node.on_late = [this](transports::Frame frame) { replacement_.late(std::move(frame)); };
    of_node.on_cancelled = [this] { replacement_.end(); };
    node_.emplace("controller", scheduler_, *hub_, std::move(of_node));
    control_ = &node_->control();
    replacement_.on_divergence([this] { node_->cancel_asks(); });
    hub_->open();
    status_.emplace(session_.folder(), *control_, [this] { return status(); });
  }

  // On the control executor.
  run::RunStatus status() {
    run::RunStatus out{.time = seconds_since_1970(), .process = ::getpid(), .groups = {}};
    const auto processes = supervisor_.processes();
    for (const NodeSpec& node : nodes_) {
      run::GroupStatus group{.node = node.name, .role = std::string(to_string(node.role))};
      for (const StartedProcess& process : processes)
        if (process.node == node.name && !process.replaced && process.alive)
          group.pid = process.pid;
      describe_work(node, group);
      out.groups.push_back(std::move(group));
    }
    return out;
  }

  void describe_work(const NodeSpec& node, run::GroupStatus& group) {
    const transports::OpenRequests open = hub_->open_requests(node.name);
    const auto* groups = replacement_.recovery();
    const bool present =
        groups ? groups->present(node.name) && joined_.wait(node.name, milliseconds(0))
               : joined_.wait(node.name, milliseconds(0));
    group.queue = static_cast<std::int64_t>(open.count);
    group.restarts = replacement_.restarts(node.name);
    group.state = group.pid == 0   ? "lost"
                  : !present       ? "starting"
                  : open.count > 0 ? "works"
                                   : "waits";
    if (open.count > 0) {
      group.waits_for = open.oldest;
      group.seconds =
          std::chrono::duration<double>(transports::LinkTime::clock::now() - open.since).count();
    }
    if (!groups || node.role != recipes::Role::rollout) return;
    group.version = groups->version(node.name);
    group.leased = static_cast<std::int64_t>(groups->leased(node.name));
  }

  // On the transport's thread.
  void note(const transports::PeerEvent& event) {
    const bool joined = event.what == transports::PeerEvent::What::joined;
    control_->post([this, event, joined] {
      if (joined)
        replacement_.joined(event.node, event.incarnation);
      else
        replacement_.lost(event.node, event.incarnation);
    });
    if (!joined)
      return supervisor_.disconnected(event.node, cat("was lost: ", event.why), event.incarnation);
    log_debug(cat(event.node, " has joined"));
    joined_.add(event.node);
    supervisor_.joined(event.node, event.incarnation);
  }

  // On the watcher's thread.
  bool replace(ExitedProcess& lost) {
    if (!joined_.wait(lost.node, milliseconds(0)) || !replacement_.admits(lost)) return false;
    const NodeSpec& node = *std::ranges::find(nodes_, lost.node, &NodeSpec::name);
    const std::uint64_t number = lost.incarnation + 1;
    log_warning(cat(describe_one(lost), lost.running ? ", and has not exited" : "",
                    "; another process takes its place"));
    // It has the address at which the successor listens.
    if (lost.running && !session_.config().serve.listen.empty()) ::kill(-lost.pid, SIGKILL);
    try {
      keys_[node.name] = transports::new_keys();
      value_or_throw(hub_->replace(node.name, keys_[node.name].public_key, lost.how));
      start(node, number);
    } catch (const Failure& failure) {
      lost.advice = cat("Another process could not take its place: ", failure.what(), ".");
      return false;
    }
    return true;
  }

  void start(const NodeSpec& node, std::uint64_t incarnation = 1) {
    const transports::KeyPair& keys = keys_[node.name];
    const bool here = is_here(node, hosts_);
    const std::string scratch = value_or_throw(
        folder_.part(incarnation == 1 ? node.name : cat(node.name, "-", incarnation)));
    const auto started = value_or_throw(host_start(node, hosts_, start_options(node, scratch)));
    Assignment assignment{.role = node.role,
                          .node = node.name,
                          .endpoint = started.endpoint,
                          .server_key = hub_keys_.public_key,
                          .public_key = keys.public_key,
                          .secret_key = keys.secret_key,
                          .grid = node.parallel,
                          .config = config_on(node, session_.config()),
                          .resume_from = session_.resume_from(),
                          .ranks_together = ranks_together(node, nodes_)};
    auto& threads = assignment.config.train.threads;
    if (hosts_.via == Via::slurm && threads == 0) threads = processors_of_task();
    if (!here) {
      assignment.build = build_;
      assignment.inputs =
          value_or_throw(inputs_of(session_.identity(), node.role, session_.config().output));
    }
    auto& listen = assignment.config.serve.listen;
    if (node.role == recipes::Role::rollout && !listen.empty())
      listen = value_or_throw(serve::listener_of(listen, number_in_role(node)));
    log_debug(cat("starting ", node.name, ": ", join(started.command, " ")));
    supervisor_.start(node.name, started.command, to_line(assignment), incarnation);
  }

  HostStartOptions start_options(const NodeSpec& node, const std::string& scratch) const {
    HostStartOptions options{.mpi = {scratch, network_namespaces_},
                             .local_endpoint = hub_->endpoints().front(),
                             .tcp_endpoint = hub_->endpoints().back()};
    for (const NodeSpec& each : nodes_) {
      if (each.blocks.size() < 2) continue;
      if (each.name == node.name) options.divided_number = options.divided_groups;
      ++options.divided_groups;
    }
    return options;
  }

  int number_in_role(const NodeSpec& node) const {
    const auto same = [&](const NodeSpec& other) { return other.role == node.role; };
    const auto end = std::ranges::find(nodes_, node.name, &NodeSpec::name);
    return static_cast<int>(std::count_if(nodes_.begin(), end, same));
  }

  void wait_for(const std::string& node) {
    run_.journal().status(cat("waiting for ", node));
    const auto deadline = std::chrono::steady_clock::now() + join_timeout;
    while (!joined_.wait(node, milliseconds(20))) {
      if (run_.stop().requested())
        throw Failure({Errc::cancelled, "stopped before the first step"});
      if (supervisor_.exit_within(milliseconds(0)))
        throw Failure({Errc::closed, "a process exited before the first step"});
      if (std::chrono::steady_clock::now() > deadline)
        throw Failure({Errc::timeout, cat(node, " was not ready within 10 minutes")});
    }
  }

  int report_exits() {
    const auto exits = supervisor_.kill_all();
    log_error(describe(exits, session_.config().output));
    return exit_code_of(exits);
  }

  const std::vector<NodeSpec> nodes_;
  const Hosts hosts_;
  const std::string build_;
  const bool network_namespaces_;
  const run::HangGuard hangs_;
  run::Session session_;
  profile::RunProfile profile_;
  const PrivateFolder folder_ = value_or_throw(PrivateFolder::make());
  const transports::KeyPair hub_keys_ = transports::new_keys();
  std::map<std::string, transports::KeyPair> keys_ = [this] {
    std::map<std::string, transports::KeyPair> made;
    for (const NodeSpec& node : nodes_) made.emplace(node.name, transports::new_keys());
    return made;
  }();
  run::AlgorithmRun run_;
  JoinedNodes joined_;
  Replacement replacement_{session_.config(), nodes_};  // outlives those whose threads use it
  std::shared_ptr<run::TextModel> text_;
  std::unique_ptr<transports::Hub> hub_;
  actors::ThreadScheduler scheduler_;
  std::optional<actors::Node> node_;
  actors::Executor* control_ = nullptr;  // of the node; lives as long as the scheduler
  Supervisor supervisor_;
  std::optional<StatusWriter> status_;
};

// Throws Failure if the models of all groups do not fit into the memory of this machine.
void warn_of_memory(const config::RunConfig& config, const std::vector<NodeSpec>& nodes) {
  const auto warning = value_or_throw(
      check_memory(config, nodes, value_or_throw(recipes::spec_of(config, config.model)),
                   available_memory(read_memory())));
  if (!warning.empty()) log_warning(warning);
}

// Pipes, connections, and the connections of strangers until their handshake fails. Bounded,
// because programs such as mpirun may close all possible descriptors one by one.
void raise_open_files_limit() {
  constexpr rlim_t enough = 65536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, enough));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Tries a network namespace before this process has threads and keys.
bool allows_network_namespaces() {
  const auto denied = network_namespace_denied(value_or_throw(own_program()));
  if (denied) log_warning(open_ports_warning(*denied));
  return !denied;
}

int write_script(const LaunchOptions& options, const config::RunConfig& config,
                 const std::vector<NodeSpec>& nodes, const Hosts& hosts) {
  const std::string script = sbatch_script(nodes, hosts,
                                           {.file = options.write_sbatch,
                                            .program = value_or_throw(own_program()),
                                            .cluster = options.cluster,
                                            .words = options.words,
                                            .threads = static_cast<int>(config.train.threads)});
  value_or_throw(write_file_durably(options.write_sbatch, script));
  return 0;
}

// Throws Failure outside an allocation. Without an address in the cluster file, the controller
// listens on that of this node's name.
void complete_slurm(Hosts& hosts) {
  if (hosts.via != Via::slurm) return;
  if (std::getenv("SLURM_JOB_ID") == nullptr)
    throw Failure({Errc::usage,
                   "--via slurm: expected to run in a Slurm allocation (sbatch, salloc), found no "
                   "SLURM_JOB_ID; troupe launch --write-sbatch FILE writes a script to submit"});
  if (hosts.controller_address.empty())
    hosts.controller_address = value_or_throw(address_of_this_host());
}

}  // namespace

int launch(const LaunchOptions& options) {
  run::handle_interrupts();
  auto [run, nodes, hosts] = resolve_cluster(options.sources, options.cluster, options.via);
  if (!options.write_sbatch.empty()) return write_script(options, run.config, nodes, hosts);
  complete_slurm(hosts);
  for (const std::string& warning : run.warnings) log_warning(warning);
  warn_of_memory(run.config, nodes_here(nodes, hosts));
  raise_open_files_limit();
  constexpr int files = 20, files_of_group = 8;
  value_or_throw(check_open_files(files + files_of_group * static_cast<int>(nodes.size()),
                                  cat("a launch of ", nodes.size(), " groups")));
  const bool namespaces = largest_group(nodes) > 1 && allows_network_namespaces();
  return Controller(run.config, nodes, hosts, options.build, namespaces).run();
}

}  // namespace troupe::launch::cluster

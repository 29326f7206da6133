#include "launch/cluster/launcher.h"

#include <condition_variable>
#include <mutex>
#include <set>

#include "actors/runtime/thread_scheduler.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/cluster/assignment.h"
#include "launch/cluster/command.h"
#include "launch/cluster/private_folder.h"
#include "launch/cluster/supervisor.h"
#include "launch/profile/fields.h"
#include "launch/profile/run_profile.h"
#include "launch/run/conduct.h"
#include "launch/run/exit_code.h"
#include "launch/run/interrupt.h"
#include "launch/run/role_table.h"
#include "transports/zmq/hub.h"

namespace troupe::launch {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::minutes patience_to_join{10};  // a large model on a slow disk

/// Who has said hello. Told from the transport's thread.
class Roll {
 public:
  void add(const std::string& node) {
    const std::lock_guard lock(mutex_);
    there_.insert(node);
    changed_.notify_all();
  }
  bool wait(const std::string& node, milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return there_.contains(node); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> there_;
};

class Controller final : public Cast {
 public:
  Controller(const RunConfig& config, std::vector<NodeSpec> nodes)
      : nodes_(std::move(nodes)),
        session_(config),
        profile_(config, "", true),
        journal_(config.output, cat(config.algorithm, ": ", config.model), config.train.log_every),
        crew_({.output = config.output, .on_death = [this] { node_->cancel_asks(); }}) {
    set_log_file(config.output + "/logs/controller.log");
  }
  ~Controller() override {
    crew_.end();
    node_.reset();
    if (hub_) hub_->close();  // it speaks to the crew until then
    set_log_file("");
  }

  int run() {
    const Interrupts interrupts(stop_);
    journal_.on_step([this](std::int64_t step) { profile_.at_step(step); });
    open_hub();
    for (const NodeSpec& node : nodes_) start(node);
    crew_.watch();
    try {
      const auto& config = session_.config();
      text_ = value_or_throw(TextModel::load(config.model, config.chat_template, session_.spec()));
      const int code = conduct(session_, *text_, *this, journal_, stop_);
      if (crew_.fallen_within(milliseconds(0))) return tell_of_the_fallen();
      if (!crew_.leave())
        log_warning("not every process left by itself when the run was over; it was made to");
      return code;
    } catch (const Failure&) {
      // A death shows first as an ask that fails; wait a moment for its cause.
      if (crew_.fallen_within(milliseconds(500))) return tell_of_the_fallen();
      crew_.leave();
      throw;
    }
  }

  actors::Node& node() override { return *node_; }
  algorithms::PolicyRef policy() override { return refs<Role::policy>().front(); }
  algorithms::CriticRef critic() override { return refs<Role::critic>().front(); }
  algorithms::ReferenceRef reference() override { return refs<Role::reference>().front(); }
  std::vector<algorithms::RolloutRef> rollouts() override {
    const auto all = refs<Role::rollout>();
    return {all.begin(), all.end()};
  }
  algorithms::RewardRef verifier() override { return refs<Role::verifier>().front(); }
  algorithms::RewardRef reward() override { return refs<Role::reward>().front(); }
  std::size_t pieces() const override { return 4; }

 private:
  void open_hub() {
    transports::HubOptions options{.name = "controller",
                                   .endpoints = {cat("ipc://", folder_.path(), "/hub")},
                                   .keys = hub_keys_};
    for (const NodeSpec& node : nodes_)
      options.spokes.emplace(keys_[node.name].public_key, node.name);
    options.link.linger = milliseconds(200);
    options.link.on_peer = [this](const transports::PeerEvent& event) {
      if (event.what == transports::PeerEvent::What::joined)
        roll_.add(event.node);
      else
        crew_.lost(event.node, cat("is lost: ", event.why));
    };
    hub_ = value_or_throw(transports::Hub::bind(std::move(options)));
    actors::NodeOptions watching{
        .on_answered = [this](const auto& ask) { journal_.answered(ask); }};
    node_.emplace("controller", scheduler_, *hub_, std::move(watching));
    hub_->open();
  }

  void start(const NodeSpec& node) {
    Assignment given{.role = node.role,
                     .node = node.name,
                     .endpoint = hub_->endpoints().front(),
                     .server_key = hub_keys_.public_key};
    given.public_key = keys_[node.name].public_key, given.secret_key = keys_[node.name].secret_key;
    given.grid = node.grid, given.config = session_.config(), given.from = session_.from();
    if (given.config.train.threads == 0) given.config.train.threads = threads_of(node, nodes_);
    crew_.start(node.name,
                value_or_throw(worker_command(node, value_or_throw(folder_.part(node.name)))),
                to_line(given));
  }

  // Of the groups that have the role, once they have come. An actor has the name of its role.
  template <Role R>
  std::vector<RoleRef<R>> refs() {
    std::vector<RoleRef<R>> all;
    for (const NodeSpec& node : nodes_) {
      if (node.role != role_entry<R>().name) continue;
      wait_for(node.name);
      all.push_back(node_->ref({node.name, node.role}, typename RoleActor<R>::Handled{}));
    }
    return all;
  }

  void wait_for(const std::string& node) {
    journal_.status(cat("waiting for ", node));
    const auto deadline = std::chrono::steady_clock::now() + patience_to_join;
    while (!roll_.wait(node, milliseconds(20))) {
      if (stop_.requested()) throw Failure({Errc::cancelled, "stopped before the first step"});
      if (crew_.fallen_within(milliseconds(0)))
        throw Failure({Errc::closed, "a process died before the first step"});
      if (std::chrono::steady_clock::now() > deadline)
        throw Failure({Errc::timeout, cat(node, " was not ready within 10 minutes")});
    }
  }

  int tell_of_the_fallen() {
    log_error(sentence_of(crew_.end(), session_.config().output));
    return exit_process_died;
  }

  const std::vector<NodeSpec> nodes_;
  Session session_;
  RunProfile profile_;
  const PrivateFolder folder_ = value_or_throw(PrivateFolder::make());
  const transports::KeyPair hub_keys_ = transports::new_keys();
  std::map<std::string, transports::KeyPair> keys_ = [this] {
    std::map<std::string, transports::KeyPair> made;
    for (const NodeSpec& node : nodes_) made.emplace(node.name, transports::new_keys());
    return made;
  }();
  RunJournal journal_;
  actors::Stop stop_;
  Roll roll_;
  std::shared_ptr<TextModel> text_;
  std::unique_ptr<transports::Hub> hub_;
  actors::ThreadScheduler scheduler_;
  std::optional<actors::Node> node_;
  Crew crew_;
};

/// The cluster file says how the policy is shared; a run file that says something else is a mistake
/// of one of them.
void take_grid(Resolved& run, const std::vector<NodeSpec>& nodes, const std::string& cluster) {
  for (const NodeSpec& node : nodes) {
    if (node.role != "policy") continue;
    auto& ours = run.config.parallel;
    const bool given =
        run.origins.at("parallel.tp") != "default" || run.origins.at("parallel.dp") != "default";
    if (given && (ours.tp != node.grid.tp || ours.dp != node.grid.dp))
      throw Failure({Errc::usage, cat("parallel.tp ", ours.tp, ", parallel.dp ", ours.dp, " (",
                                      run.origins.at("parallel.tp"), ") and ", cluster,
                                      " (policy: ", to_string(node.grid),
                                      ") contradict each other; say it in the cluster file")});
    ours = {.tp = node.grid.tp, .dp = node.grid.dp};
  }
}

}  // namespace

int launch(const LaunchOptions& options) {
  Resolved run = value_or_throw(resolve(options.sources));
  const auto nodes = nodes_of(value_or_throw(read_cluster(options.cluster, run.config)));
  for (const std::string& warning : run.warnings) log_warning(warning);
  take_grid(run, nodes, options.cluster);
  int largest = 1;
  for (const NodeSpec& node : nodes) largest = std::max(largest, node.grid.ranks());
  value_or_throw(check_profile_ranks(run.config, largest));
  return Controller(run.config, nodes).run();
}

}  // namespace troupe::launch

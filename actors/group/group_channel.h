// GroupChannel: the control channel between the leader of a group (rank 0) and its followers,
// beside the collectives of their work: which message is next, and whether it succeeded.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/parallel/communicator.h"
#include "transports/wire/part.h"

namespace troupe::actors::group {

/// A message that the leader forwards to all ranks.
struct GroupCall {
  std::string actor;  ///< the addressed actor of the group
  std::string type;   ///< the message's name
  transports::wire::WireBody body;
};

/// One per rank and group. When the communicator fails, the group has ended: every call then throws
/// Bug with the message of the rank that ended it, because a sharded actor cannot continue without
/// a rank.
class GroupChannel {
 public:
  /// `own` must not be used elsewhere (world.split(0, world.rank())): a rank that failed early
  /// waits in it, and its error must not be mistaken for the data of another collective.
  explicit GroupChannel(std::unique_ptr<engine::parallel::Communicator> own);
  /// Tells the followers to end, on the leader.
  ~GroupChannel();
  GroupChannel(const GroupChannel&) = delete;

  int rank() const { return own_->rank(); }
  int size() const { return own_->size(); }

  /// Held by the leader while a message is forwarded and handled. Throws Bug when another one is in
  /// progress: the actors of a group must share an engine executor.
  class ExclusiveCall {
   public:
    explicit ExclusiveCall(GroupChannel& channel);
    ~ExclusiveCall() { channel_.busy_ = false; }
    ExclusiveCall(const ExclusiveCall&) = delete;

   private:
    GroupChannel& channel_;
  };

  /// Leader: sends a call, which every follower's next() returns.
  void send(const GroupCall& call);
  /// Follower: sleeps until the leader's next message and returns it; nullopt when the leader has
  /// ended.
  std::optional<GroupCall> next();

  /// Every rank: runs `work` and exchanges its outcome with the other ranks. Throws Failure on all
  /// ranks when any rank threw one: the error of the first rank that failed, with its rank unless
  /// all errors are equal. Any other exception ends the group. Collectives inside `work` do not
  /// take part in this: when one rank fails while others wait for it in one, their deadline ends
  /// the group.
  void run_on_all_ranks(std::string_view what, const std::function<void()>& work);

 private:
  [[noreturn]] void end_group(std::string_view why);

  std::unique_ptr<engine::parallel::Communicator> own_;
  std::atomic<bool> busy_ = false;
  bool ended_ = false;
};

}  // namespace troupe::actors::group

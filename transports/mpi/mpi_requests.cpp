#include "transports/mpi/mpi_requests.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::transports::mpi {
namespace {

/// MPI guarantees tags up to 32767. The same on every rank and host (FNV-1a).
std::uint32_t tag_of(const OperationName& name) {
  std::uint32_t hash = 2166136261U;
  for (const std::string_view text : {name.kind, name.blocking ? std::string_view() : name.what})
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return (hash ^ (hash >> 15)) & 0x7fffU;
}

}  // namespace

Requests::Requests(Link link, OperationName name)
    : link_(std::move(link)), channel_(name.channel), what_(name.what), tag_(tag_of(name)) {
}

void Requests::send(std::span<const std::byte> data, int to) {
  const auto locked = link_.session->lock();
  bytes_ += data.size();
  if (link_.shared) {
    ++open_;
    return link_.shared->send(channel_, data, to, tag_, what_, open_);
  }
  link_.session->in_blocks(data.size(), [&](std::size_t begin, std::size_t n) {
    link_.session->check_success(
        MPI_Isend(data.data() + begin, static_cast<int>(n), MPI_BYTE, to, static_cast<int>(tag_),
                  link_.group, &requests_.emplace_back(MPI_REQUEST_NULL)),
        what_);
    expected_.push_back(-1);
    peers_.push_back(to);
  });
}

void Requests::receive(std::span<std::byte> data, int from) {
  const auto locked = link_.session->lock();
  bytes_ += data.size();
  if (link_.shared) {
    ++open_;
    return link_.shared->receive(channel_, data, from, tag_, what_, open_);
  }
  link_.session->in_blocks(data.size(), [&](std::size_t begin, std::size_t n) {
    link_.session->check_success(
        MPI_Irecv(data.data() + begin, static_cast<int>(n), MPI_BYTE, from, static_cast<int>(tag_),
                  link_.group, &requests_.emplace_back(MPI_REQUEST_NULL)),
        what_);
    expected_.push_back(static_cast<int>(n));
    peers_.push_back(from);
  });
}

void Requests::wait(std::optional<std::chrono::nanoseconds> deadline, bool idle) {
  const Waiting waiting{
      .bytes = bytes_, .what = what_, .deadline = deadline, .idle = idle, .missing = [this] {
        return missing();
      }};
  if (link_.shared)
    link_.session->wait_until([this] { return open_ == 0; }, waiting);
  else
    check_lengths(link_.session->wait_all(requests_, waiting));
  if (then_) then_();
}

/// The ranks of MPI_COMM_WORLD whose messages are not complete.
std::vector<int> Requests::missing() const {
  if (link_.shared) return link_.shared->ranks_of(open_);
  const std::vector<int> in_world = ranks_in_world(link_.group);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    int complete = 0;
    if (requests_[i] != MPI_REQUEST_NULL)
      MPI_Request_get_status(requests_[i], &complete, MPI_STATUS_IGNORE);
    else
      complete = 1;
    const int rank = in_world[static_cast<std::size_t>(peers_[i])];
    if (complete == 0 && std::ranges::count(ranks, rank) == 0) ranks.push_back(rank);
  }
  return ranks;
}

void Requests::check_lengths(const std::vector<MPI_Status>& statuses) const {
  const auto locked = link_.session->lock();
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (expected_[i] < 0) continue;
    int found = 0;
    MPI_Get_count(&statuses[i], MPI_BYTE, &found);
    if (found != expected_[i])
      link_.session->abort(
          cat("'", what_, "': expected ", expected_[i], " bytes from rank ", statuses[i].MPI_SOURCE,
              " of the group, received ", found, " (a bug in troupe, not in your input)"),
          Errc::internal);
  }
}

}  // namespace troupe::transports::mpi

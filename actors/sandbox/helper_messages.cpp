#include "actors/sandbox/helper_messages.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

namespace troupe::actors::sandbox {
namespace {

constexpr std::size_t max_plan_bytes = std::size_t{64} << 20, max_descriptors = 8;

// Both processes are the same program, so numbers are copied.
class Writer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(const T& value) { out += bytes_of(value); }
  void operator()(const sock_filter& value) { out += bytes_of(value); }
  void operator()(const std::string& text) {
    (*this)(text.size());
    out += text;
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    (*this)(list.size());
    for (const T& each : list) (*this)(each);
  }
  void operator()(const Mount& mount) {
    (*this)(mount.kind);
    (*this)(mount.from);
    (*this)(mount.to);
  }
  std::string out;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, sock_filter>
  void operator()(T& value) {
    const std::string_view taken = take(sizeof value);
    if (taken.size() == sizeof value) std::memcpy(&value, taken.data(), sizeof value);
  }
  void operator()(std::string& text) {
    std::size_t size = 0;
    (*this)(size);
    text = take(size);
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    std::size_t size = 0;
    (*this)(size);
    for (std::size_t i = 0; i < size && good; ++i) (*this)(list.emplace_back());
  }
  void operator()(Mount& mount) {
    (*this)(mount.kind);
    (*this)(mount.from);
    (*this)(mount.to);
  }
  bool good = true;

 private:
  std::string_view take(std::size_t size) {
    good = good && size <= bytes_.size();
    const std::string_view taken = bytes_.substr(0, good ? size : 0);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view bytes_;
};

void each_member(auto& plan, auto& code) {
  Limits::each_field(plan.limits, [&](const char*, auto& value) { code(value); });
  code(plan.program);
  code(plan.run);
  code(plan.environment);
  code(plan.folders);
  code(plan.mounts);
  code(plan.work_options);
  code(plan.processes);
  code(plan.filter);
  code(plan.zero_device);
  code(plan.temporary);
}

void take_descriptors(msghdr& message, std::vector<Descriptor>* into) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at, sizeof descriptor);
      Descriptor owned(descriptor);
      if (into != nullptr) into->push_back(std::move(owned));
    }
  }
}

}  // namespace

bool send_message(int socket, std::string_view bytes, std::span<const int> descriptors) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * max_descriptors)> control{};
  for (bool first = true; !bytes.empty(); first = false) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (first && !descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_message(int socket, void* bytes, std::size_t size,
                     std::vector<Descriptor>* descriptors) {
  for (std::size_t done = 0; done < size;) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * max_descriptors)> control{};
    iovec part{static_cast<char*>(bytes) + done, size - done};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    take_descriptors(message, descriptors);
    done += static_cast<std::size_t>(count);
  }
  return true;
}

std::string encode(const SandboxPlan& plan) {
  Writer writer;
  each_member(plan, writer);
  return std::string(bytes_of(writer.out.size())) + writer.out;
}

Result<SandboxPlan> receive_plan(int socket) {
  std::size_t size = 0;
  if (!receive_message(socket, &size, sizeof size) || size > max_plan_bytes)
    return fail(Errc::closed, "expected a plan of a sandbox, received none");
  std::string bytes(size, '\0');
  if (!receive_message(socket, bytes.data(), size))
    return fail(Errc::closed, "the plan of a sandbox is incomplete");
  SandboxPlan plan;
  Reader reader(bytes);
  each_member(plan, reader);
  if (!reader.good) return fail(Errc::bad_input, "the plan of a sandbox is malformed");
  return plan;
}

}  // namespace troupe::actors::sandbox

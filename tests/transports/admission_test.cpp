// Strangers that connect to the unix socket of a hub: how many it accepts, and until when.
#include "transports/zmq/admission.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/base/files/descriptor.h"
#include "tests/transports/star.h"

namespace troupe::transports::admission_test {
namespace {

/// Connects to the hub's socket; not open if that failed.
Descriptor connection(const std::string& endpoint) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, endpoint.substr(std::strlen("ipc://")).c_str());
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    socket.close();
  return socket;
}

std::vector<Descriptor> held(const std::string& endpoint, int count) {
  std::vector<Descriptor> open;
  for (int i = 0; i < count; ++i)
    if (Descriptor one = connection(endpoint); one.open()) open.push_back(std::move(one));
  return open;
}

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() { std::ofstream(path_).put('x'); }
  ~AdmissionTest() override { std::filesystem::remove(path_); }
  bool reachable() const { return std::filesystem::exists(path_); }

  const std::string path_ = testing::TempDir() + "admission";
  Admission admission_{3, {"ipc://" + path_, "tcp://127.0.0.1:1"}};
};

TEST_F(AdmissionTest, PausesWhileTooManyConnectionsAreOpen) {
  for (const int fd : {5, 6, 7}) admission_.accepted(fd);
  EXPECT_TRUE(reachable());
  admission_.accepted(8);
  EXPECT_FALSE(reachable());
  admission_.next_period();
  EXPECT_FALSE(reachable()) << "four are open";
  admission_.ended(6);
  EXPECT_FALSE(reachable());
  admission_.next_period();
  EXPECT_TRUE(reachable());
}

TEST_F(AdmissionTest, PausesWhileTooManyConnectionsComeAndGo) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(reachable());
    admission_.accepted(5);
    admission_.ended(5);
  }
  EXPECT_FALSE(reachable());
  admission_.next_period();
  EXPECT_TRUE(reachable());
}

TEST_F(AdmissionTest, FinishedAcceptsNoFurtherConnection) {
  for (const int fd : {5, 6, 7, 8}) admission_.accepted(fd);
  admission_.finish();
  admission_.next_period();
  EXPECT_FALSE(reachable());
  admission_.reopen();
  EXPECT_TRUE(reachable()) << "a successor is expected";
  admission_.finish();
  EXPECT_FALSE(reachable());
  admission_.remove();
  EXPECT_FALSE(reachable());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".paused")) << "nothing is left";
}

TEST(HubOfUnixSockets, AdmitsItsSpokesBehindAThousandStrangers) {
  Star star;
  star.hub->attach("hub", [&](Frame frame) { star.at_hub.add(std::move(frame)); });
  star.hub->open();
  const std::string& endpoint = star.hub->endpoints()[0];
  // Strangers that send nothing are disconnected after the handshake's second.
  const std::vector<Descriptor> strangers = held(endpoint, 1000);
  EXPECT_GT(strangers.size(), 30u);
  for (auto& [name, spoke] : star.spokes) {
    spoke->attach(name, [&](Frame frame) { star.at_spokes.add(std::move(frame)); });
    spoke->open();
  }
  EXPECT_EQ(star.hub_events.wait_for(2).size(), 2u);
}

TEST(HubOfUnixSockets, StopsListeningWhenAllSpokesAreConnected) {
  StarOptions options;
  options.link.silence = std::chrono::milliseconds(500);
  Star star(options);
  star.join();
  const std::string& endpoint = star.hub->endpoints()[0];
  // It may pause before: then it listens again in the next period.
  EXPECT_TRUE(becomes([&] { return held(endpoint, 1500).empty(); }));
  ASSERT_TRUE(
      star.hub->send({{"two", "actor"}, {"hub", ""}, 9, Kind::request, "note", Body::of(1)}));
  EXPECT_EQ(star.at_spokes.wait_for(1)[0].id, 9u);
}

}  // namespace
}  // namespace troupe::transports::admission_test

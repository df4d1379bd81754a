// The sockets at which running jobs answer, and who asks there.
#include "launcher/control/job_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "contract/version.h"
#include "launcher/control/job_client.h"
#include "launcher/control/job_server.h"
#include "launcher/protocol/codec.h"
#include "net/abstract_socket.h"
#include "support/catch.h"

using namespace ddl;
using namespace ddl::launcher;
using Catch::Matchers::Contains;

namespace {

Deadline before_long() { return Deadline::after(std::chrono::seconds(20)); }

JobSocket socket_of_test(const std::string& name) {
  return {JobSocket::Role::kHead, ::getuid(), ::getpid(),
          "ddlrun-" + std::to_string(::getpid()) + "-" + name};
}

/// A job of two ranks with a server, in a thread of its own.
class ServedJob {
 public:
  explicit ServedJob(const JobSocket& socket,
                     std::chrono::milliseconds client_time = JobServer::kClientTime) {
    auto server = JobServer::open(
        loop_, socket,
        [this](JobServer::Client client, message::ClientToJob&& request) {
          if (std::holds_alternative<message::DescribeJob>(request)) {
            JobDescription job;
            job.name = std::get<message::DescribeJob>(request).version;
            return server_->answer(client, message::JobDescribed{job});
          }
          if (!answers_) return;
          server_->answer(client, message::JobOverview{{}, {{"a", ""}}, {}});
          for (int rank = 0; rank < 2; ++rank) {
            InspectedRank one;
            one.rank = rank;
            one.node = node_;
            server_->answer(client, message::InspectedRanks{{one}});
          }
          server_->answer(client, message::InspectionEnd{});
        },
        client_time);
    REQUIRE(server);
    server_ = *std::move(server);
  }
  ~ServedJob() {
    loop_.post([this] { loop_.stop(); });
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }
  void run() {
    thread_ = std::thread([this] { loop_.run(); });
  }
  void does_not_answer() { answers_ = false; }
  void names_a_node_that_is_none() { node_ = 1; }

 private:
  EventLoop loop_;
  std::unique_ptr<JobServer> server_;
  bool answers_ = true;
  int node_ = 0;
  std::thread thread_;
};

/// A client that may send anything.
class RawClient {
 public:
  explicit RawClient(const JobSocket& socket) : fd_(*net::connect_abstract(socket.name())) {
    REQUIRE(set_nonblocking(fd_.get(), false));
  }
  void send(const std::string& bytes) { REQUIRE(write_all(fd_.get(), bytes.data(), bytes.size())); }
  /// All that the server sends until it closes.
  std::string answer() {
    std::string all;
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t got = retry_eintr([&] { return ::read(fd_.get(), buffer.data(), buffer.size()); });
      if (got <= 0) return all;
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  UniqueFd fd_;
};

std::string bytes_of(const message::ClientToJob& request) {
  const net::Frame frame = message::encode(request);
  std::string bytes;
  net::append_frame(bytes, frame.type, frame.payload);
  return bytes;
}

Result<JobInspection> inspect(const JobSocket& socket, Deadline deadline = before_long()) {
  return inspection_of(
      std::move(ask_jobs({socket}, message::InspectJob{contract::kVersion}, deadline).front()));
}

}  // namespace

TEST_CASE("sockets of jobs are found by their names, the head's before an agent's") {
  const std::string text =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 1 "
      "@ddlrun-job/1000/agent/4712/ddlrun-4711-0f3c9a1b\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 2 "
      "@ddlrun-job/1000/head/4711/ddlrun-4711-0f3c9a1b\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 3 "
      "@ddlrun-job/1000/head/4711/ddlrun-4711-0f3c9a1b\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 4 @ddlrun-job/1000/agent/50/ddlrun-7-ab\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 5 @ddlrun-job/1001/agent/51/ddlrun-7-ab\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 6 @ddlrun/1000/7/login1/4711\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 7 @ddlrun-job/1000/spawner/52/ddlrun-8-ab\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 8 @ddlrun-job/01000/agent/53/ddlrun-8-ab\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 9 @ddlrun-job/-1/agent/54/ddlrun-8-ab\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 10 @ddlrun-job/1000/agent/0/ddlrun-8-ab\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 11 @ddlrun-job/1000/agent/55/ddlrun-8-\x1b[31m\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 12 @ddlrun-job/1000/agent/56/ddlrun-x-ab\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 13 @ddlrun-job/1000/agent/57/ddlrun-8-ab/1\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 14 /run/ddlrun-job/1000/agent/58/ddlrun-8-ab\n"
      "0000000000000000: 00000002 00000000 00000000 0002 01 15\n";
  using enum JobSocket::Role;
  CHECK(job_sockets(text) == std::vector<JobSocket>{{kHead, 1000, 4711, "ddlrun-4711-0f3c9a1b"},
                                                    {kAgent, 1000, 50, "ddlrun-7-ab"},
                                                    {kAgent, 1001, 51, "ddlrun-7-ab"}});
  CHECK(job_sockets("").empty());
  CHECK(head_pid_of("ddlrun-4711-0f3c9a1b") == 4711);
  for (const char* id :
       {"", "ddlrun", "ddlrun-", "ddlrun-4711", "ddlrun-4711-", "ddlrun-0-a", "ddlrun-1-2-3", "x-1-2"})
    CHECK_FALSE(head_pid_of(id));
}

TEST_CASE("a job is found, described and inspected by its user") {
  const JobSocket socket = socket_of_test("a");
  {
    ServedJob job(socket);
    job.run();
    const auto here = job_sockets_here();
    REQUIRE(here);
    CHECK(std::find(here->begin(), here->end(), socket) != here->end());
    auto described = ask_jobs({socket, socket}, message::DescribeJob{"1.2"}, before_long());
    REQUIRE(described.size() == 2);
    const auto description = description_of(std::move(described[1]));
    REQUIRE(description);
    CHECK(description->name == "1.2");
    const auto inspection = inspect(socket);
    REQUIRE(inspection);
    REQUIRE(inspection->ranks.size() == 2);
    CHECK(inspection->ranks[1].rank == 1);
    CHECK_FALSE(JobServer::open(*std::make_unique<EventLoop>(), socket, nullptr));
  }
  const auto gone = inspect(socket);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code() == ErrorCode::kClosed);
}

TEST_CASE("an answer to another question, or with a node that is none, is refused") {
  const JobSocket socket = socket_of_test("b");
  ServedJob job(socket);
  job.names_a_node_that_is_none();
  job.run();
  CHECK(inspect(socket).error().code() == ErrorCode::kProtocol);
  CHECK(inspection_of(std::move(ask_jobs({socket}, message::DescribeJob{}, before_long()).front()))
            .error()
            .code() == ErrorCode::kProtocol);
  CHECK(description_of(std::move(ask_jobs({socket}, message::InspectJob{}, before_long()).front()))
            .error()
            .code() == ErrorCode::kProtocol);
}

TEST_CASE("a job that does not answer is given up at the deadline") {
  const JobSocket socket = socket_of_test("c");
  ServedJob job(socket);
  job.does_not_answer();
  job.run();
  CHECK(inspect(socket, Deadline::after(std::chrono::milliseconds(20))).error().code() ==
        ErrorCode::kTimeout);
}

TEST_CASE("the socket of another user is not asked") {
  JobSocket socket = socket_of_test("d");
  ++socket.uid;
  ServedJob job(socket);
  job.run();
  const auto refused = inspect(socket);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ErrorCode::kPermissionDenied);
  CHECK_THAT(refused.error().message(), Contains("only that user and root may look at it"));
}

TEST_CASE("bytes that are no request end that client's connection, and nobody else's") {
  const JobSocket socket = socket_of_test("e");
  ServedJob job(socket);
  job.run();
  const auto frame = [](std::uint16_t type, const std::string& payload) {
    std::string bytes;
    net::append_frame(bytes, type, payload);
    return bytes;
  };
  RawClient silent(socket);
  for (const std::string& garbage : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100, '\0'),
                                     std::string("\x17\xDD\x35\x00\xff\xff\xff\x7f", 8)}) {
    RawClient client(socket);
    client.send(garbage);
    CHECK(client.answer().empty());
  }
  const std::uint16_t describe = message::encode<message::ClientToJob>(message::DescribeJob{}).type;
  for (const std::string& wrong : {frame(describe, "no CBOR"), frame(describe, "\xa0"), frame(9999, ""),
                                   frame(0, std::string(1000, '\x81'))}) {
    RawClient client(socket);
    client.send(wrong);
    client.send(wrong);  // a second one ends the connection
    CHECK_THAT(client.answer(), Contains("the job was sent a m"));
  }
  RawClient twice(socket);
  twice.send(bytes_of(message::InspectJob{}) + bytes_of(message::InspectJob{}));
  (void)twice.answer();
  CHECK(inspect(socket));
}

TEST_CASE("only a few clients are admitted, and those that say nothing make room in the end") {
  const JobSocket socket = socket_of_test("f");
  ServedJob job(socket);
  job.run();
  {
    std::vector<std::unique_ptr<RawClient>> silent;
    for (std::size_t i = 0; i < JobServer::kMaxClients; ++i)
      silent.push_back(std::make_unique<RawClient>(socket));
    const auto refused = inspect(socket);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::kTimeout);
    CHECK_THAT(refused.error().message(), Contains("too many others"));
  }
  // The server may not have noticed yet that they have gone.
  const Deadline deadline = before_long();
  auto again = inspect(socket);
  while (!again && !deadline.has_passed()) again = inspect(socket);
  CHECK(again);

  const JobSocket other = socket_of_test("g");
  ServedJob impatient(other, std::chrono::milliseconds(50));
  impatient.run();
  RawClient silent(other);
  CHECK(silent.answer().empty());
}

#include "launcher/protocol/codec.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "launcher/facts.h"
#include "launcher/protocol/member_messages.h"
#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::launcher;
using namespace ddl::launcher::message;
using namespace ddl::affinity;
using ddl::Result;
using ddl::StartStage;
using ddl::net::Frame;

namespace {

// Every byte, so also text that is not UTF-8, which file names and environment values may be.
std::string every_byte() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

RankOutcome outcome() {
  RankOutcome outcome;
  outcome.kind = RankOutcome::Kind::kSignalled;
  outcome.rank = 3;
  outcome.host = "node0";
  outcome.pid = 4'000'000'000;
  outcome.exit_code = 1;
  outcome.signal = SIGSEGV;
  outcome.core_dumped = true;
  outcome.ended_by_us = true;
  outcome.before_end = true;
  outcome.gone_rank = 5;
  outcome.run_seconds = 0.1;
  outcome.usage = {1.5, 0.25, 4096};
  outcome.calls = {{{"allreduce", true, 3, 12, 0.5, 0.25}}, 1.5, 40, 0.125, {{4, 0.25}}};
  outcome.start_error = "no such file: \xff";
  outcome.kill_explanation = "killed from outside";
  outcome.stderr_tail = {"Traceback", "", "Error: \xc3\xbc"};
  return outcome;
}

NodeUsage usage() {
  return {12.5,
          8,
          {1 << 30, 1 << 20, 1, "/job", ""},
          {{"eth0", 10, 20, 25'000'000'000}},
          {{"package-0", 300}},
          "",
          {{"GPU-a", 1, "H200", 0.5, 0.25, 1, 2, 3, 4}},
          "no library"};
}

CpuSet cpus(const char* list) { return *CpuSet::parse_list(list); }

/// A node with one item of every kind.
NodeFacts facts() {
  NodeFacts facts = test::facts_of("node0", 64);
  Topology& node = facts.topology;
  node.source = "this machine";
  node.board = "EX235A";
  node.allowed = cpus("1-3");
  node.complete = cpus("0-3");
  node.cores = {{cpus("1"), 0, 0, -1, 1}, {cpus("2-3"), 0, 0, 0, 0}};
  node.numbered_cores = {{cpus("0"), 0}, {cpus("2-3"), 0}, {cpus("1"), 0}};
  node.packages = {{0, cpus("1-3"), cpus("0-3")}};
  node.numa_nodes = {{4, cpus("1-3"), cpus("0-3"), 1u << 30}, {5, {}, {}, 0}};
  node.l3s = {{0, cpus("2-3"), cpus("2-3")}};
  node.core_kinds = {{"P", cpus("2-3")}, {"E", cpus("1")}};
  Gpu gpu;
  gpu.index = 1;
  gpu.vendor = GpuVendor::kAmd;
  gpu.bus_id = "0000:c1:00.0";
  gpu.uuid = "GPU-1";
  gpu.local_cpus = cpus("2-3");
  gpu.numa = 0;
  node.gpus = {gpu};
  node.nics = {{"hsn0", 31.5, true, "0000:c2:00.0", cpus("2-3"), -1, "0000:c0:00.0"}};
  node.warnings = {"guessed"};
  facts.topology_failure = "none";
  facts.hard_limits = {{"nofile", 4096}, {"stack", kUnlimited}};
  facts.visible_devices = {{"ROCR_VISIBLE_DEVICES", "2,3"}};
  return facts;
}

JobLaunch job_launch() {
  JobLaunch job;
  job.elastic_job_id = "ddlrun-4700-0f3c9a1b";
  job.preemption_watch = "exec watch";
  job.requeue = {"Slurm", "4711", "node1", 3};
  job.job_id = "ddlrun-1-2";
  job.num_ranks = 3;
  job.node_names = {"a", "b"};
  job.node_ranks = {{0, 1}, {2}};
  job.command = {"./train", "", "a b", every_byte()};
  job.workdir = "/data/\xe9t\xe9";
  job.shell = {0027, {{"core", 0}, {"nofile", kUnlimited}}, true};
  job.environment = {{"LATIN1", "\xe9\xff"}, {"EMPTY", ""}, {"UTF8", "\xc3\xa9"}};
  job.login_variables = {"HOME"};
  job.kill_grace_seconds = 0.25;
  job.stall_warning_seconds = 60;
  job.stall_shutdown_seconds = 90;
  job.strict_bind = true;
  job.report_bindings = true;
  job.measures_use = true;
  job.split_lines = false;
  job.flush_idle_lines = true;
  job.scheduler_job = "7";
  job.head_host = "login1";
  job.head_pid = 4711;
  job.serves_gloo = true;
  job.timeline_events = 1 << 17;
  job.output_window = 65536;
  return job;
}

NodeLaunch node_launch() {
  return {
      1,
      2,
      {{"DDL_LIBRARY", "\xe9"}},
      {{2, 0, true, {{"RANK", "2"}, {"BYTES", every_byte()}}, cpus("8-15,72-79"), {1, 3}}, {4, 1, false, {}}},
      {40000, 40001}};
}

// One of every message of a direction, in the order of the variant, no field at its default.

const Routed kRouted{7, 12, every_byte()};
const PmixModex kModex{1'000'000'000'000, 2, 5};
const PmixModexData kModexData{7, 1, -46, every_byte()};
const PmixEvent kEvent{-25, 2, 3, every_byte()};
const ElasticPlan kElasticPlan{2, 7, {0, 3}, {4, 5}, "(vector,(0,1,7))"};
const ElasticJoin kElasticJoin{3, 2, 1'000'000'000'000};

std::vector<HeadToAgent> head_to_agent() {
  return {message::Heartbeat{},
          kRouted,
          JobKey{every_byte()},
          StartAgents{{{7, "node7", "ada", 2222}, {8, "n8", "", 0}},
                      {22, "/k", {"-v"}, {"sh", "%h"}, 8, "/d", 32, 30.5},
                      "0a",
                      "abc"},
          HoldPorts{4},
          LaunchJob{job_launch()},
          Launch{node_launch()},
          Signal{SIGUSR1},
          End{SIGTERM, 1.5},
          StdinData{every_byte()},
          StdinEof{},
          message::OutputCredit{2, OutputStream::kStderr, 1'000'000},
          Pausing{},
          AskActivity{12, 0.25, 256, true},
          Finish{},
          PmixFenceDone{{}, every_byte()},
          kModex,
          kModexData,
          PmixNames{11, PmixNames::Status::kTimedOut, {{"port", every_byte(), 3}}},
          kEvent,
          PmiBarrierDone{{{"P1-businesscard", every_byte()}}},
          ForwardedAnswer{4, 58, every_byte()},
          AskEvents{4, 2, 131072, 4096, true},
          RecordTimeline{65536},
          GlooStoreAnswered{7, {404, every_byte()}},
          HostLost{"node4", 6, 4711, "ddlrun has lost it"},
          kElasticPlan,
          ElasticChange{2},
          KillRank{3}};
}

RankActivity activity() {
  const CallActivity call{"allreduce", 812, true, 61.5};
  const SetActivity set{-1, 2, call, {}, 3, true, true};
  return {2,
          4711,
          RankActivity::Phase::kJoined,
          3,
          true,
          0.5,
          {set},
          {{-1, "layer \xff", -7, 61.5}},
          1001,
          0.25,
          3.5,
          {"T", 7, 12.5, 1'000'000'000'000, 2'000'000'000'000},
          outcome().calls};
}

std::vector<AgentToHead> agent_to_head() {
  return {message::Heartbeat{},
          Facts{facts()},
          kRouted,
          RendezvousReady{4711},
          AgentDown{7, "its name was not found"},
          AgentFailed{"no PMIx server", true, SIGTERM},
          Finished{2, usage()},
          RankStarted{2, 0, 4711},
          RankBound{3, {cpus("0-3,64"), "prefer (many):0", "CUDA_VISIBLE_DEVICES=1"}, EPERM, ENOSYS},
          VisibleGpus{3, true, {{"0000:c1:00.0", "GPU-1"}, {"0000:c2:00.0", ""}}, "\xff"},
          NodeShared{"login1", 4711},
          RankProgress{3, RankProgress::Step::kFirstCollective},
          RankStopped{3, SIGSTOP},
          Stalled{61.5},
          Activity{12, {activity()}, usage(), {4711, 4712}},
          RankEnded{outcome()},
          AbortRequested{1, -3, "out of cheese: \xff"},
          SpawnRefused{2},
          MpiLoaded{2, "/opt/mpi/lib/libmpi.so.40", 3'100'000'000},
          NamesUnanswered{"2001:db8::1"},
          Preemption{"the command has ended"},
          StdinCredit{1'000'000'000'000},
          StdinClosed{},
          OutputChunk{7, OutputStream::kStderr, ChunkEnd::kOpen, 1'700'000'000'123'456'789, every_byte()},
          PmixFence{{0, 2, 5}, every_byte()},
          kModex,
          kModexData,
          PmixPublish{8, {{"port", every_byte(), 3}, {"", "", 0}}, true},
          PmixLookup{9, {"port", "\xff"}, true, 60},
          PmixUnpublish{10, 3, {"port"}},
          kEvent,
          PmiBarrier{{{"P0-businesscard", "port#4711"}, {"a", ""}}},
          ForwardedRequest{4, 54, every_byte()},
          Events{4, 2, 4096, 5000, 1'000'000'000'000, 17, 18, 16, 812, 3, every_byte(), every_byte()},
          PortsHeld{{40000, 40001}},
          PortTaken{"port 40000"},
          AskGlooStore{7, {GlooMethod::kDelete, "global", "rank_1", every_byte()}},
          kElasticJoin,
          ElasticFinished{3}};
}

std::vector<AgentToSpawner> agent_to_spawner() {
  return {Spawn{{1,
                 {"/bin/echo", every_byte()},
                 {"A=1", "B=\xff"},
                 "/tmp",
                 {3, 4},
                 cpus("127"),
                 {3},
                 true,
                 {.ignores_interrupt = true}}},
          SignalChildren{SIGHUP},
          SignalChild{3, SIGKILL},
          AskToEnd{SIGTERM},
          KillAll{},
          ReportGone{}};
}

std::vector<SpawnerToAgent> spawner_to_agent() {
  return {ChildStarted{1, 99, {cpus("1"), "default", ""}, EPERM, EINVAL},
          ChildFailed{1, StartStage::kDirectory, ENOENT},
          ChildEnded{1, 9, 0.125, {1.5, 0.25, 4096}},
          ChildStopped{1, 0},
          Leftovers{5},
          AllGone{}};
}

std::vector<HeadToJoiningAgent> head_to_joining_agent() {
  return {Join{{"10.0.0.1", "10.0.0.2"}, 4711, "0a"}};
}

std::vector<ClientToJob> client_to_job() {
  return {DescribeJob{"0.2.0"}, InspectJob{"0.2.0", true}, ChangeTimeline{"0.2.0", true, "/tmp/\xff.json"}};
}

std::vector<JobToClient> job_to_client() {
  const JobDescription job{"ddlrun-1-2",
                           "tr\xffin",
                           "./train 'a b'",
                           "login1",
                           4711,
                           3,
                           {"a", "b"},
                           1'800'000'000,
                           61.5,
                           2,
                           {{"launched", 0.5}},
                           0.25,
                           7'000'000,
                           {1, 2, 3, 4},
                           {{"rank_failed", 5}},
                           "4711"};
  const InspectedWait wait{
      "allreduce #812", "allreduce #812: 1 of 2 ranks", 61.5, 1, {0, 2}, 2000, {1, 3}, 1000};
  const CurrentWork work{CurrentWork::Kind::kTensor, "transfer", 811, 2, 3, "layer \xff", 0.5};
  const InspectedRank rank{2,
                           1,
                           4711,
                           InspectedRank::State::kNoAnswer,
                           {"T", 7, 12.5, 1'000'000'000'000, 2'000'000'000'000},
                           work,
                           1001,
                           "layer \xff",
                           61.5,
                           1,
                           0.25,
                           3.5,
                           "0-3,64",
                           {0, 3},
                           outcome().calls};
  return {Refused{"this job belongs to user 7", true},
          JobDescribed{job},
          JobOverview{job, {{"a", "", usage()}, {"b", "its agent is lost"}}, {wait}},
          InspectedRanks{{rank, {}}},
          InspectionEnd{},
          TimelineChanged{"/tmp/\xff.json"}};
}

std::vector<MemberReport> member_reports() {
  return {RankStarted{2, 0, 4711},
          RankEnded{outcome()},
          kElasticJoin,
          ElasticFinished{3},
          PmiBarrier{{{"P0-businesscard", "port#4711"}}},
          AbortRequested{3, 5, "no data"},
          HostLeaving{"node4: its agent received SIGTERM", SIGTERM},
          Stalled{61.5},
          Activity{12, {activity()}, usage(), {4711, 4712}},
          ForwardedRequest{4, 54, every_byte()},
          Events{4, 2, 4096, 5000, 1'000, 17, 18, 0, 812, 3, every_byte(), every_byte()},
          AskGlooStore{7, {GlooMethod::kGet, "rank_and_size", "node4:1", ""}},
          Finished{2, usage()},
          LaunchEnded{4, 122, 3, "node4: no answer", "start an agent", SIGTERM, true}};
}

std::vector<MemberOrder> member_orders() {
  return {kElasticPlan,
          ElasticChange{2},
          KillRank{3},
          PmiBarrierDone{{{"P1-businesscard", every_byte()}}},
          HostLost{"node4", 6, 4711, "ddlrun has lost it"},
          AskActivity{12, 0.15, 256},
          ForwardedAnswer{4, 56, every_byte()},
          GlooStoreAnswered{7, {200, "0,3,0,1,0,2"}},
          Signal{SIGTERM}};
}

/// Calls test with the messages of each direction.
template <class Test>
void in_every_direction(const Test& test) {
  test(head_to_agent());
  test(agent_to_head());
  test(agent_to_spawner());
  test(spawner_to_agent());
  test(head_to_joining_agent());
  test(client_to_job());
  test(job_to_client());
  test(member_reports());
  test(member_orders());
}

/// Calls test with every message, once for each direction in which it travels.
template <class Test>
void for_every_message(const Test& test) {
  in_every_direction([&](const auto& messages) {
    for (const auto& message : messages) {
      CAPTURE(encode(message).type);
      test(message);
    }
  });
}

template <class Direction>
Result<Direction> decode_again(const Direction&, const Frame& frame) {
  return decode<Direction>(frame);
}

template <class Message>
struct Direction;
template <class... Messages>
struct Direction<std::variant<Messages...>> {
  using Any = std::variant<Messages...>;
  /// One frame of each of its types.
  static std::vector<Frame> frames() { return {encode(Any(Messages{}))...}; }
};

/// The frame of a message in the first of these directions that it has.
template <class Message>
Frame frame_of(const Message& message) {
  if constexpr (std::is_constructible_v<HeadToAgent, Message>) {
    return encode<HeadToAgent>(message);
  } else if constexpr (std::is_constructible_v<AgentToHead, Message>) {
    return encode<AgentToHead>(message);
  } else if constexpr (std::is_constructible_v<AgentToSpawner, Message>) {
    return encode<AgentToSpawner>(message);
  } else {
    return encode<SpawnerToAgent>(message);
  }
}

template <class Message>
std::uint16_t type_of() {
  return frame_of(Message{}).type;
}

template <class Direction>
std::string refusal_as(const Frame& frame) {
  const auto decoded = decode<Direction>(frame);
  if (decoded) return "accepted";
  CHECK(decoded.error().code() == ddl::ErrorCode::kProtocol);
  return decoded.error().message();
}

/// By the decoder of a direction that has the type.
std::string refusal(const Frame& frame) {
  if (is_in<HeadToAgent>(frame)) return refusal_as<HeadToAgent>(frame);
  if (is_in<AgentToHead>(frame)) return refusal_as<AgentToHead>(frame);
  if (is_in<AgentToSpawner>(frame)) return refusal_as<AgentToSpawner>(frame);
  return refusal_as<SpawnerToAgent>(frame);
}

template <class Message>
std::string cbor(const Message& message) {
  return frame_of(message).payload;
}

/// bytes with the one place that reads before replaced by after.
std::string altered(std::string bytes, std::string_view before, std::string_view after) {
  const std::size_t at = bytes.find(before);
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes.find(before, at + 1) == std::string::npos);
  return bytes.replace(at, before.size(), after);
}

}  // namespace

TEST_CASE("every message comes back as it was") {
  in_every_direction([](const auto& messages) {
    using Any = typename std::decay_t<decltype(messages)>::value_type;
    REQUIRE(messages.size() == std::variant_size_v<Any>);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      CAPTURE(i);
      REQUIRE(messages[i].index() == i);  // each one is here
      const auto decoded = decode<Any>(encode(messages[i]));
      REQUIRE(decoded);
      CHECK(*decoded == messages[i]);
    }
  });
}

TEST_CASE("messages at their defaults come back too") {
  in_every_direction([](const auto& messages) {
    using Any = typename std::decay_t<decltype(messages)>::value_type;
    for (const Frame& frame : Direction<Any>::frames()) {
      CAPTURE(frame.type);
      const auto decoded = decode<Any>(frame);
      REQUIRE(decoded);
      const Frame again = encode(*decoded);
      CHECK(again.type == frame.type);
      CHECK(again.payload == frame.payload);
    }
  });
}

namespace {

/// A type has one number in all directions. Each direction takes its own types and refuses all others by name.
template <class Own>
void check_direction(const std::string& route, const std::vector<Frame>& every_frame) {
  CAPTURE(route);
  std::set<std::uint16_t> own;
  for (const Frame& frame : Direction<Own>::frames()) own.insert(frame.type);
  CHECK(own.size() == std::variant_size_v<Own>);
  std::size_t num_refused = 0;
  for (const Frame& frame : every_frame) {
    CAPTURE(frame.type);
    CHECK(is_in<Own>(frame) == own.contains(frame.type));
    if (own.contains(frame.type)) {
      CHECK(refusal_as<Own>(frame) == "accepted");
    } else {
      ++num_refused;
      CHECK_THAT(refusal_as<Own>(frame),
                 Catch::StartsWith("a message of type ") && Catch::EndsWith(", which does not go " + route));
    }
  }
  CHECK(num_refused >= every_frame.size() / 3);
}

}  // namespace

TEST_CASE("a message of another direction is refused, for every type and every direction") {
  std::vector<Frame> every_frame;
  in_every_direction([&](const auto& messages) {
    for (const auto& message : messages) every_frame.push_back(encode(message));
  });
  check_direction<HeadToAgent>("from head to agent", every_frame);
  check_direction<AgentToHead>("from agent to head", every_frame);
  check_direction<FleetReport>("from agent to head", every_frame);
  check_direction<NodeReport>("from agent to head", every_frame);
  check_direction<AgentToSpawner>("from agent to spawner", every_frame);
  check_direction<SpawnerToAgent>("from spawner to agent", every_frame);
  check_direction<HeadToJoiningAgent>("from head to joining agent", every_frame);
  check_direction<ClientToJob>("from client to job", every_frame);
  check_direction<JobToClient>("from job to client", every_frame);
}

TEST_CASE("the refusal of a message of another direction names its type") {
  CHECK(refusal_as<HeadToAgent>(frame_of(RankStarted{1, 0, 2})) ==
        "a message of type RankStarted, which does not go from head to agent");
  CHECK(refusal_as<AgentToHead>(frame_of(Launch{})) ==
        "a message of type Launch, which does not go from agent to head");
  CHECK(refusal_as<SpawnerToAgent>(frame_of(KillAll{})) ==
        "a message of type KillAll, which does not go from spawner to agent");
  CHECK(refusal_as<AgentToSpawner>({type_of<RankStarted>(), "not even CBOR"}) ==
        "a message of type RankStarted, which does not go from agent to spawner");
}

TEST_CASE("a message cut at any position is an error, unless the rest is raw bytes") {
  for_every_message([](const auto& message) {
    Frame frame = encode(message);
    if (frame.type == type_of<StdinData>() || frame.type == type_of<JobKey>()) return;  // nothing but bytes
    if (frame.type == type_of<OutputChunk>()) {
      frame.payload.resize(frame.payload.size() - every_byte().size());
      CHECK(decode_again(message, frame).has_value());
    }
    while (!frame.payload.empty()) {
      frame.payload.pop_back();
      REQUIRE_FALSE(decode_again(message, frame).has_value());
    }
  });
}

TEST_CASE("a message with any one byte changed is decoded or refused, and nothing worse") {
  for_every_message([](const auto& message) {
    const Frame whole = encode(message);
    for (std::size_t at = 0; at < whole.payload.size(); ++at) {
      for (const int value : {0x00, 0x01, 0x7f, 0x80, 0x9f, 0xbf, 0xf6, 0xfb, 0xff}) {
        Frame frame = whole;
        frame.payload[at] = static_cast<char>(value);
        if (const auto decoded = decode_again(message, frame)) REQUIRE(decoded->index() == message.index());
      }
    }
  });
}

TEST_CASE("an unknown type is refused by its number") {
  CHECK(refusal_as<HeadToAgent>({200, "\xa0"}) == "a message of unknown type 200 from head to agent");
  CHECK(refusal_as<SpawnerToAgent>({0xffff, ""}) == "a message of unknown type 65535 from spawner to agent");
}

TEST_CASE("a missing field is refused by its name") {
  const std::string payload = altered(cbor(RankStarted{1, 0, 2}), "rank", "tank");
  CHECK_THAT(
      refusal({type_of<RankStarted>(), payload}),
      Catch::StartsWith("a malformed RankStarted message from agent to head: ") && Catch::Contains("'rank'"));
}

TEST_CASE("a field of another type is refused") {
  using std::string_literals::operator""s;
  // {"text": "abc"} with an array, a number and null in place of the text.
  const std::string abc =
      "\x63"
      "abc";
  for (const std::string& other : {"\x83\x01\x02\x03"s, "\x1a\x00\x00\x00\x01"s, "\xf6"s}) {
    const std::string payload = altered(cbor(AgentFailed{"abc", false}), abc, other);
    CHECK_THAT(refusal({type_of<AgentFailed>(), payload}), Catch::Contains("malformed"));
  }
  // A list where a map is expected, and the other way round.
  CHECK_THAT(refusal({type_of<Signal>(), "\x80"}), Catch::Contains("malformed"));
  CHECK_THAT(refusal({type_of<OutputChunk>(), "\x01\xa0"}), Catch::Contains("malformed"));
}

TEST_CASE("a value outside its enumeration is refused") {
  const auto with = [](const std::string& field, const std::string& payload, char value) {
    const std::size_t at = payload.find(field);
    REQUIRE(at != std::string::npos);
    std::string changed = payload;
    changed[at + field.size()] = value;
    return changed;
  };
  const std::string credit = cbor(message::OutputCredit{0, OutputStream::kStdout, 1});
  CHECK(refusal({type_of<message::OutputCredit>(), with("stream", credit, 2)}) == "accepted");
  CHECK_THAT(refusal({type_of<message::OutputCredit>(), with("stream", credit, 0)}),
             Catch::Contains("enumeration"));
  CHECK_THAT(refusal({type_of<message::OutputCredit>(), with("stream", credit, 3)}),
             Catch::Contains("enumeration"));
  const std::string failed = cbor(ChildFailed{0, StartStage::kFork, 1});
  CHECK_THAT(refusal({type_of<ChildFailed>(), with("stage", failed, 7)}), Catch::Contains("enumeration"));
  CHECK_THAT(refusal({type_of<ChildFailed>(), with("stage", failed, '\x20')}),
             Catch::Contains("enumeration"));  // -1
  const std::string ended = cbor(RankEnded{});
  CHECK_THAT(refusal({type_of<RankEnded>(), with("kind", ended, 5)}), Catch::Contains("enumeration"));
}

TEST_CASE("seconds that no clock can add are refused, also as an integer") {
  using std::string_literals::operator""s;
  const std::string one_and_a_half = "\xfa\x3f\xc0\x00\x00"s;
  const auto with = [&](const std::string& seconds) {
    return refusal({type_of<End>(), altered(cbor(End{SIGTERM, 1.5}), one_and_a_half, seconds)});
  };
  CHECK(with(one_and_a_half) == "accepted");
  CHECK(with("\x0f"s) == "accepted");
  CHECK_THAT(with("\x3a\x3f\xc0\x00\x00"s), Catch::Contains("length of time"));  // -1069547521
  CHECK_THAT(with("\x1b\xff\xff\xff\xff\xff\xff\xff\xff"s), Catch::Contains("length of time"));  // 2^64 - 1
  CHECK_THAT(with("\xfa\x7f\x7f\xff\xff"s), Catch::Contains("too large"));
}

TEST_CASE("an output message needs its whole head and a stream and an end that exist") {
  const auto output = [](const std::string& payload) { return refusal({type_of<OutputChunk>(), payload}); };
  using std::string_literals::operator""s;
  CHECK(output("\x05\x84\x00\x01\x00\x00the bytes"s) == "accepted");
  const std::string headless = "a malformed OutputChunk message from agent to head: it has no head";
  CHECK(output("") == headless);
  CHECK(output("\0"s) == headless);
  CHECK(output("\x06\x84\x00\x01\x00\x00"s) == headless);
  CHECK_THAT(output("\x05\x84\x00\x03\x00\x00"s), Catch::Contains("enumeration"));
  CHECK_THAT(output("\x05\x84\x00\x01\x05\x00"s), Catch::Contains("enumeration"));
  CHECK_THAT(output("\x04\x83\x00\x01\x00"s), Catch::Contains("malformed"));  // no time
  CHECK_THAT(output("\x06\x84\x00\x01\x00\x00\x00"s), Catch::Contains("behind its end"));
}

TEST_CASE("bytes that would make a recursive reader overflow the stack are refused") {
  for (const char nesting : {'\x81', '\xa1', '\x9f', '\xbf', '\x5f', '\x7f', '\xc1'}) {
    CHECK_THAT(refusal({type_of<Launch>(), std::string(8 << 20, nesting)}), Catch::Contains("malformed"));
  }
}

TEST_CASE("a topology that contradicts itself is refused") {
  const auto refusal_of = [](auto change) {
    NodeFacts facts = ::facts();
    change(facts.topology);
    return refusal(frame_of(Facts{facts}));
  };
  CHECK(refusal_of([](Topology&) {}) == "accepted");
  CHECK(refusal_of([](Topology& node) { node = {}; }) == "accepted");  // it could not be read
  const std::string complaint = "contradicts itself";
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[0].numa = 2; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[0].package = -1; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[1].l3 = 1; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[1].cpus = {}; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[1].cpus = cpus("0"); }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.numbered_cores[2].package = 1; }),
             Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.gpus[0].numa = 7; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores.resize(5000); }), Catch::Contains("too many cores"));
}

TEST_CASE("the fuzzer's seeds are these messages") {
  // DDL_WRITE_GOLDEN=1 writes them anew.
  const bool writes = std::getenv("DDL_WRITE_GOLDEN") != nullptr;
  std::set<std::uint16_t> seen;
  for_every_message([&](const auto& message) {
    const Frame frame = encode(message);
    if (!seen.insert(frame.type).second) return;
    const std::string path = DDL_MESSAGE_SEEDS "/type_" + std::to_string(frame.type);
    std::string seed{static_cast<char>(frame.type & 0xff), static_cast<char>(frame.type >> 8)};
    seed += frame.payload;
    if (writes) std::ofstream(path, std::ios::binary) << seed;
    std::ifstream file(path, std::ios::binary);
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == seed);
  });
}

#include "launcher/protocol/codec.h"

#include <csignal>

#include "launcher/facts.h"
#include "support/catch.h"

using ddl::CpuSet;
using namespace ddl::launcher;
using namespace ddl::launcher::message;
using namespace ddl::affinity;
using ddl::net::Frame;

namespace {

// Every byte there is, so also what is no UTF-8; file names and environment values may be that.
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
  outcome.start_error = "no such file: \xff";
  outcome.kill_explanation = "killed from outside";
  outcome.stderr_tail = {"Traceback", "", "Error: \xc3\xbc"};
  return outcome;
}

CpuSet cpus(const char* list) { return *CpuSet::parse_list(list); }

/// A node with one of everything.
NodeFacts facts() {
  NodeFacts facts = test::facts_of("node0", 64);
  Topology& node = facts.topology;
  node.source = "this machine";
  node.board = "EX235A";
  node.allowed = cpus("1-3");
  node.complete = cpus("0-3");
  node.cores = {{cpus("1"), 0, 0, -1}, {cpus("2-3"), 0, 0, 0}};
  node.packages = {{0, cpus("1-3"), cpus("0-3")}};
  node.numa_nodes = {{4, cpus("1-3"), cpus("0-3"), 1u << 30}, {5, {}, {}, 0}};
  node.l3s = {{0, cpus("2-3"), cpus("2-3")}};
  Gpu gpu;
  gpu.index = 1;
  gpu.vendor = GpuVendor::kAmd;
  gpu.bus_id = "0000:c1:00.0";
  gpu.uuid = "GPU-1";
  gpu.local_cpus = cpus("2-3");
  gpu.numa = 0;
  node.gpus = {gpu};
  node.nics = {{"hsn0", 31.5, "0000:c2:00.0", cpus("2-3"), -1, "0000:c0:00.0"}};
  node.warnings = {"guessed"};
  facts.topology_failure = "none";
  facts.visible_devices = {{"ROCR_VISIBLE_DEVICES", "2,3"}};
  return facts;
}

NodeLaunch node_launch() {
  NodeLaunch node;
  node.job_id = "ddlrun-1-2";
  node.size = 3;
  node.node_index = 1;
  node.node_names = {"a", "b"};
  node.node_ranks = {{0, 1}, {2}};
  node.command = {"./train", "", "a b", every_byte()};
  node.workdir = "/data/\xe9t\xe9";
  node.common_environment = {{"LATIN1", "\xe9\xff"}, {"EMPTY", ""}, {"UTF8", "\xc3\xa9"}};
  node.ranks = {{2, 0, true, {{"RANK", "2"}, {"BYTES", every_byte()}}, cpus("8-15,72-79"), {1, 3}},
                {4, 1, false, {}}};
  node.kill_grace_seconds = 0.25;
  node.strict_binding = true;
  node.reports_bindings = true;
  node.split_lines = false;
  node.flush_idle_lines = true;
  node.slurm_job = "7";
  node.head_host = "login1";
  node.head_pid = 4711;
  node.output_window = 65536;
  return node;
}

/// One of every message, no field at its default.
std::vector<Any> every_message() {
  return {
      Launch{node_launch()},
      Signal{SIGUSR1},
      End{SIGTERM, 1.5},
      StdinData{every_byte()},
      StdinEof{},
      message::OutputCredit{2, OutputStream::kStderr, 1'000'000},
      Finish{},
      Facts{facts()},
      RankStarted{2, 4711},
      RankEnded{outcome()},
      AbortRequested{1, -3, "out of cheese: \xff"},
      AgentFailed{"no PMIx server", true},
      StdinCredit{1'000'000'000'000},
      StdinClosed{},
      Finished{2},
      OutputChunk{7, OutputStream::kStderr, ChunkEnd::kOpen, 1'700'000'000'123'456'789, every_byte()},
      Spawn{
          {1, {"/bin/echo", every_byte()}, {"A=1", "B=\xff"}, "/tmp", {3, 4}, cpus("127"), {3}, true, true}},
      SignalChildren{SIGHUP},
      AskToEnd{SIGTERM},
      KillAll{},
      ReportGone{},
      ChildStarted{1, 99, {cpus("1"), "default", ""}, EPERM, EINVAL},
      ChildFailed{1, ChildFailed::Stage::kWorkdir, ENOENT},
      ChildEnded{1, 9, 0.125},
      Leftovers{5},
      AllGone{},
      message::Heartbeat{},
      Pausing{},
      RankStopped{3, SIGSTOP},
      ChildStopped{1, 0},
      PmixFence{{0, 2, 5}, every_byte()},
      PmixFenceDone{{}, every_byte()},
      PmixModex{1'000'000'000'000, 2, 5},
      PmixModexData{7, 1, -46, every_byte()},
      PmixPublish{8, {{"port", every_byte(), 3}, {"", "", 0}}, true},
      PmixLookup{9, {"port", "\xff"}, true, 60},
      PmixUnpublish{10, 3, {"port"}},
      PmixNames{11, PmixNames::Status::kTimedOut, {{"port", every_byte(), 3}}},
      PmixEvent{-25, 2, 3, every_byte()},
      JobKey{every_byte()},
      StartAgents{{{7, "node7", "ada", 2222}, {8, "n8", "", 0}},
                  32,
                  8,
                  30.5,
                  22,
                  "/k",
                  {"-v"},
                  {"sh", "%h"},
                  "/d",
                  "0a",
                  "abc"},
      Gathering{4711},
      Join{{"10.0.0.1", "10.0.0.2"}, 4711, "0a"},
      PmiBarrier{{{"P0-businesscard", "port#4711"}, {"a", ""}}},
      PmiBarrierDone{{{"P1-businesscard", every_byte()}}},
      Routed{7, 12, every_byte()},
      AgentDown{7, "its name was not found"},
      RankProgress{3, RankProgress::Step::kFirstCollective},
      RankBound{3, {cpus("0-3,64"), "prefer (many):0", "CUDA_VISIBLE_DEVICES=1"}, EPERM, ENOSYS},
      NodeShared{"login1", 4711}};
}

template <class Message>
std::uint16_t type_of() {
  return static_cast<std::uint16_t>(Any(Message{}).index());
}

std::string refusal(const Frame& frame) {
  const auto decoded = decode(frame);
  if (decoded) return "accepted";
  CHECK(decoded.error().code() == ddl::ErrorCode::kProtocol);
  return decoded.error().message();
}

std::string cbor(const Any& message) { return encode(message).payload; }

/// bytes with the one place that reads before replaced by after.
std::string altered(std::string bytes, std::string_view before, std::string_view after) {
  const std::size_t at = bytes.find(before);
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes.find(before, at + 1) == std::string::npos);
  return bytes.replace(at, before.size(), after);
}

}  // namespace

TEST_CASE("every message comes back as it was") {
  const auto messages = every_message();
  REQUIRE(messages.size() == std::variant_size_v<Any>);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CAPTURE(i);
    REQUIRE(messages[i].index() == i);  // each one is here
    const Frame frame = encode(messages[i]);
    CHECK(frame.type == i);
    const auto decoded = decode(frame);
    REQUIRE(decoded);
    CHECK(*decoded == messages[i]);
  }
}

TEST_CASE("messages at their defaults come back too") {
  for (const Any& message : {Any(Launch{}), Any(Facts{}), Any(RankEnded{}), Any(Spawn{}), Any(StdinData{}),
                             Any(OutputChunk{}), Any(ChildFailed{})}) {
    CAPTURE(message.index());
    const auto decoded = decode(encode(message));
    REQUIRE(decoded);
    CHECK(*decoded == message);
  }
}

TEST_CASE("a message that is cut anywhere is an error, unless the rest is raw bytes") {
  for (const Any& message : every_message()) {
    CAPTURE(message.index());
    Frame frame = encode(message);
    if (std::holds_alternative<StdinData>(message) || std::holds_alternative<JobKey>(message))
      continue;  // nothing but bytes
    const auto* chunk = std::get_if<OutputChunk>(&message);
    const std::size_t head = chunk ? frame.payload.size() - chunk->bytes.size() : frame.payload.size();
    while (frame.payload.size() > head) frame.payload.pop_back();
    CHECK(decode(frame).has_value());
    while (!frame.payload.empty()) {
      frame.payload.pop_back();
      REQUIRE(refusal(frame) != "accepted");
    }
  }
}

TEST_CASE("a message that any one byte of is changed in is decoded or refused, and nothing worse") {
  for (const Any& message : every_message()) {
    const Frame whole = encode(message);
    for (std::size_t at = 0; at < whole.payload.size(); ++at) {
      for (const int value : {0x00, 0x01, 0x7f, 0x80, 0x9f, 0xbf, 0xf6, 0xfb, 0xff}) {
        Frame frame = whole;
        frame.payload[at] = static_cast<char>(value);
        if (const auto decoded = decode(frame)) REQUIRE(decoded->index() == message.index());
      }
    }
  }
}

TEST_CASE("an unknown type is refused by its number") {
  CHECK(refusal({static_cast<std::uint16_t>(std::variant_size_v<Any>), "\xa0"}) ==
        "a message of unknown type 50");
  CHECK(refusal({0xffff, ""}) == "a message of unknown type 65535");
}

TEST_CASE("a missing field is refused by its name") {
  const std::string payload = altered(cbor(RankStarted{1, 2}), "rank", "tank");
  CHECK_THAT(refusal({type_of<RankStarted>(), payload}),
             Catch::Contains("malformed") && Catch::Contains("'rank'"));
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
  const std::string failed = cbor(ChildFailed{0, ChildFailed::Stage::kFork, 1});
  CHECK_THAT(refusal({type_of<ChildFailed>(), with("stage", failed, 6)}), Catch::Contains("enumeration"));
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
  CHECK(output("") == "an output message without a head");
  CHECK(output("\0"s) == "an output message without a head");
  CHECK(output("\x06\x84\x00\x01\x00\x00"s) == "an output message without a head");
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
    return refusal(encode(Facts{facts}));
  };
  CHECK(refusal_of([](Topology&) {}) == "accepted");
  CHECK(refusal_of([](Topology& node) { node = {}; }) == "accepted");  // it could not be read
  const std::string complaint = "contradicts itself";
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[0].numa = 2; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[0].package = -1; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[1].l3 = 1; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[1].cpus = {}; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores[1].cpus = cpus("0"); }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.gpus[0].numa = 7; }), Catch::Contains(complaint));
  CHECK_THAT(refusal_of([](Topology& node) { node.cores.resize(5000); }), Catch::Contains("too many cores"));
}

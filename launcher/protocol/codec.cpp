#include "launcher/protocol/codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "affinity/topology_json.h"
#include "launcher/protocol/member_messages.h"
#include "net/cbor_shape.h"

namespace ddl {

void to_json(nlohmann::json& j, const Seconds& seconds) { j = seconds.value; }
// Checked here and not by net::check_cbor_shape(), which cannot distinguish an integer number of seconds from a count that
// needs all of its 64 bits.
void from_json(const nlohmann::json& j, Seconds& seconds) {
  seconds = j.get<double>();
  if (!(std::fabs(seconds) <= kMaxSeconds)) {
    throw std::out_of_range(std::to_string(seconds) + " is not a length of time");
  }
}

// Enumerations are sent as their numbers. A number that this build does not know is an error.
template <class Enum>
void read_enum(const nlohmann::json& j, Enum& value, Enum first, Enum last) {
  const auto number = j.get<std::int64_t>();
  if (number < static_cast<std::int64_t>(first) || number > static_cast<std::int64_t>(last)) {
    throw std::out_of_range(std::to_string(number) + " is not a value of its enumeration");
  }
  value = static_cast<Enum>(number);
}
void from_json(const nlohmann::json& j, StartStage& stage) {
  read_enum(j, stage, StartStage::kFork, StartStage::kExec);
}

}  // namespace ddl

namespace ddl::launcher {

void from_json(const nlohmann::json& j, OutputStream& stream) {
  read_enum(j, stream, OutputStream::kStdout, OutputStream::kStderr);
}
void from_json(const nlohmann::json& j, ChunkEnd& end) { read_enum(j, end, ChunkEnd::kLine, ChunkEnd::kEof); }
void from_json(const nlohmann::json& j, RankOutcome::Kind& kind) {
  read_enum(j, kind, RankOutcome::Kind::kNotStarted, RankOutcome::Kind::kSignalled);
}

// The fields of every struct that travels. A field that is missing or of another type is an error when it is
// read.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SshSettings, port, identity_file, args, launch_agent, fan_out, remote_path,
                                   parallel, start_timeout_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShellAttributes, umask, soft_limits, ignores_interrupt)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeAddress, interface, address, family)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeFacts, version, hostname, kernel, architecture, slots, allowed_cpus,
                                   allowed_cores, master_address, held_ports, hostname_is_loopback, agent_pid,
                                   addresses, memory_bytes, memory_available_bytes, memlock_bytes, nofile,
                                   hard_limits, shm_free_bytes, tmp_directory, tmp_free_bytes, wall_time_ns,
                                   topology, topology_failure, visible_devices, libddl, horovod)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankLaunch, rank, local_rank, reads_stdin, cpus, memory_nodes, gpus,
                                   environment)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Requeue, scheduler, job, head_host, turn)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobLaunch, job_id, elastic_job_id, num_ranks, node_names, node_ranks,
                                   command, workdir, shell, environment, login_variables, kill_grace_seconds,
                                   strict_bind, report_bindings, split_lines, flush_idle_lines, scheduler_job,
                                   head_host, head_pid, serves_gloo, output_window, stall_warning_seconds,
                                   stall_shutdown_seconds, timeline_events, preemption_watch, requeue,
                                   measures_use)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeLaunch, node_index, incarnation, environment, ranks, server_ports)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessUsage, user_seconds, system_seconds, peak_resident_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MemoryUse, limit, peak, oom_kills, cgroup, unknown)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NetworkUse, device, received_bytes, sent_bytes, limit_bytes_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EnergyUse, domain, joules)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuUse, name, index, model, busy_ratio, last_busy_ratio, memory_bytes,
                                   memory_peak_bytes, memory_limit_bytes, joules)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeUsage, seconds, cpus, memory, networks, energy, energy_unknown, gpus,
                                   gpus_unknown)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CallSum, kind, is_named, calls, bytes, seconds, wait_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AwaitedRank, rank, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankCalls, sums, tensor_wait_seconds, steps, step_seconds, awaited)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankOutcome, kind, rank, incarnation, host, pid, exit_code, signal,
                                   core_dumped, ended_by_us, before_end, gone_rank, run_seconds, usage,
                                   clock_hertz, calls, start_error, kill_explanation, stderr_tail)

void from_json(const nlohmann::json& j, RankActivity::Phase& phase) {
  read_enum(j, phase, RankActivity::Phase::kNone, RankActivity::Phase::kLeft);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CallActivity, kind, number, is_inside, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SetActivity, generation, id, call, named_call, peer, has_joined, waits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorActivity, generation, name, digest, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelWait, system_call, channel)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessActivity, state, num_threads, cpu_seconds, resident_bytes,
                                   peak_resident_bytes, cpu_share, wait)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankActivity, rank, pid, phase, inits, is_stopped, seconds, sets, tensors,
                                   open_tensors, last_event, steps_per_second, process, calls)

void from_json(const nlohmann::json& j, CurrentWork::Kind& kind) {
  read_enum(j, kind, CurrentWork::Kind::kNone, CurrentWork::Kind::kFinalized);
}
void from_json(const nlohmann::json& j, InspectedRank::State& state) {
  read_enum(j, state, InspectedRank::State::kNotStarted, InspectedRank::State::kFormer);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CurrentWork, kind, call, number, set, peer, tensor, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StartPhase, name, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HeadTraffic, stdout_bytes, stderr_bytes, sent_bytes, received_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobDescription, id, name, command, head_host, head_pid, num_ranks, hosts,
                                   began, age, generation, start, head_cpu_seconds, head_resident_bytes,
                                   traffic, failures, scheduler_job)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AnswerTimes, received_ns, sent_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClockOffset, seconds, bound)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedNode, name, silence, usage, clock)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedWait, what, sentence, seconds, num_waiting, missing, num_missing,
                                   unknown, num_unknown)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(InspectedRank, rank, node, pid, state, process, work, open_tensors,
                                   oldest_tensor, oldest_tensor_seconds, wait, last_event, steps_per_second,
                                   cpus, gpus, calls)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelBinding, cpus, memory, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SeenGpu, bus_id, uuid)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChildSpec, rank, argv, environment, workdir, shell, cpus, memory_nodes,
                                   strict_bind, report_bindings, inherited_fds)

void from_json(const nlohmann::json& j, GlooMethod& method) {
  read_enum(j, method, GlooMethod::kGet, GlooMethod::kDelete);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GlooRequest, method, scope, key, body)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GlooAnswer, status, body)

namespace message {

void from_json(const nlohmann::json& j, PmixNames::Status& status) {
  read_enum(j, status, PmixNames::Status::kDone, PmixNames::Status::kTimedOut);
}

void from_json(const nlohmann::json& j, RankProgress::Step& step) {
  read_enum(j, step, RankProgress::Step::kInitialised, RankProgress::Step::kFirstCollective);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixPair, key, value, publisher)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmiPair, key, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RemoteNode, number, name, user, port)

// Messages without fields still travel as an (empty) CBOR map.
template <class Message>
  requires std::is_empty_v<Message>
void to_json(nlohmann::json& j, const Message&) {
  j = nlohmann::json::object();
}
template <class Message>
  requires std::is_empty_v<Message>
void from_json(const nlohmann::json&, Message&) {}

struct WireType {
  std::uint16_t number;
  std::string_view name;
};
template <class Message>
constexpr WireType kWireType = {};

// Every message: its number on the wire, its type, and its fields, unless it has none or travels as raw
// bytes.
#define DDL_MESSAGE(NUMBER, TYPE, ...)               \
  template <>                                        \
  constexpr WireType kWireType<TYPE>{NUMBER, #TYPE}; \
  __VA_OPT__(NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TYPE, __VA_ARGS__))

DDL_MESSAGE(0, Launch, node)
DDL_MESSAGE(1, Signal, signal)
DDL_MESSAGE(2, End, signal, grace_seconds)
DDL_MESSAGE(3, StdinData)
DDL_MESSAGE(4, StdinEof)
DDL_MESSAGE(5, OutputCredit, rank, stream, bytes)
DDL_MESSAGE(6, Finish)
DDL_MESSAGE(7, Facts, facts)
DDL_MESSAGE(8, RankStarted, rank, incarnation, pid)
DDL_MESSAGE(9, RankEnded, outcome)
DDL_MESSAGE(10, AbortRequested, rank, exit_code, text)
DDL_MESSAGE(11, AgentFailed, text, lost, end_signal)
DDL_MESSAGE(12, StdinCredit, bytes)
DDL_MESSAGE(13, StdinClosed)
DDL_MESSAGE(14, Finished, leftovers_ended, usage)
DDL_MESSAGE(15, OutputChunk)
DDL_MESSAGE(16, Spawn, child)
DDL_MESSAGE(17, SignalChildren, signal)
DDL_MESSAGE(18, AskToEnd, signal)
DDL_MESSAGE(19, KillAll)
DDL_MESSAGE(20, ReportGone)
DDL_MESSAGE(21, ChildStarted, rank, pid, binding, cpu_error, memory_error)
DDL_MESSAGE(22, ChildFailed, rank, stage, error)
DDL_MESSAGE(23, ChildEnded, rank, wait_status, run_seconds, usage)
DDL_MESSAGE(24, Leftovers, count)
DDL_MESSAGE(25, AllGone)
DDL_MESSAGE(26, Heartbeat)
DDL_MESSAGE(27, Pausing)
DDL_MESSAGE(28, RankStopped, rank, signal)
DDL_MESSAGE(29, ChildStopped, rank, signal)
DDL_MESSAGE(30, PmixFence, ranks, data)
DDL_MESSAGE(31, PmixFenceDone, ranks, data)
DDL_MESSAGE(32, PmixModex, id, node, rank)
DDL_MESSAGE(33, PmixModexData, id, node, status, data)
DDL_MESSAGE(34, PmixPublish, id, pairs, first_read_only)
DDL_MESSAGE(35, PmixLookup, id, keys, wait, timeout_seconds)
DDL_MESSAGE(36, PmixUnpublish, id, publisher, keys)
DDL_MESSAGE(37, PmixNames, id, status, found)
DDL_MESSAGE(38, PmixEvent, status, source, range, infos)
DDL_MESSAGE(39, JobKey)
DDL_MESSAGE(40, StartAgents, nodes, ssh, key, nonce)
DDL_MESSAGE(41, RendezvousReady, port)
DDL_MESSAGE(42, Join, addresses, port, key)
DDL_MESSAGE(43, PmiBarrier, pairs)
DDL_MESSAGE(44, PmiBarrierDone, pairs)
DDL_MESSAGE(45, Routed, node, type, payload)
DDL_MESSAGE(46, AgentDown, node, why)
DDL_MESSAGE(47, RankProgress, rank, step)
DDL_MESSAGE(48, RankBound, rank, binding, cpu_error, memory_error)
DDL_MESSAGE(49, NodeShared, host, pid)
DDL_MESSAGE(50, AskActivity, id, pause_seconds, max_tensors, counts)
DDL_MESSAGE(51, Stalled, seconds)
DDL_MESSAGE(52, Activity, id, ranks, usage, times)
DDL_MESSAGE(53, DescribeJob, version)
DDL_MESSAGE(54, InspectJob, version, counts)
DDL_MESSAGE(55, Refused, why, is_timeout)
DDL_MESSAGE(56, JobDescribed, job)
DDL_MESSAGE(57, JobOverview, job, nodes, waits)
DDL_MESSAGE(58, InspectedRanks, ranks)
DDL_MESSAGE(59, InspectionEnd)
DDL_MESSAGE(60, ForwardedRequest, client, type, payload)
DDL_MESSAGE(61, ForwardedAnswer, client, type, payload)
DDL_MESSAGE(62, AskEvents, id, rank, latest, from, of_timeline)
DDL_MESSAGE(63, RecordTimeline, events)
DDL_MESSAGE(65, ChangeTimeline, version, starts, path)
DDL_MESSAGE(66, TimelineChanged, path)
DDL_MESSAGE(64, Events, id, rank, from, total, count, earliest, now, joining_since, steps, clock_peer,
            samples, events)
DDL_MESSAGE(67, VisibleGpus, rank, is_known, gpus, failure)
DDL_MESSAGE(68, HoldPorts, count)
DDL_MESSAGE(69, PortsHeld, ports)
DDL_MESSAGE(70, AskGlooStore, id, request)
DDL_MESSAGE(71, GlooStoreAnswered, id, answer)
DDL_MESSAGE(72, PortTaken, how)
DDL_MESSAGE(73, HostLost, host, rank, pid, text)
DDL_MESSAGE(74, LaunchJob, job)
DDL_MESSAGE(75, SpawnRefused, rank)
DDL_MESSAGE(76, MpiLoaded, rank, path, bytes)
DDL_MESSAGE(77, NamesUnanswered, address)
DDL_MESSAGE(78, SignalChild, rank, signal)
DDL_MESSAGE(79, ElasticJoin, rank, reason, commits)
DDL_MESSAGE(80, ElasticFinished, rank)
DDL_MESSAGE(81, ElasticPlan, generation, size, members, ranks, hosts)
DDL_MESSAGE(82, ElasticChange, change)
DDL_MESSAGE(83, KillRank, rank)
DDL_MESSAGE(84, LaunchEnded, reason, exit_code, first_failure, message, hint, signal, is_host_lost)
DDL_MESSAGE(85, HostLeaving, message, signal)
DDL_MESSAGE(86, Preemption, failure)

#undef DDL_MESSAGE

namespace {

using nlohmann::json;

template <class Direction>
constexpr std::string_view kRoute = {};
template <>
constexpr std::string_view kRoute<HeadToAgent> = "from head to agent";
template <>
constexpr std::string_view kRoute<AgentToHead> = "from agent to head";
template <>
constexpr std::string_view kRoute<FleetReport> = kRoute<AgentToHead>;
template <>
constexpr std::string_view kRoute<NodeReport> = kRoute<AgentToHead>;
template <>
constexpr std::string_view kRoute<AgentToSpawner> = "from agent to spawner";
template <>
constexpr std::string_view kRoute<SpawnerToAgent> = "from spawner to agent";
template <>
constexpr std::string_view kRoute<HeadToJoiningAgent> = "from head to joining agent";
template <>
constexpr std::string_view kRoute<ClientToJob> = "from client to job";
template <>
constexpr std::string_view kRoute<JobToClient> = "from job to client";
template <>
constexpr std::string_view kRoute<MemberReport> = "from launch to job";
template <>
constexpr std::string_view kRoute<MemberOrder> = "from job to launch";

template <class... Messages>
constexpr auto types_of(std::type_identity<std::variant<Messages...>>) {
  return std::array{kWireType<Messages>...};
}
template <class Direction>
constexpr auto kTypes = types_of(std::type_identity<Direction>());

template <std::size_t... kSizes>
constexpr auto joined(const std::array<WireType, kSizes>&... parts) {
  std::array<WireType, (kSizes + ...)> all{};
  auto* end = all.data();
  ((end = std::copy(parts.begin(), parts.end(), end)), ...);
  return all;
}
/// A type that belongs to several directions occurs several times.
constexpr auto kAllTypes = joined(kTypes<HeadToAgent>, kTypes<AgentToHead>, kTypes<AgentToSpawner>,
                                  kTypes<SpawnerToAgent>, kTypes<HeadToJoiningAgent>, kTypes<ClientToJob>,
                                  kTypes<JobToClient>, kTypes<MemberReport>, kTypes<MemberOrder>);

/// "" if none of the types has the number.
constexpr std::string_view name_among(std::span<const WireType> types, std::uint16_t number) {
  const auto found = std::find_if(types.begin(), types.end(),
                                  [number](const WireType& type) { return type.number == number; });
  return found == types.end() ? std::string_view() : found->name;
}
constexpr bool all_are_in(std::span<const WireType> some, std::span<const WireType> others) {
  return std::all_of(some.begin(), some.end(),
                     [others](const WireType& type) { return !name_among(others, type.number).empty(); });
}
static_assert(std::all_of(kAllTypes.begin(), kAllTypes.end(),
                          [](const WireType& type) {
                            return !type.name.empty() && name_among(kAllTypes, type.number) == type.name;
                          }),
              "a message without DDL_MESSAGE, or two with the same number");
constexpr auto kReadTypes = joined(kTypes<FleetReport>, kTypes<NodeReport>);
static_assert(all_are_in(kTypes<AgentToHead>, kReadTypes) && all_are_in(kReadTypes, kTypes<AgentToHead>),
              "what an agent sends is what its starter and the head read");

template <class Message>
constexpr bool kIsRaw = std::is_same_v<Message, StdinData> || std::is_same_v<Message, JobKey>;

// Head of an output frame: CBOR array [rank, stream, end, time_ns], self-delimiting; the bytes follow.
std::string encode_output(const OutputChunk& chunk) {
  std::string payload;
  json::to_cbor(
      json::array({chunk.rank, static_cast<int>(chunk.stream), static_cast<int>(chunk.end), chunk.time_ns}),
      nlohmann::detail::output_adapter<char>(payload));
  const auto length = static_cast<char>(payload.size());
  payload.insert(payload.begin(), length);
  payload += chunk.bytes;
  return payload;
}

json parse(std::string_view cbor) {
  // The library's reader recurses as deeply as the bytes say.
  if (const auto shape = net::check_cbor_shape(cbor, net::CborNumbers::kSeconds); !shape)
    throw std::invalid_argument(shape.error().message());
  return json::from_cbor(cbor);
}

OutputChunk decode_output(const std::string& payload) {
  const std::size_t head = payload.empty() ? 0 : static_cast<unsigned char>(payload[0]);
  if (head == 0 || 1 + head > payload.size()) throw std::invalid_argument("it has no head");
  const json fields = parse(std::string_view(payload).substr(1, head));
  OutputChunk chunk;
  fields.at(0).get_to(chunk.rank);
  fields.at(1).get_to(chunk.stream);
  fields.at(2).get_to(chunk.end);
  fields.at(3).get_to(chunk.time_ns);
  chunk.bytes = payload.substr(1 + head);
  return chunk;
}

template <class Message>
Message decode_payload(const std::string& payload) {
  if constexpr (std::is_same_v<Message, OutputChunk>) {
    return decode_output(payload);
  } else if constexpr (kIsRaw<Message>) {
    return Message{payload};
  } else {
    return parse(payload).get<Message>();
  }
}

template <class... Messages>
std::optional<std::variant<Messages...>> decode_alternative(const net::Frame& frame,
                                                            std::type_identity<std::variant<Messages...>>) {
  std::optional<std::variant<Messages...>> found;
  (void)((frame.type == kWireType<Messages>.number &&
          (found = decode_payload<Messages>(frame.payload), true)) ||
         ...);
  return found;
}

}  // namespace

template <class Direction>
bool is_in(const net::Frame& frame) {
  return !name_among(kTypes<Direction>, frame.type).empty();
}

template <class Direction>
net::Frame encode(const Direction& message) {
  return std::visit(
      [](const auto& m) {
        using Message = std::decay_t<decltype(m)>;
        net::Frame frame;
        frame.type = kWireType<Message>.number;
        if constexpr (std::is_same_v<Message, OutputChunk>) {
          frame.payload = encode_output(m);
        } else if constexpr (kIsRaw<Message>) {
          frame.payload = m.bytes;
        } else {
          json::to_cbor(json(m), nlohmann::detail::output_adapter<char>(frame.payload));
          frame.payload.shrink_to_fit();  // a head of thousands of nodes has thousands of these
        }
        return frame;
      },
      message);
}

template <class Direction>
Result<Direction> decode(const net::Frame& frame) {
  const std::string route(kRoute<Direction>);
  const std::string name(name_among(kAllTypes, frame.type));
  if (name.empty()) {
    return fail(ErrorCode::kProtocol,
                "a message of unknown type " + std::to_string(frame.type) + " " + route);
  }
  try {
    if (auto message = decode_alternative(frame, std::type_identity<Direction>())) return *std::move(message);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kProtocol, "a malformed " + name + " message " + route + ": " + error.what());
  }
  return fail(ErrorCode::kProtocol, "a message of type " + name + ", which does not go " + route);
}

#define DDL_DIRECTION(DIRECTION)                        \
  template net::Frame encode(const DIRECTION& message); \
  template Result<DIRECTION> decode(const net::Frame&); \
  template bool is_in<DIRECTION>(const net::Frame&);

template bool is_in<ForAllAgents>(const net::Frame&);
DDL_DIRECTION(HeadToAgent)
DDL_DIRECTION(AgentToHead)
DDL_DIRECTION(FleetReport)
DDL_DIRECTION(NodeReport)
DDL_DIRECTION(AgentToSpawner)
DDL_DIRECTION(SpawnerToAgent)
DDL_DIRECTION(HeadToJoiningAgent)
DDL_DIRECTION(ClientToJob)
DDL_DIRECTION(JobToClient)
DDL_DIRECTION(MemberReport)
DDL_DIRECTION(MemberOrder)

#undef DDL_DIRECTION

}  // namespace message
}  // namespace ddl::launcher

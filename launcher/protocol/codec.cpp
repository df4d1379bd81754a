#include "launcher/protocol/codec.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "affinity/topology_json.h"

namespace ddl::launcher::message {
namespace {

// RFC 8949, section 3: the upper three bits of an item's first byte.
enum Major { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kOther };

tl::unexpected<Error> refuse(const char* what) { return fail(ErrorCode::kProtocol, what); }

bool is_acceptable(double number) { return std::isfinite(number) && std::fabs(number) <= kMaxCborNumber; }

}  // namespace

Status check_cbor_shape(std::string_view bytes) {
  std::array<std::uint64_t, kMaxCborDepth + 1> missing{1};  // items that are still to come, at every level
  std::size_t level = 0;
  for (;;) {
    while (missing[level] == 0) {
      if (level == 0) return bytes.empty() ? Status() : refuse("there is more behind its end");
      --level;
    }
    --missing[level];

    if (bytes.empty()) return refuse("it is cut short");
    const auto first = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    const unsigned info = first & 0x1f;
    if (info > 27) return refuse("an item of indefinite length");
    // The argument: in the first byte itself, or in the 1, 2, 4 or 8 bytes behind it.
    std::uint64_t argument = info;
    if (info >= 24) {
      const std::size_t width = std::size_t{1} << (info - 24);
      if (bytes.size() < width) return refuse("it is cut short");
      argument = 0;
      for (const char byte : bytes.substr(0, width))
        argument = argument << 8 | static_cast<unsigned char>(byte);
      bytes.remove_prefix(width);
    }

    switch (static_cast<Major>(first >> 5)) {
      case kUnsigned:
      case kNegative: break;
      case kBytes:
      case kText:
        if (argument > bytes.size()) return refuse("it is cut short");
        bytes.remove_prefix(argument);
        break;
      case kArray:
      case kMap:
        if (argument > bytes.size()) return refuse("it is cut short");  // every item has a byte at least
        if (level == kMaxCborDepth) return refuse("it is nested too deeply");
        missing[++level] = (first >> 5) == kMap ? 2 * argument : argument;
        break;
      case kTag: return refuse("it has a tag");
      case kOther:
        if (info == 25 && (argument & 0x7c00) == 0x7c00)
          return refuse("a number that is none");  // half: fits otherwise
        if ((info == 26 && !is_acceptable(std::bit_cast<float>(static_cast<std::uint32_t>(argument)))) ||
            (info == 27 && !is_acceptable(std::bit_cast<double>(argument)))) {
          return refuse("a number that is none, or too large");
        }
        break;
    }
  }
}

}  // namespace ddl::launcher::message

namespace ddl {

void to_json(nlohmann::json& j, const Seconds& seconds) { j = seconds.value; }
// Checked here and not among the bytes: there an integer may be seconds, or a count that needs all of its 64 bits.
void from_json(const nlohmann::json& j, Seconds& seconds) {
  seconds = j.get<double>();
  if (!(std::fabs(seconds) <= kMaxSeconds)) {
    throw std::out_of_range(std::to_string(seconds) + " is no length of time");
  }
}

}  // namespace ddl

namespace ddl::launcher {

// Enumerations travel as their numbers. One that this build does not know must not get in.
template <class Enum>
void read_enum(const nlohmann::json& j, Enum& value, Enum first, Enum last) {
  const auto number = j.get<std::int64_t>();
  if (number < static_cast<std::int64_t>(first) || number > static_cast<std::int64_t>(last)) {
    throw std::out_of_range(std::to_string(number) + " is not a value of its enumeration");
  }
  value = static_cast<Enum>(number);
}
void from_json(const nlohmann::json& j, OutputStream& stream) {
  read_enum(j, stream, OutputStream::kStdout, OutputStream::kStderr);
}
void from_json(const nlohmann::json& j, ChunkEnd& end) { read_enum(j, end, ChunkEnd::kLine, ChunkEnd::kEof); }
void from_json(const nlohmann::json& j, RankOutcome::Kind& kind) {
  read_enum(j, kind, RankOutcome::Kind::kNotStarted, RankOutcome::Kind::kSignalled);
}

// The fields of every struct that travels. A field that is missing or of another type is an error when it is read.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeAddress, interface, address, family)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeFacts, version, hostname, kernel, architecture, slots, allowed_cpus,
                                   allowed_cores, master_address, free_port, agent_pid, addresses,
                                   memory_bytes, memory_available_bytes, memlock_bytes, nofile,
                                   shm_free_bytes, tmp_directory, tmp_free_bytes, wall_time_ns, topology,
                                   topology_failure, visible_devices, libddl)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankLaunch, rank, local_rank, reads_stdin, cpus, memory_nodes, environment)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeLaunch, job_id, size, node_index, node_names, node_ranks, command,
                                   workdir, common_environment, login_variables, ranks, kill_grace_seconds,
                                   strict_binding, reports_bindings, split_lines, flush_idle_lines, slurm_job,
                                   head_host, head_pid, output_window)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankOutcome, kind, rank, host, pid, exit_code, signal, core_dumped,
                                   ended_by_us, before_end, gone_rank, run_seconds, start_error,
                                   kill_explanation, stderr_tail)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelBinding, cpus, memory, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChildSpec, rank, argv, environment, workdir, cpus, memory_nodes,
                                   strict_binding, reports_binding, inherited_fds)

namespace message {

void from_json(const nlohmann::json& j, ChildFailed::Stage& stage) {
  read_enum(j, stage, ChildFailed::Stage::kFork, ChildFailed::Stage::kExec);
}

void from_json(const nlohmann::json& j, PmixNames::Status& status) {
  read_enum(j, status, PmixNames::Status::kDone, PmixNames::Status::kTimedOut);
}

void from_json(const nlohmann::json& j, RankProgress::Step& step) {
  read_enum(j, step, RankProgress::Step::kInitialised, RankProgress::Step::kFirstCollective);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Spawn, child)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SignalChildren, signal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AskToEnd, signal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChildStarted, rank, pid, binding, cpu_error, memory_error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChildFailed, rank, stage, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChildEnded, rank, wait_status, run_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Leftovers, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Launch, node)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Signal, signal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(End, signal, grace_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutputCredit, rank, stream, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Facts, facts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankStarted, rank, pid)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankBound, rank, binding, cpu_error, memory_error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeShared, host, pid)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankEnded, outcome)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AbortRequested, rank, exit_code, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AgentFailed, text, lost, told_to_end)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StdinCredit, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finished, leftovers_ended)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankStopped, rank, signal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChildStopped, rank, signal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixPair, key, value, publisher)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixFence, ranks, data)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixFenceDone, ranks, data)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmiPair, key, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmiBarrier, pairs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmiBarrierDone, pairs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixModex, id, node, rank)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixModexData, id, node, status, data)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixPublish, id, pairs, first_read_only)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixLookup, id, keys, wait, timeout_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixUnpublish, id, publisher, keys)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixNames, id, status, found)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PmixEvent, status, source, range, infos)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankProgress, rank, step)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RemoteNode, number, name, user, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Gathering, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Join, addresses, port, key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StartAgents, nodes, key, nonce, parallel, fan_out, start_timeout_seconds,
                                   ssh_port, identity_file, ssh_args, launch_agent, remote_path)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Routed, node, type, payload)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AgentDown, node, why)

// Messages without fields still travel as an (empty) CBOR map.
template <class Message>
  requires std::is_empty_v<Message>
void to_json(nlohmann::json& j, const Message&) {
  j = nlohmann::json::object();
}
template <class Message>
  requires std::is_empty_v<Message>
void from_json(const nlohmann::json&, Message&) {}

namespace {

using nlohmann::json;

// A frame's type is the message's index in Any: both sides are the same version, which Facts has checked.
template <class Message, std::size_t index = 0>
constexpr std::uint16_t type_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<index, Any>, Message>) {
    return index;
  } else {
    return type_of<Message, index + 1>();
  }
}

// Head of an output frame: CBOR array [rank, stream, end, time_ns], self-delimiting; the bytes follow.
std::string encode_raw(const OutputChunk& chunk) {
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
  if (const auto shape = check_cbor_shape(cbor); !shape) throw std::invalid_argument(shape.error().message());
  return json::from_cbor(cbor);
}

Result<Any> decode_raw_output(const std::string& payload) {
  const std::size_t head = payload.empty() ? 0 : static_cast<unsigned char>(payload[0]);
  if (head == 0 || 1 + head > payload.size())
    return fail(ErrorCode::kProtocol, "an output message without a head");
  const json fields = parse(std::string_view(payload).substr(1, head));
  OutputChunk chunk;
  fields.at(0).get_to(chunk.rank);
  fields.at(1).get_to(chunk.stream);
  fields.at(2).get_to(chunk.end);
  fields.at(3).get_to(chunk.time_ns);
  chunk.bytes = payload.substr(1 + head);
  return Any(std::move(chunk));
}

template <std::size_t index = 0>
Result<Any> decode_as(const net::Frame& frame) {
  if constexpr (index == std::variant_size_v<Any>) {
    return fail(ErrorCode::kProtocol, "a message of unknown type " + std::to_string(frame.type));
  } else {
    if (frame.type != index) return decode_as<index + 1>(frame);
    using Message = std::variant_alternative_t<index, Any>;
    if constexpr (std::is_same_v<Message, OutputChunk>) {
      return decode_raw_output(frame.payload);
    } else if constexpr (std::is_same_v<Message, StdinData> || std::is_same_v<Message, JobKey>) {
      return Any(Message{frame.payload});
    } else {
      return Any(parse(frame.payload).get<Message>());
    }
  }
}

}  // namespace

net::Frame encode(const Any& message) {
  return std::visit(
      [](const auto& m) {
        using Message = std::decay_t<decltype(m)>;
        net::Frame frame;
        frame.type = type_of<Message>();
        if constexpr (std::is_same_v<Message, OutputChunk>) {
          frame.payload = encode_raw(m);
        } else if constexpr (std::is_same_v<Message, StdinData> || std::is_same_v<Message, JobKey>) {
          frame.payload = m.bytes;
        } else {
          json::to_cbor(json(m), nlohmann::detail::output_adapter<char>(frame.payload));
        }
        return frame;
      },
      message);
}

Result<Any> decode(const net::Frame& frame) {
  try {
    return decode_as<>(frame);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kProtocol,
                "a malformed message of type " + std::to_string(frame.type) + ": " + error.what());
  }
}

}  // namespace message
}  // namespace ddl::launcher

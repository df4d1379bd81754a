#include "runtime/src/common/settings.h"

#include <bit>
#include <limits>

#include "base/text.h"
#include "contract/environment.h"
#include "contract/event_ring.h"
#include "runtime/src/common/member.h"

namespace ddl::runtime {
namespace {

namespace env = contract::env;

constexpr std::size_t kCacheLine = 64;
constexpr std::int64_t kMaxStagingBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMaxSpinMicroseconds = 10'000'000;

tl::unexpected<Error> bad_value(const char* name, const std::string& value, const std::string& wanted) {
  return fail(ErrorCode::kInvalidArgument, std::string(name) + "=" + value + ": " + wanted);
}

/// nullopt if one of the variables is missing or invalid: then hinted_world() judges the others.
std::optional<PmiParameters> pmi_parameters(const Environment& environment) {
  const auto number = [&environment](const char* name) -> std::optional<int> {
    const auto value = parse_integer(value_of(environment, name));
    if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
    return static_cast<int>(*value);
  };
  const auto fd = number(env::kPmiFd), rank = number(env::kPmiRank), size = number(env::kPmiSize);
  if (!fd || !rank || !size || *rank >= *size) return std::nullopt;
  return PmiParameters{*fd, *rank, *size};
}

/// A launcher of another version may use another format: then there is no record.
std::optional<RankRecordLocation> rank_record_location(const Environment& environment) {
  const std::string text = value_of(environment, env::kRankRecord);
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() != 4) return std::nullopt;
  const auto fd = parse_integer(parts[0]), offset = parse_integer(parts[1]), bytes = parse_integer(parts[2]),
             bell = parse_integer(parts[3]);
  const auto is_fd = [](const auto& number) {
    return number && *number >= 0 && *number <= std::numeric_limits<int>::max();
  };
  if (!is_fd(fd) || !is_fd(bell) || !offset || !bytes || *offset < 0 || *bytes < 0) return std::nullopt;
  return RankRecordLocation{static_cast<int>(*fd), *offset, *bytes, static_cast<int>(*bell)};
}

}  // namespace

Result<Settings> Settings::read(const Environment& environment) {
  Settings settings;
  if (const std::string text = value_of(environment, env::kTimeoutSeconds); !text.empty()) {
    const auto seconds = parse_number(text);
    if (!seconds || *seconds < 0)
      return bad_value(env::kTimeoutSeconds, text, "expected seconds, 0 for no deadline");
    settings.timeout_seconds = *seconds;
  }
  if (const std::string text = value_of(environment, env::kStartTimeoutSeconds); !text.empty()) {
    const auto seconds = parse_number(text);
    if (!seconds || *seconds < 0)
      return bad_value(env::kStartTimeoutSeconds, text, "expected seconds, 0 for no deadline");
    settings.start_timeout_seconds = *seconds;
  }
  if (const std::string text = value_of(environment, env::kSpinMicroseconds); !text.empty()) {
    const auto microseconds = parse_integer(text);
    if (!microseconds || *microseconds < 0 || *microseconds > kMaxSpinMicroseconds) {
      return bad_value(env::kSpinMicroseconds, text, "expected microseconds from 0 to 10000000");
    }
    settings.spin = std::chrono::microseconds(*microseconds);
  }
  if (const std::string text = value_of(environment, env::kStagingBytes); !text.empty()) {
    const auto bytes = parse_integer(text);
    if (!bytes || *bytes < std::int64_t{kCacheLine} || *bytes > kMaxStagingBytes ||
        *bytes % kCacheLine != 0) {
      return bad_value(env::kStagingBytes, text, "expected a multiple of 64 from 64 to 67108864");
    }
    settings.staging_bytes = static_cast<std::size_t>(*bytes);
  }
  if (const std::string text = value_of(environment, env::kAlgorithm); !text.empty()) {
    auto algorithms = AlgorithmOverrides::parse(text);
    if (!algorithms) return bad_value(env::kAlgorithm, text, algorithms.error().message());
    settings.algorithms = *algorithms;
  }
  if (const std::string text = value_of(environment, env::kCpuOperations); !text.empty()) {
    const auto operations = contract::parse_cpu_operations(text);
    if (!operations) return bad_value(env::kCpuOperations, text, "expected ddl or mpi");
    settings.cpu_operations = *operations;
  }
  if (const std::string text = value_of(environment, env::kMpi); !text.empty()) {
    if (text.find('/') != std::string::npos || text.front() == '.')
      return bad_value(env::kMpi, text, "expected the name of an MPI, such as openmpi or mpich");
    settings.mpi = text;
  }
  if (const std::string text = value_of(environment, env::kMpiFinalize); !text.empty()) {
    if (text != "0" && text != "1") return bad_value(env::kMpiFinalize, text, "expected 0 or 1");
    settings.finalizes_mpi = text == "1";
  }
  if (const std::string text = value_of(environment, env::kExchange); !text.empty()) {
    const auto exchange = ExchangeConfig::parse(text);
    if (!exchange) {
      return bad_value(env::kExchange, text,
                       "expected flat, groups, or how many ranks make a group, from 2 to 1024");
    }
    settings.exchange = *exchange;
  }
  if (const std::string text = value_of(environment, env::kStores); !text.empty() && text != "auto") {
    if (text != "plain" && text != "streaming")
      return bad_value(env::kStores, text, "expected auto, plain or streaming");
    settings.stores = text == "plain" ? Stores::kPlain : Stores::kStreaming;
  }
  // Horovod's is not even looked at where ours is set.
  for (const char* const name : {env::kFusionBytes, env::kHorovodFusionThreshold}) {
    const std::string text = value_of(environment, name);
    if (text.empty()) continue;
    const auto bytes = parse_integer(text);
    if (!bytes || *bytes < 0) return bad_value(name, text, "expected a number of bytes, 0 or above");
    settings.fusion_bytes = static_cast<std::uint64_t>(*bytes);
    break;
  }
  if (const std::string text = value_of(environment, env::kGpuOperations); !text.empty()) {
    const auto operations = contract::parse_gpu_operations(text);
    if (!operations) return bad_value(env::kGpuOperations, text, "expected auto, nccl or staged");
    settings.gpu_operations = *operations;
  } else {
    // Horovod's names a library; all but NCCL go by way of the host.
    const std::string horovods = value_of(environment, env::kHorovodGpuOperations);
    if (horovods == "NCCL") settings.gpu_operations = contract::GpuOperations::kNccl;
    if (horovods == "MPI") settings.gpu_operations = contract::GpuOperations::kStaged;
  }
  for (const auto& [name, setting] :
       {std::pair{env::kCheck, &settings.agrees_first}, {env::kDeterministic, &settings.is_deterministic}}) {
    const std::string text = value_of(environment, name);
    if (!text.empty() && text != "0" && text != "1") return bad_value(name, text, "expected 0 or 1");
    *setting = text == "1";
  }
  if (const std::string text = value_of(environment, env::kGpuPieceBytes); !text.empty()) {
    const auto bytes = parse_integer(text);
    if (!bytes || *bytes < 4096 || *bytes > 64 << 20 ||
        !std::has_single_bit(static_cast<std::uint64_t>(*bytes)))
      return bad_value(env::kGpuPieceBytes, text, "expected a power of two, from 4096 to 67108864");
    settings.gpu_piece_bytes = static_cast<std::size_t>(*bytes);
  }
  for (const char* const name : {env::kTimeline, env::kHorovodTimeline}) {
    settings.timeline_file = value_of(environment, name);
    if (!settings.timeline_file.empty()) break;
  }
  // In Horovod that is no file: the program begins a timeline later.
  if (settings.timeline_file == "DYNAMIC") settings.timeline_file.clear();
  if (const std::string text = value_of(environment, env::kTimelineMaxMb); !text.empty()) {
    const auto megabytes = parse_integer(text);
    if (!megabytes || *megabytes < 1 || *megabytes > contract::kMaxTimelineMegabytes)
      return bad_value(env::kTimelineMaxMb, text, "expected megabytes from 1 to 16384");
    settings.timeline_bytes = static_cast<std::uint64_t>(*megabytes) << 20;
  }
  if (const std::string text = value_of(environment, env::kAllowSingleton); !text.empty()) {
    if (text != "0" && text != "1") return bad_value(env::kAllowSingleton, text, "expected 0 or 1");
    settings.allow_singleton = text == "1";
  }
  if (const std::string text = value_of(environment, env::kNetworkInterfaces); !text.empty()) {
    for (const std::string_view name : split(text, ',')) {
      if (trim(name).empty()) {
        return bad_value(env::kNetworkInterfaces, text, "expected names of interfaces, separated by commas");
      }
      settings.network_interfaces.emplace_back(trim(name));
    }
  }
  if (const std::string text = value_of(environment, env::kSocketsPerPeer); !text.empty()) {
    const auto sockets = parse_integer(text);
    if (!sockets || *sockets < 1 || *sockets > kMaxSocketsPerPeer)
      return bad_value(env::kSocketsPerPeer, text, "expected a number from 1 to 8");
    settings.sockets_per_peer = static_cast<int>(*sockets);
  }
  if (const std::string text = value_of(environment, env::kJobKeyFd); !text.empty()) {
    const auto fd = parse_integer(text);
    if (!fd || *fd < 0 || *fd > std::numeric_limits<int>::max())
      return bad_value(env::kJobKeyFd, text, "expected the number of a descriptor");
    settings.job_key_fd = static_cast<int>(*fd);
  }
  if (const std::string text = value_of(environment, env::kVerbose); !text.empty()) {
    if (text != "0" && text != "1") return bad_value(env::kVerbose, text, "expected 0 or 1");
    settings.verbose = text == "1";
  }
  settings.rank_record = rank_record_location(environment);
  settings.report_start = value_of(environment, env::kReportStart) == "1";
  settings.module_directory = value_of(environment, env::kModuleDirectory);
  if constexpr (kFaultInjection) {
    if (const std::string text = value_of(environment, env::kFault); !text.empty()) {
      settings.fault = FaultPlan::parse(text);
      if (!settings.fault)
        return bad_value(env::kFault, text, "expected point:rank:n, such as allreduce.after_publish:2:1");
    }
    if (const std::string text = value_of(environment, env::kClockSkew); !text.empty()) {
      const std::size_t colon = text.find(':');
      const auto seconds = parse_number(std::string_view(text).substr(0, colon));
      const auto ppm =
          colon == std::string::npos ? std::nullopt : parse_number(std::string_view(text).substr(colon + 1));
      if (!seconds || !ppm) return bad_value(env::kClockSkew, text, "expected SECONDS:PPM");
      settings.clock_skew = {*seconds, *ppm};
    }
  }
  settings.pmix_promised = environment.contains(env::kPmixNamespace) && environment.contains(env::kPmixRank);
  settings.has_no_home = lacks_home(environment);
  settings.pmi = pmi_parameters(environment);
  settings.pmi_is_hydras = settings.pmi && environment.contains("MPI_LOCALNRANKS");
  settings.several_started = hinted_world(environment);
  return settings;
}

std::optional<ExchangeConfig> ExchangeConfig::parse(std::string_view text) {
  if (text == "flat") return ExchangeConfig{Way::kFlat, 0};
  if (text == "groups") return ExchangeConfig{Way::kGroups, 0};
  const auto width = parse_integer(text);
  if (!width || *width < 2 || *width > kMaxMembers) return std::nullopt;
  return ExchangeConfig{Way::kGroups, static_cast<int>(*width)};
}

namespace {

/// A variable that holds the number of processes of the job.
struct SizeVariable {
  const char* name;
  const char* remedy;
};

constexpr char kUnderDdlrun[] = "start the program with ddlrun";
constexpr char kUnderSlurm[] = "start the program with ddlrun, or with srun --mpi=pmix or --mpi=pmi2";
constexpr char kUnderPmi[] =
    "libddl finds its peers through PMIx or PMI-1: start the program with ddlrun, or with a launcher that "
    "serves one of these";
constexpr char kUnderMpirun[] =
    "start the program with ddlrun, or with an mpirun whose libpmix this process can reach";

constexpr SizeVariable kSizeVariables[] = {
    {env::kSize, kUnderDdlrun},        {"OMPI_COMM_WORLD_SIZE", kUnderMpirun},
    {"PMI_SIZE", kUnderPmi},           {"MV2_COMM_WORLD_SIZE", kUnderPmi},
    {"PALS_LOCAL_SIZE", kUnderPmi},    {"FLUX_JOB_SIZE", kUnderPmi},
    {"JSM_NAMESPACE_SIZE", kUnderPmi}, {"SLURM_STEP_NUM_TASKS", kUnderSlurm},
    {"SLURM_NTASKS", kUnderSlurm},     {env::kTorchWorldSize, kUnderDdlrun},
};

/// A variable that only a launcher sets, and that holds a rank: a rank above 0 means that there are others.
constexpr SizeVariable kRankVariables[] = {
    {"PALS_RANKID", kUnderPmi},
    {"PMI_RANK", kUnderPmi},
};

}  // namespace

std::string WorldHint::sentence() const {
  return variable + "=" + value + " says that this process is one of several, but no launcher answers; " +
         remedy + ", or set " + env::kAllowSingleton + "=1 if a world of one is meant";
}

std::optional<WorldHint> hinted_world(const Environment& environment) {
  bool is_size_one = false;
  for (const auto& [name, remedy] : kSizeVariables) {
    const std::string value = value_of(environment, name);
    if (value.empty()) continue;
    // A value that is not a number is as suspicious as a number above 1.
    if (parse_integer(value) != 1) return WorldHint{name, value, remedy};
    is_size_one = true;
  }
  for (const auto& [name, remedy] : kRankVariables) {
    const std::string value = value_of(environment, name);
    if (!value.empty() && parse_integer(value) != 0) return WorldHint{name, value, remedy};
  }
  // PMIx gives a process its rank in the environment and the size only through the server, so a rank alone must be
  // taken for one of several.
  if (const std::string rank = value_of(environment, env::kPmixRank); !rank.empty() && !is_size_one)
    return WorldHint{env::kPmixRank, rank, kUnderDdlrun};
  return std::nullopt;
}

}  // namespace ddl::runtime

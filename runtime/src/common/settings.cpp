#include "runtime/src/common/settings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "contract/environment.h"
#include "contract/event_ring.h"
#include "runtime/src/common/member.h"

namespace ddl::runtime {
namespace {

namespace env = contract::env;

// Parsers of one value. nullopt: the text is invalid.

constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20;

std::optional<double> seconds(std::string_view text) {
  const auto value = parse_number(text);
  return value && *value < 0 ? std::nullopt : value;
}

template <std::int64_t kLeast, std::int64_t kMost, std::int64_t kFactor = 1>
std::optional<std::int64_t> integer(std::string_view text) {
  const auto value = parse_integer(text);
  return value && *value >= kLeast && *value <= kMost && *value % kFactor == 0 ? value : std::nullopt;
}

constexpr auto kDescriptor = integer<0, std::numeric_limits<int>::max()>;

std::optional<std::size_t> chunk_bytes(std::string_view text) {
  const auto bytes = static_cast<std::size_t>(integer<4096, kMaxBytes>(text).value_or(0));
  return std::has_single_bit(bytes) ? std::optional(bytes) : std::nullopt;
}

std::optional<std::uint64_t> megabytes(std::string_view text) {
  const auto number = integer<1, contract::kMaxTimelineMegabytes>(text);
  return number ? std::optional(static_cast<std::uint64_t>(*number) << 20) : std::nullopt;
}

std::optional<bool> flag(std::string_view text) {
  return text == "0" || text == "1" ? std::optional(text == "1") : std::nullopt;
}

std::optional<std::string> path(std::string_view text) { return std::string(text); }

/// In Horovod DYNAMIC is no file: the program begins a timeline later.
std::optional<std::string> timeline_file(std::string_view text) {
  return std::string(text == "DYNAMIC" ? "" : text);
}

std::optional<std::string> mpi_name(std::string_view text) {
  return text.find('/') == text.npos && text.front() != '.' ? path(text) : std::nullopt;
}

std::optional<std::vector<std::string>> interface_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view name : split(text, ',')) names.emplace_back(trim(name));
  return std::count(names.begin(), names.end(), "") == 0 ? std::optional(std::move(names)) : std::nullopt;
}

std::optional<std::optional<Stores>> stores(std::string_view text) {
  std::optional<Stores> chosen;
  if (text == "plain") chosen = Stores::kPlain;
  if (text == "streaming") chosen = Stores::kStreaming;
  if (!chosen && text != "auto") return std::nullopt;
  return std::make_optional(chosen);
}

/// Horovod names a library; all but NCCL go through CPU memory.
std::optional<contract::GpuOperations> horovods_gpu_operations(std::string_view text) {
  if (text == "NCCL") return contract::GpuOperations::kNccl;
  return text == "MPI" ? std::optional(contract::GpuOperations::kStaged) : std::nullopt;
}

std::optional<ClockSkew> clock_skew(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto by = parse_number(parts[0]), ppm = parse_number(parts[1]);
  return by && ppm ? std::optional(ClockSkew{*by, *ppm}) : std::nullopt;
}

/// A launcher of another version may use another format: then there is no record.
std::optional<RankRecordLocation> rank_record_location(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() != 4) return std::nullopt;
  const auto fd = kDescriptor(parts[0]), doorbell = kDescriptor(parts[3]);
  const auto offset = parse_integer(parts[1]), bytes = parse_integer(parts[2]);
  if (!fd || !doorbell || !offset || !bytes || *offset < 0 || *bytes < 0) return std::nullopt;
  return RankRecordLocation{static_cast<int>(*fd), *offset, *bytes, static_cast<int>(*doorbell)};
}

// The table.

/// Stores the value of a valid text, otherwise returns what is wrong with it, or "" if such a text is ignored.
using Reader = std::string (*)(std::string_view text, const char* expected, Settings& settings);

template <auto kSetting, auto kParse>
std::string take(std::string_view text, const char* expected, Settings& settings) {
  const auto value = kParse(text);
  if (value) {
    auto& setting = settings.*kSetting;
    // NOLINTNEXTLINE(bugprone-assignment-in-if-condition): it asks whether the assignment compiles
    if constexpr (requires { setting = *value; }) {
      setting = *value;
    } else {
      setting = static_cast<std::remove_reference_t<decltype(setting)>>(*value);
    }
    return "";
  }
  if constexpr (requires { value.error(); }) return value.error().message();
  return expected == nullptr ? "" : std::string("expected ") + expected;
}

/// Variables that mean one setting.
struct Variable {
  std::array<const char*, 3> names;  ///< the first one that is set counts
  const char* expected;              ///< nullptr: the parser's error says it, or another value is ignored
  Reader read;                       ///< nullptr: not in this build, or Settings::read() reads them together
  const char* meaning;               ///< for docs/reference/environment.md; nullptr: it has no row
};

/// In the order in which they are read: of several invalid values the first is reported.
// clang-format off
constexpr Variable kVariables[] = {
    {{env::kPmixNamespace, env::kPmixRank}, nullptr, nullptr, "set by the launcher: join its job"},
    {{env::kPmiFd, env::kPmiRank, env::kPmiSize}, nullptr, nullptr,
     "set by the launcher: join its job by PMI-1, if PMIx is not available"},
    {{"HOME"}, nullptr, nullptr,
     "must be set where a launcher serves PMIx and the user has no entry in passwd: libpmix would end the "
     "process, so `ddl_init` fails with a sentence. `ddlrun` sets it; under another launcher, start the "
     "program with `env HOME=/`"},
    {{env::kTimeoutSeconds}, "seconds, 0 for no deadline", take<&Settings::timeout_seconds, seconds>,
     "deadline of a collective that names none; default none"},
    {{env::kStartTimeoutSeconds}, "seconds, 0 for no deadline",
     take<&Settings::start_timeout_seconds, seconds>,
     "how long `ddl_init` waits for the launcher, and for the other ranks, and the members of a process set "
     "that they alone make for each other; default 600, 0 for ever"},
    {{env::kSpinMicroseconds}, "microseconds from 0 to 10000000",
     take<&Settings::spin, integer<0, 10'000'000>>,
     "how long a wait spins before it sleeps; default 200, and 0 where ranks outnumber CPUs"},
    {{env::kStagingBytes}, "a multiple of 64 from 64 to 67108864",
     take<&Settings::staging_bytes, integer<64, kMaxBytes, 64>>,
     "size of the staging chunk of one rank; default 524288, on several hosts 262144; must be the same on "
     "all hosts, with `--cpu-operations mpi` on all ranks"},
    {{env::kAlgorithm}, nullptr, take<&Settings::algorithms, AlgorithmOverrides::parse>,
     "algorithms of allreduce and reduce instead of those that the table of `ddl-bench --explain` chooses: "
     "`allreduce=halving,reduce=tree` ([which there are](libddl.md#algorithms)); the same on all ranks"},
    {{env::kCpuOperations}, "ddl or mpi", take<&Settings::cpu_operations, contract::parse_cpu_operations>,
     "what runs collectives: `ddl` (default), or `mpi`, [the site's "
     "MPI](../guide/backends.md#collectives-of-libddl-by-the-sites-mpi); `--cpu-operations` sets it"},
    {{env::kMpi}, "the name of an MPI, such as openmpi or mpich", take<&Settings::mpi, mpi_name>,
     "the MPI for `mpi`, if the program has loaded none: `openmpi`, `mpich`, or `abi` for one with the standard "
     "ABI of MPI 5"},
    {{"VIRTUAL_ENV", "CONDA_PREFIX"}, nullptr, take<&Settings::python_environment, path>,
     "the Python environment that is active: an MPI for `mpi` that the loader does not find is looked for in "
     "the folder `lib` beside the program's, as that of an environment's `python`, and in the one here"},
    {{env::kMpiFinalize}, "0 or 1", take<&Settings::finalizes_mpi, flag>,
     "0: an MPI that libddl has initialised is not finalised when the process exits; default 1"},
    {{env::kExchange}, "flat, groups, or how many ranks make a group, from 2 to 1024",
     take<&Settings::exchange, ExchangeConfig::parse>,
     "how the ranks of one host synchronize: `flat`, `groups`, or the number of consecutive ranks in a "
     "group; default `flat`, and `groups` from 128 ranks with a CPU for each"},
    {{env::kStores}, "auto, plain or streaming", take<&Settings::stores, stores>,
     "how ranks of one host stage what others read: `plain` or `streaming` stores, or `auto` (default), "
     "whichever is measured to be faster"},
    {{env::kFusionBytes, env::kHorovodFusionThreshold}, "a number of bytes, 0 or above",
     take<&Settings::fusion_bytes, integer<0, std::numeric_limits<std::int64_t>::max()>>,
     "[named tensors](../guide/async.md) are processed together up to this number of bytes, 0: each alone; "
     "default 67108864; the first one is looked at first; that of the process set's first rank counts"},
    // The next row's value replaces this one.
    {{env::kHorovodGpuOperations}, nullptr,
     take<&Settings::gpu_operations, horovods_gpu_operations>, nullptr},
    {{env::kGpuOperations}, "auto, nccl or staged",
     take<&Settings::gpu_operations, contract::parse_gpu_operations>,
     "what runs collectives on [memory of GPUs](../guide/gpu.md): `auto` (default: NCCL or RCCL, the "
     "memory of a GPU that the ranks share, or the host's), `nccl` (NCCL or RCCL, or an error) or `staged` "
     "(through the memory of the host); `--gpu-operations` sets it. If it is unset, `HOROVOD_GPU_OPERATIONS`: "
     "`NCCL`, or `MPI`, which means `staged`"},
    {{env::kCheck}, "0 or 1", take<&Settings::agrees_first, flag>,
     "`1`: ranks compare their calls before data move between GPUs by NCCL, not beside it; the same on all "
     "ranks"},
    {{env::kDeterministic}, "0 or 1", take<&Settings::is_deterministic, flag>,
     "`1`: the same bits in every run on the same ranks and GPUs, also by NCCL; `ddlrun` sets `NCCL_ALGO`, "
     "`NCCL_PROTO`, `NCCL_NVLS_ENABLE`, `NCCL_MIN_CTAS` and `NCCL_MAX_CTAS`, unless they are set "
     "([guide](../guide/gpu.md#what-is-promised))"},
    {{env::kGpuPieceBytes}, "a power of two, from 4096 to 67108864",
     take<&Settings::gpu_chunk_bytes, chunk_bytes>,
     "pieces in which memory of a [GPU](../guide/gpu.md) goes through the memory of the host; default 2097152; must be "
     "the same on all ranks"},
    {{env::kTimeline, env::kHorovodTimeline}, nullptr, take<&Settings::timeline_file, timeline_file>,
     "without `ddlrun`'s agents: where rank 0 writes a [timeline](../guide/timeline.md); the first one is "
     "looked at first"},
    {{env::kTimelineMaxMb}, "megabytes from 1 to 16384", take<&Settings::timeline_bytes, megabytes>,
     "the size of that file; default 128. `ddlrun` reads it, too"},
    {{env::kAllowSingleton}, "0 or 1", take<&Settings::allow_singleton, flag>,
     "`1`: a world of one rank is intended, although the environment says that several processes were "
     "started"},
    {{env::kModuleDirectory}, nullptr, take<&Settings::module_directory, path>,
     "folder of the modules that are loaded on demand, if not `ddl/` beside `libddl.so`"},
    {{env::kNetworkInterfaces}, "names of interfaces, separated by commas",
     take<&Settings::network_interfaces, interface_names>,
     "names, separated by commas: only the addresses of these interfaces are offered to ranks of other "
     "hosts, and only they are listened on; default all but loopback. A host needs at least one of them"},
    {{env::kSocketsPerPeer}, "a number from 1 to 8",
     take<&Settings::sockets_per_peer, integer<1, kMaxSocketsPerPeer>>,
     "data connections between two ranks of different hosts, 1 to 8; default 1; must be the same on all "
     "ranks"},
    {{env::kJobKeyFd}, "the number of a descriptor", take<&Settings::job_key_fd, kDescriptor>,
     "set by the launcher: number of an inherited descriptor, a sealed memfd that holds the job's key of 32 "
     "bytes. It is made close-on-exec by `ddl_init`"},
    {{env::kRankRecord}, nullptr, take<&Settings::rank_record, rank_record_location>,
     "set by the launcher: `FD:OFFSET:BYTES:DOORBELL`: a place in an inherited memfd that is sealed against "
     "another size, and an inherited eventfd. libddl writes there which calls this rank is in, its open "
     "named tensors, when a context is aborted the rank that the error names, and, behind 64 KiB, its "
     "events, and reads there, once the eventfd is readable, which host the launcher has lost; ignored if "
     "the descriptor is something else"},
    {{env::kVerbose}, "0 or 1", take<&Settings::verbose, flag>,
     "`1`: the first rank of every host prints on standard error how it reaches the other hosts, and why; "
     "and with which stores its ranks begin and end; in Python, which gradients cannot be "
     "[views](../guide/python.md#gradients-without-copies)"},
    {{env::kReportStart}, nullptr, take<&Settings::report_start, flag>,
     "`1`: rank 0 notifies the launcher, by a PMIx event, when its first collective has ended"},
    {{env::kElastic}, "0 or 1", take<&Settings::elastic, flag>,
     "set by `ddlrun --elastic continue`: `1`: this process may join the job again after another was lost"},
    {{env::kFault}, "point:rank:n, such as allreduce.after_publish:2:1",
     kFaultInjection ? take<&Settings::fault, FaultPlan::parse> : nullptr,
     "`point:rank:n`, or `point:rank:n:stop`: be killed or stopped there, for tests; ignored unless built "
     "with `DDL_FAULT_INJECTION`"},
    {{env::kClockSkew}, "SECONDS:PPM",
     kFaultInjection ? take<&Settings::clock_skew, clock_skew> : nullptr, nullptr},
};
// clang-format on

/// nullopt if one of the variables is missing or invalid: then hinted_world() judges the others.
std::optional<PmiParameters> pmi_parameters(const Environment& environment) {
  const auto number = [&environment](const char* name) { return kDescriptor(value_of(environment, name)); };
  const auto fd = number(env::kPmiFd), rank = number(env::kPmiRank), size = number(env::kPmiSize);
  if (!fd || !rank || !size || *rank >= *size) return std::nullopt;
  return PmiParameters{static_cast<int>(*fd), static_cast<int>(*rank), static_cast<int>(*size)};
}

}  // namespace

Result<Settings> Settings::read(const Environment& environment) {
  Settings settings;
  for (const Variable& variable : kVariables) {
    if (variable.read == nullptr) continue;
    for (const char* const name : variable.names) {
      if (name == nullptr) break;
      const std::string text = value_of(environment, name);
      if (text.empty()) continue;
      const std::string wrong = variable.read(text, variable.expected, settings);
      if (!wrong.empty())
        return fail(ErrorCode::kInvalidArgument, std::string(name) + "=" + text + ": " + wrong);
      break;
    }
  }
  settings.pmix_promised = environment.contains(env::kPmixNamespace) && environment.contains(env::kPmixRank);
  settings.has_no_home = lacks_home(environment);
  settings.pmi = pmi_parameters(environment);
  settings.pmi_is_hydras = settings.pmi && environment.contains("MPI_LOCALNRANKS");
  settings.several_started = hinted_world(environment);
  return settings;
}

std::string Settings::table() {
  std::string rows = "| name | effect |\n|---|---|\n";
  for (const Variable& variable : kVariables) {
    if (variable.meaning == nullptr) continue;
    std::string listed;
    for (const char* const name : variable.names) {
      if (name != nullptr) listed += (listed.empty() ? "`" : ", `") + std::string(name) + "`";
    }
    rows += "| " + listed + " | " + variable.meaning + " |\n";
  }
  return rows;
}

std::optional<ExchangeConfig> ExchangeConfig::parse(std::string_view text) {
  if (text == "flat") return ExchangeConfig{Mode::kFlat, 0};
  if (text == "groups") return ExchangeConfig{Mode::kGroups, 0};
  const auto width = parse_integer(text);
  if (!width || *width < 2 || *width > kMaxMembers) return std::nullopt;
  return ExchangeConfig{Mode::kGroups, static_cast<int>(*width)};
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

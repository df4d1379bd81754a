// Functions of values: the guard, settings, calls, faults, layout, arguments.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/environment.h"
#include "base/fd.h"
#include "base/files.h"
#include "contract/rank_process.h"
#include "runtime/src/api/c_abi.h"
#include "runtime/src/bootstrap/bootstrap_list.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/common/wait_limits.h"
#include "runtime/src/shm/flag_protocol.h"
#include "runtime/src/shm/segment.h"
#include "runtime/src/shm/wire_up.h"
#include "support/catch.h"
#include "support/processes.h"

using namespace ddl::runtime;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the guard knows every launcher's variables for several processes") {
  const std::pair<const char*, const char*> hints[] = {
      {"HOROVOD_SIZE", "2"},        {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMI_SIZE", "2"},
      {"MV2_COMM_WORLD_SIZE", "2"}, {"PALS_LOCAL_SIZE", "2"},      {"FLUX_JOB_SIZE", "2"},
      {"JSM_NAMESPACE_SIZE", "2"},  {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "2"},
      {"WORLD_SIZE", "2"},          {"PALS_RANKID", "3"},          {"PMI_RANK", "1"},
      {"PMIX_RANK", "0"},           {"SLURM_NTASKS", "many"},
  };
  for (const auto& [name, value] : hints) {
    CAPTURE(name);
    const auto hint = hinted_world({{name, value}});
    REQUIRE(hint);
    CHECK(hint->variable == name);
    CHECK(contains(hint->sentence(), std::string(name) + "=" + value + " says"));
    CHECK(contains(hint->sentence(), "ddlrun"));
    CHECK(contains(hint->sentence(), "DDL_ALLOW_SINGLETON=1"));
  }
}

TEST_CASE("the guard allows a real world of one") {
  CHECK_FALSE(hinted_world({}));
  CHECK_FALSE(hinted_world({{"SLURM_NTASKS", "1"}}));
  CHECK_FALSE(hinted_world({{"SLURM_NTASKS", ""}}));
  CHECK_FALSE(hinted_world({{"PMIX_RANK", "0"}, {"HOROVOD_SIZE", "1"}}));
  CHECK_FALSE(hinted_world({{"PALS_RANKID", "0"}, {"PMI_RANK", "0"}}));
}

TEST_CASE("bootstraps are tried in order and report why they are not available") {
  std::vector<std::string> names;
  for (const BootstrapBackend& one : bootstrap_list()) names.emplace_back(one.name);
  CHECK(names == std::vector<std::string>{"elastic", "pmix", "mpi", "pmi", "singleton"});

  const auto alone = join_job(bootstrap_list(), *Settings::read({}), 3);
  REQUIRE(alone);
  CHECK(std::string((*alone)->name()) == "singleton");
  CHECK((*alone)->membership().generation == 3);

  const auto refused = join_job(bootstrap_list(), *Settings::read({{"SLURM_NTASKS", "4"}}), 1);
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message(), "pmix: PMIX_NAMESPACE and PMIX_RANK are not both set"));
  CHECK(contains(refused.error().message(), "pmi: PMI_FD, PMI_RANK and PMI_SIZE are not all set"));
  CHECK(contains(refused.error().message(), "singleton: SLURM_NTASKS=4 says"));

  const auto meant =
      join_job(bootstrap_list(), *Settings::read({{"SLURM_NTASKS", "4"}, {"DDL_ALLOW_SINGLETON", "1"}}), 1);
  CHECK(meant);
}

TEST_CASE("a missing module is reported as the reason, and a promise of PMIx is not forgotten") {
  const auto settings =
      Settings::read({{"PMIX_NAMESPACE", "job"}, {"PMIX_RANK", "0"}, {"DDL_MODULE_DIR", "/nonexistent"}});
  REQUIRE(settings);
  const auto refused = join_job(bootstrap_list(), *settings, 1);
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message(), "/nonexistent/libddl_pmix.so"));
  CHECK(contains(refused.error().message(), "PMIX_RANK=0 says"));
}

TEST_CASE("if a launcher promises PMI-1 and does not answer, there is no accidental world of one") {
  const auto settings = Settings::read({{"PMI_FD", "987"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  REQUIRE(settings);
  REQUIRE(settings->pmi);
  CHECK(settings->pmi->fd == 987);
  const auto refused = join_job(bootstrap_list(), *settings, 1);
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message(), "pmi: PMI-1: writing to the launcher"));
  CHECK(contains(refused.error().message(), "PMI_SIZE=2 says"));
  for (const auto& [name, value] :
       {std::pair("PMI_FD", "x"), std::pair("PMI_RANK", "2"), std::pair("PMI_SIZE", "0")}) {
    ddl::Environment variables = {{"PMI_FD", "4"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
    variables[name] = value;
    CHECK_FALSE(Settings::read(variables)->pmi);
  }
}

TEST_CASE("a timeline is recorded if DDL_TIMELINE names its file, or else Horovod's variable") {
  const auto file = [](const ddl::Environment& environment) {
    const auto settings = Settings::read(environment);
    return settings ? settings->timeline_file : settings.error().message();
  };
  CHECK(file({}).empty());
  CHECK(file({{"DDL_TIMELINE", "a.json"}, {"HOROVOD_TIMELINE", "b.json"}}) == "a.json");
  CHECK(file({{"DDL_TIMELINE", ""}, {"HOROVOD_TIMELINE", "b.json"}}) == "b.json");
  CHECK(file({{"HOROVOD_TIMELINE", "DYNAMIC"}}).empty());
  CHECK(Settings::read({})->timeline_bytes == std::uint64_t{128} << 20);
  CHECK(Settings::read({{"DDL_TIMELINE_MAX_MB", "7"}})->timeline_bytes == std::uint64_t{7} << 20);
}

TEST_CASE("the size of batches of named tensors is that of DDL_FUSION_BYTES, or else Horovod's") {
  const auto fusion_bytes = [](const ddl::Environment& environment) {
    const auto settings = Settings::read(environment);
    REQUIRE(settings);
    return settings->fusion_bytes;
  };
  CHECK(fusion_bytes({}) == std::uint64_t{64} << 20);
  CHECK(fusion_bytes({{"DDL_FUSION_BYTES", "1048576"}}) == 1048576);
  CHECK(fusion_bytes({{"HOROVOD_FUSION_THRESHOLD", "2048"}}) == 2048);
  CHECK(fusion_bytes({{"HOROVOD_FUSION_THRESHOLD", "2048"}, {"DDL_FUSION_BYTES", "0"}}) == 0);
  CHECK(fusion_bytes({{"HOROVOD_FUSION_THRESHOLD", "2048"}, {"DDL_FUSION_BYTES", ""}}) == 2048);
  CHECK(fusion_bytes({{"HOROVOD_FUSION_THRESHOLD", "64 MB"}, {"DDL_FUSION_BYTES", "7"}}) == 7);
}

TEST_CASE("settings come from the environment, and invalid values are refused") {
  const auto defaults = Settings::read({});
  REQUIRE(defaults);
  CHECK(defaults->timeout_seconds == 0);
  CHECK_FALSE(defaults->staging_bytes);
  CHECK(defaults->exchange.mode == ExchangeConfig::Mode::kAuto);
  CHECK(defaults->network_interfaces.empty());
  CHECK_FALSE(defaults->job_key_fd);
  CHECK(defaults->sockets_per_peer == 1);
  CHECK_FALSE(defaults->verbose);
  CHECK_FALSE(defaults->allow_singleton);
  CHECK_FALSE(defaults->pmix_promised);
  CHECK_FALSE(defaults->several_started);
  CHECK(defaults->cpu_operations == ddl::contract::CpuOperations::kDdl);
  CHECK(defaults->mpi.empty());
  CHECK(defaults->finalizes_mpi);

  const auto given = Settings::read({{"DDL_TIMEOUT_SECONDS", "2.5"},
                                     {"DDL_SPIN_MICROSECONDS", "0"},
                                     {"DDL_STAGING_BYTES", "65536"},
                                     {"DDL_EXCHANGE", "8"},
                                     {"DDL_STORES", "streaming"},
                                     {"DDL_ALLOW_SINGLETON", "1"},
                                     {"DDL_MODULE_DIR", "/x"},
                                     {"DDL_NETWORK_INTERFACES", "eth0, ib0"},
                                     {"DDL_JOB_KEY_FD", "3"},
                                     {"DDL_RANK_RECORD", "5:16:64:6"},
                                     {"DDL_SOCKETS_PER_PEER", "8"},
                                     {"DDL_VERBOSE", "1"},
                                     {"DDL_CPU_OPERATIONS", "mpi"},
                                     {"DDL_MPI", "mpich"},
                                     {"DDL_MPI_FINALIZE", "0"},
                                     {"PMIX_NAMESPACE", "job"},
                                     {"PMIX_RANK", "0"}});
  REQUIRE(given);
  CHECK(given->network_interfaces == std::vector<std::string>{"eth0", "ib0"});
  CHECK(given->job_key_fd == 3);
  REQUIRE(given->rank_record);
  CHECK(given->rank_record->fd == 5);
  CHECK(given->rank_record->offset == 16);
  CHECK(given->rank_record->bytes == 64);
  CHECK(given->rank_record->doorbell == 6);
  for (const char* other : {"", "5", "5:16:64", "5:16::6", ":16:64:6", "-1:0:64:6", "5:-8:64:6", "5:16:-1:6",
                            "99999999999:0:64:6", "five:0:64:6", "5:16:64:-1", "5:16:64:six"})
    CHECK_FALSE(Settings::read({{"DDL_RANK_RECORD", other}})->rank_record);
  CHECK(given->sockets_per_peer == 8);
  CHECK(given->verbose);
  CHECK(given->cpu_operations == ddl::contract::CpuOperations::kMpi);
  CHECK(given->mpi == "mpich");
  CHECK_FALSE(given->finalizes_mpi);
  CHECK(given->timeout_seconds == 2.5);
  CHECK(given->spin.count() == 0);
  CHECK(given->staging_bytes == 65536);
  CHECK(given->exchange.mode == ExchangeConfig::Mode::kGroups);
  CHECK(given->exchange.width == 8);
  CHECK(given->stores == ddl::runtime::Stores::kStreaming);
  CHECK(Settings::read({{"DDL_STORES", "plain"}})->stores == ddl::runtime::Stores::kPlain);
  CHECK_FALSE(Settings::read({{"DDL_STORES", "auto"}})->stores);
  using ddl::contract::GpuOperations;
  CHECK(Settings::read({{"DDL_GPU_OPERATIONS", "nccl"}})->gpu_operations == GpuOperations::kNccl);
  CHECK(Settings::read({{"HOROVOD_GPU_OPERATIONS", "NCCL"}})->gpu_operations == GpuOperations::kNccl);
  CHECK(Settings::read({{"HOROVOD_GPU_OPERATIONS", "MPI"}})->gpu_operations == GpuOperations::kStaged);
  CHECK(Settings::read({{"DDL_GPU_OPERATIONS", "auto"}, {"HOROVOD_GPU_OPERATIONS", "MPI"}})->gpu_operations ==
        GpuOperations::kAuto);
  CHECK(Settings::read({{"DDL_CHECK", "1"}})->agrees_first);
  CHECK(Settings::read({{"DDL_DETERMINISTIC", "1"}})->is_deterministic);
  CHECK(given->allow_singleton);
  CHECK(given->module_directory == "/x");
  CHECK(given->pmix_promised);

  const std::pair<const char*, const char*> bad[] = {
      {"DDL_START_TIMEOUT_SECONDS", "-1"},
      {"DDL_TIMEOUT_SECONDS", "-1"},
      {"DDL_TIMEOUT_SECONDS", "soon"},
      {"DDL_SPIN_MICROSECONDS", "-1"},
      {"DDL_SPIN_MICROSECONDS", "1e3"},
      {"DDL_STAGING_BYTES", "0"},
      {"DDL_STAGING_BYTES", "100"},
      {"DDL_STAGING_BYTES", "67108928"},
      {"DDL_ALLOW_SINGLETON", "yes"},
      {"DDL_NETWORK_INTERFACES", "a,,b"},
      {"DDL_JOB_KEY_FD", "-1"},
      {"DDL_JOB_KEY_FD", "key"},
      {"DDL_VERBOSE", "2"},
      {"DDL_SOCKETS_PER_PEER", "0"},
      {"DDL_SOCKETS_PER_PEER", "9"},
      {"DDL_SOCKETS_PER_PEER", "two"},
      {"DDL_EXCHANGE", "tree"},
      {"DDL_EXCHANGE", "1"},
      {"DDL_EXCHANGE", "1025"},
      {"DDL_STORES", "nontemporal"},
      {"DDL_CPU_OPERATIONS", "gloo"},
      {"DDL_GPU_OPERATIONS", "rccl"},
      {"DDL_CHECK", "yes"},
      {"DDL_DETERMINISTIC", "2"},
      {"DDL_GPU_PIECE_BYTES", "5000"},
      {"DDL_MPI", "../x"},
      {"DDL_MPI_FINALIZE", "no"},
      {"DDL_FUSION_BYTES", "-1"},
      {"DDL_TIMELINE_MAX_MB", "0"},
      {"DDL_FUSION_BYTES", "64 MB"},
      {"HOROVOD_FUSION_THRESHOLD", "1.5"},
  };
  for (const auto& [name, value] : bad) {
    CAPTURE(name, value);
    const auto refused = Settings::read({{name, value}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ddl::ErrorCode::kInvalidArgument);
    CHECK(contains(refused.error().message(), std::string(name) + "=" + value + ": expected"));
  }
}

TEST_CASE("docs/reference/environment.md ends with the table of libddl's variables") {
  const std::string file = DDL_SOURCE_DIR "/docs/reference/environment.md";
  const std::string heading = "\n## What libddl reads\n\n";
  auto document = ddl::read_file(file);
  REQUIRE(document);
  const std::string kept = document->substr(0, document->find(heading)) + heading + Settings::table();
  if (std::getenv("DDL_WRITE_GOLDEN") != nullptr) std::ofstream(file) << (*document = kept);
  INFO("cmake --build --preset test --target environment_reference writes it");
  CHECK(*document == kept);
}

TEST_CASE(
    "a rank shows what it does only in the launcher's memory, not in a file with its descriptor number") {
  using ddl::contract::CallWord;
  using Record = ddl::contract::RankRecord;
  const auto fill = [](int fd) {
    REQUIRE(::ftruncate(fd, 2 * Record::kBytes) == 0);
    for (const std::size_t at : {std::size_t{0}, Record::kBytes})
      REQUIRE(::pwrite(fd, &Record::kMagic, sizeof Record::kMagic, static_cast<off_t>(at)) ==
              sizeof Record::kMagic);
  };
  const ddl::UniqueFd memory(::memfd_create("record", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  fill(memory.get());
  CHECK(RankRecord::open({memory.get(), 0, Record::kBytes}) ==
        nullptr);  // not sealed yet: it may be the program's
  REQUIRE(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  CHECK(RankRecord::open({memory.get(), 4096, Record::kBytes}) == nullptr);  // no record begins here
  CHECK(RankRecord::open({memory.get(), 2 * Record::kBytes, Record::kBytes}) == nullptr);
  CHECK(RankRecord::open({memory.get(), 0, 3 * Record::kBytes}) == nullptr);
  CHECK(RankRecord::open({memory.get(), 0, 4096}) == nullptr);
  CHECK(RankRecord::open({-1, 0, Record::kBytes}) == nullptr);
  const ddl::UniqueFd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) {  // of a file system with such files
    fill(file.get());
    CHECK(RankRecord::open({file.get(), 0, Record::kBytes}) == nullptr);
  }

  auto* const shown = static_cast<Record*>(::mmap(nullptr, Record::kBytes, PROT_READ, MAP_SHARED,
                                                  memory.get(), static_cast<off_t>(Record::kBytes)));
  REQUIRE(shown != MAP_FAILED);
  auto record = RankRecord::open({memory.get(), static_cast<std::int64_t>(Record::kBytes), Record::kBytes});
  REQUIRE(record);
  CHECK(record->ring() == nullptr);
  CHECK(shown->phase.load() == Record::Phase::kJoining);
  CHECK(shown->pid.load() == ::getpid());
  record->has_lost(3);
  CHECK(shown->gone.load() == 4);
  auto* const set = record->add_set(9, 2);
  CHECK(shown->sets[0].name.load() == (std::uint64_t{9} << 32 | 3));
  {
    const RecordedCall call(&set->call, CallKind::kAllreduce, 812);
    CHECK(CallWord::is_inside(shown->sets[0].call.load()));
    CHECK(CallWord::number(shown->sets[0].call.load()) == 812);
    CHECK(CallWord::kind(shown->sets[0].call.load()) == 1);
  }
  CHECK_FALSE(CallWord::is_inside(shown->sets[0].call.load()));

  const std::uint32_t first = record->add_tensor(*set, "first");
  const std::uint32_t long_one = record->add_tensor(*set, std::string(100, 'x'));
  CHECK(shown->tensor_slots.load() == 2);
  const std::uint64_t state = shown->tensors[first].state.load();
  CHECK(std::string(shown->tensors[first].name.data()) == "first");
  CHECK(shown->tensors[long_one].name.back() == 'x');
  record->remove_tensor(first);
  CHECK(shown->tensors[first].state.load() == 0);
  CHECK(record->add_tensor(*set, "") == first);
  CHECK(shown->tensors[first].state.load() > state);
  CHECK(shown->tensors[first].name.front() == '\0');
  for (std::size_t i = 2; i < Record::kTensors; ++i) (void)record->add_tensor(*set, "more");
  CHECK(record->add_tensor(*set, "too many") == RankRecord::kNoPlace);
  CHECK(shown->hidden_tensors.load() == 1);
  record->remove_tensor(RankRecord::kNoPlace);
  CHECK(shown->hidden_tensors.load() == 0);
  for (std::size_t i = 1; i < Record::kSets; ++i) CHECK(record->add_set(9, 2) != nullptr);
  CHECK(record->add_set(9, 2) == nullptr);
  record.reset();
  CHECK(shown->phase.load() == Record::Phase::kLeft);
  // The next context begins with nothing.
  record = RankRecord::open({memory.get(), static_cast<std::int64_t>(Record::kBytes), Record::kBytes});
  CHECK(shown->sets[0].name.load() == 0);
  CHECK(shown->tensor_slots.load() == 0);
  ::munmap(shown, Record::kBytes);
}

TEST_CASE("only one living process is a rank, until it leaves") {
  using Record = ddl::contract::RankRecord;
  const ddl::UniqueFd memory(::memfd_create("record", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(memory.get(), Record::kBytes) == 0);
  REQUIRE(::pwrite(memory.get(), &Record::kMagic, sizeof Record::kMagic, 0) == sizeof Record::kMagic);
  REQUIRE(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  const ddl::runtime::RankRecordLocation location{memory.get(), 0, Record::kBytes};
  CHECK(RankRecord::claim({-1, 0, Record::kBytes}).holder == 0);  // without a record everybody is

  ddl::test::Readiness claimed;
  const pid_t other = ddl::test::fork_process([&] {
    if (RankRecord::claim(location).holder != 0) ::_exit(1);
    claimed.report();
    ddl::test::sleep_for_ever();
  });
  claimed.wait_for(1);
  CHECK(RankRecord::claim(location).holder == other);
  RankRecord::disown(location);  // what is not its own
  CHECK(RankRecord::claim(location).holder == other);
  ::kill(other, SIGKILL);
  (void)ddl::test::reap(other);
  CHECK(RankRecord::claim(location).holder == 0);
  CHECK(RankRecord::claim(location).holder == 0);

  const pid_t parent = ::getpid();
  const auto claims = [&](pid_t expected) {
    return ddl::test::reap(
        ddl::test::fork_process([&] { ::_exit(RankRecord::claim(location).holder == expected ? 0 : 1); }));
  };
  CHECK(claims(parent) == 0);
  RankRecord::open(location).reset();  // it leaves
  CHECK(claims(0) == 0);
}

TEST_CASE("fault plans are point:rank:n, and point:rank:n:stop") {
  const auto plan = FaultPlan::parse("allreduce.after_publish:2:3");
  REQUIRE(plan);
  CHECK(plan->point == "allreduce.after_publish");
  CHECK(plan->rank == 2);
  CHECK(plan->passage == 3);
  CHECK_FALSE(plan->stops);
  const auto stop = FaultPlan::parse("allreduce.after_publish:2:3:stop");
  REQUIRE(stop);
  CHECK(stop->passage == 3);
  CHECK(stop->stops);
  for (const char* text :
       {"", "a", "a:1", ":1:1", "a:-1:1", "a:1:0", "a:1:1:1", "a:1:1:", "a:1:1:stop:", "a:x:1"}) {
    CAPTURE(text);
    CHECK_FALSE(FaultPlan::parse(text));
  }
}

#ifdef DDL_FAULT_INJECTION
TEST_CASE("builds with fault injection read DDL_FAULT") {
  const auto settings = Settings::read({{"DDL_FAULT", "init.after_fence:1:1"}});
  REQUIRE(settings);
  REQUIRE(settings->fault);
  CHECK(settings->fault->point == "init.after_fence");
  const auto refused = Settings::read({{"DDL_FAULT", "now"}});
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message(), "DDL_FAULT=now: expected point:rank:n"));
}
#endif

TEST_CASE("waits spin only while every rank has a CPU") {
  const std::chrono::nanoseconds spin(1000);
  CHECK(WaitPolicy::for_group(2, 2, spin).spin == spin);
  CHECK(WaitPolicy::for_group(2, 2, spin).yields == 0);
  CHECK(WaitPolicy::for_group(3, 2, spin).spin.count() == 0);
  CHECK(WaitPolicy::for_group(3, 2, spin).yields > 0);
}

TEST_CASE("hosts compare digests of names that every build computes alike") {
  CHECK(digest_of("") == 0);
  CHECK(digest_of("gradient") == 0xDD3B5653343AFC3Eu);
  CHECK(digest_of("gradient/1") == 0xD90A66B73350100Du);
  CHECK(digest_of(std::string_view("a\0", 2)) != digest_of("a"));
}

TEST_CASE("calls have equal fingerprints if and only if they match") {
  Call call;
  call.kind = CallKind::kAllreduce;
  call.dtype = DDL_FLOAT32;
  call.op = DDL_SUM;
  call.count = 1000;
  call.number = 17;
  CHECK(call.describe() == "allreduce #17 (sum, float32, 1000 elements)");
  CHECK(call.signature() == "allreduce(sum, float32, 1000 elements)");

  std::vector<Call> others(5, call);
  others[0].kind = CallKind::kAllgather;
  others[1].dtype = DDL_INT32;
  others[2].op = DDL_MAX;
  others[3].count = 1001;
  others[4].root = 1;
  for (const Call& other : others) CHECK(other.fingerprint() != call.fingerprint());
  Call later = call;
  later.number = 18;
  CHECK(later.fingerprint() == call.fingerprint());

  Call broadcast;
  broadcast.kind = CallKind::kBroadcast;
  broadcast.dtype = DDL_INT64;
  broadcast.root = 3;
  broadcast.count = 1;
  broadcast.number = 2;
  CHECK(broadcast.describe() == "broadcast #2 (root 3, int64, 1 element)");
  Call barrier;
  barrier.kind = CallKind::kBarrier;
  barrier.number = 4;
  CHECK(barrier.describe() == "barrier #4");
}

TEST_CASE("no two members of a segment share a cache line, and nothing overlaps") {
  const int members = GENERATE(1, 3, 128);
  constexpr std::size_t kSlot = 192;
  const std::size_t bytes = Segment::bytes_for(members, SegmentConfig{kSlot});
  std::vector<std::byte> storage(bytes + kLineBytes);
  const auto misalignment = reinterpret_cast<std::uintptr_t>(storage.data()) % kLineBytes;
  std::byte* base = storage.data() + (misalignment == 0 ? 0 : kLineBytes - misalignment);
  SegmentConfig config;
  config.slot_bytes = kSlot;
  config.first_sequence = 77;
  const Segment segment = Segment::create({base, bytes}, members, config);

  std::map<std::size_t, std::size_t> pieces;  // offset -> size
  const auto place = [&](const void* at, std::size_t size) {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - base);
    CHECK(offset % kLineBytes == 0);
    CHECK(size % kLineBytes == 0);
    CHECK(pieces.emplace(offset, size).second);
  };
  place(base, sizeof(SegmentHeader));
  place(&segment.abort_line(), sizeof(AbortLine));
  for (int i = 0; i < members; ++i) {
    place(&segment.gathered(i), sizeof(GroupLine));
    place(&segment.released(i), sizeof(GroupLine));
    CHECK_FALSE(has_reached(segment.gathered(i).word.load(), 78));
    CHECK_FALSE(has_reached(segment.released(i).word.load(), 78));
    place(&segment.presence(i), sizeof(PresenceLine));
    place(&segment.timeout_record(i), sizeof(TimeoutRecord));
    place(&segment.notice_record(i), sizeof(NoticeRecord));
    place(&segment.pairs_record(i), sizeof(PairsRecord));
    for (const unsigned parity : {0u, 1u}) {
      place(&segment.flag(i, parity), sizeof(FlagLine));
      place(&segment.call(i, parity), sizeof(CallLine));
      place(segment.slot(i, parity), kSlot);
      CHECK(has_reached(segment.flag(i, parity).word.load(), 77));
      CHECK_FALSE(has_reached(segment.flag(i, parity).word.load(), 78));
    }
  }
  std::size_t end = 0;
  for (const auto& [offset, size] : pieces) {
    CHECK(offset >= end);
    end = offset + size;
  }
  CHECK(end <= bytes);

  CHECK(Segment::open({base, bytes}));
  std::vector<int> leaders(static_cast<std::size_t>(members), 0);
  segment.set_leaders(leaders);
  CHECK(Segment::open({base, bytes})->leaders() == leaders);
  // A leader that is not a member, and one that has a leader itself.
  std::uint32_t& behind = segment.presence(members - 1).behind_leader;
  behind = static_cast<std::uint32_t>(members);
  CHECK_FALSE(Segment::open({base, bytes}));
  behind = 1;
  CHECK(Segment::open({base, bytes}).has_value() == false);
  behind = static_cast<std::uint32_t>(members - 1);
  CHECK_FALSE(Segment::open({base, bytes - 64}));
  CHECK_FALSE(Segment::open({base, 8}));
  base[0] ^= std::byte{1};
  CHECK_FALSE(Segment::open({base, bytes}));
}

TEST_CASE("every pair of members has a segment of its own in theirs") {
  constexpr int kMembers = 5;
  SegmentConfig config;
  config.slot_bytes = 64;
  config.pair_slot_bytes = 128;
  const std::size_t bytes = Segment::bytes_for(kMembers, config);
  std::vector<std::byte> storage(bytes + kLineBytes);
  const auto misalignment = reinterpret_cast<std::uintptr_t>(storage.data()) % kLineBytes;
  std::byte* base = storage.data() + (misalignment == 0 ? 0 : kLineBytes - misalignment);
  const Segment segment = Segment::create({base, bytes}, kMembers, config);
  CHECK(Segment::open({base, bytes})->has_pairs());
  std::map<const std::byte*, const std::byte*> places;
  for (int a = 0; a < kMembers; ++a) {
    for (int b = 0; b < a; ++b) {
      const Segment pair = segment.pair(a, b);
      CHECK(pair.slot(0, 0) == segment.pair(b, a).slot(0, 0));
      CHECK(pair.size() == 2);
      CHECK(pair.slot_bytes() == 128);
      CHECK(pair.leaders() == std::vector{0, 1});
      CHECK(has_reached(pair.flag(1, 0).word.load(), 0));
      CHECK_FALSE(has_reached(pair.flag(1, 1).word.load(), 1));
      places.emplace(reinterpret_cast<const std::byte*>(&pair.abort_line()), pair.slot(1, 1) + 128);
    }
  }
  CHECK(places.size() == kMembers * (kMembers - 1) / 2);
  const std::byte* end = segment.slot(kMembers - 1, 1) + 64;
  for (const auto& [first, last] : places) {
    CHECK(first >= end);
    end = last;
  }
  CHECK(end <= base + bytes);
}

TEST_CASE("a rendezvous is parsed back from its text, and anything else is refused") {
  const auto rendezvous = Rendezvous::random();
  REQUIRE(rendezvous);
  const auto again = Rendezvous::parse(rendezvous->to_text());
  REQUIRE(again);
  CHECK(again->socket_name == rendezvous->socket_name);
  CHECK(again->nonce == rendezvous->nonce);
  CHECK(Rendezvous::random()->to_text() != rendezvous->to_text());
  const std::string nonce = rendezvous->to_text().substr(rendezvous->socket_name.size());
  for (const std::string& text : {std::string(), std::string("name"), std::string("name 12"), nonce,
                                  "name" + nonce + "0", std::string(108, 'x') + nonce, "a b" + nonce}) {
    CAPTURE(text);
    CHECK_FALSE(Rendezvous::parse(text));
  }
}

TEST_CASE("a very long message is truncated, not lost") {
  CHECK(report(DDL_ERROR_SYSTEM, std::string(100000, 'x')) == DDL_ERROR_SYSTEM);
  CHECK(std::string(last_error()).size() > 1000);
}

TEST_CASE("every status has a name of its own") {
  std::map<std::string, int> names;
  for (ddl_status status = DDL_OK; status <= DDL_ERROR_INTERNAL; ++status) ++names[ddl_status_name(status)];
  CHECK(names.size() == static_cast<std::size_t>(DDL_ERROR_INTERNAL) + 1);
  CHECK(std::string(ddl_status_name(99)) == "unknown status");
}

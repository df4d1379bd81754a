// ddlrun --check-build on this machine, and with stand-ins for the programs and libraries that it probes: a file that
// exists but does not work must be reported.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/program_run.h"
#include "support/catch.h"
#include "support/skip.h"
#include "support/temporary_directory.h"

using ddl::test::ProgramRun;
using ddl::test::ProgramSetup;
using ddl::test::run_program;
using nlohmann::json;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

ProgramRun run_ddlrun(Words words, Words environment = {}) {
  ProgramSetup setup;
  setup.argv = std::move(words);
  setup.argv.insert(setup.argv.begin(), DDLRUN_PATH);
  setup.environment = std::move(environment);
  return run_program(setup);
}

/// A temporary folder for stand-ins.
struct Folder : ddl::test::TemporaryDirectory {
  void command(const std::string& name, const std::string& script) const {
    std::ofstream(*this / name) << "#!/bin/sh\n" << script << "\n";
    REQUIRE(::chmod((*this / name).c_str(), 0755) == 0);
  }
  void library(const std::string& name) const { fs::create_symlink(DDL_STAND_IN_LIBRARY, *this / name); }
  /// A copy of ddlrun whose helper programs are this script.
  std::string ddlrun_with_helpers(const std::string& script) const {
    fs::create_directories(*this / "bin");
    fs::create_directories(*this / "libexec/ddlrun");
    fs::copy_file(DDLRUN_PATH, *this / "bin/ddlrun");
    for (const char* helper : {"probe-rank", "slurm-probe"})
      command("libexec/ddlrun/" + std::string(helper), script);
    return *this / "bin/ddlrun";
  }
  void garbage(const std::string& name) const { std::ofstream(*this / name) << "no library"; }
};

struct ReportedCapability {
  json fields;
  int exit_code = -1;
  bool works() const { return fields["works"]; }
  std::string text(const char* field) const { return fields[field]; }
};

ReportedCapability capability_of(const ProgramRun& run) {
  INFO(run.err);
  REQUIRE((run.exit_code == 0 || run.exit_code == 1));
  const json parsed = json::parse(run.out);
  REQUIRE(parsed["boxes"].size() == 1);
  return {parsed["boxes"][0], run.exit_code};
}

ReportedCapability probe(const std::string& key, const Folder& folder, const std::string& stand_in = "ok") {
  const char* path = std::getenv("PATH");
  return capability_of(run_ddlrun({"--check-build=" + key, "--json"},
                                  {"PATH=" + folder.path() + ":" + (path != nullptr ? path : "/usr/bin:/bin"),
                                   "LD_LIBRARY_PATH=" + folder.path(), "DDL_STAND_IN=" + stand_in}));
}

/// The capability as reported by a ddlrun that this command runs.
ReportedCapability capability_by(Words command, const std::string& key) {
  ProgramSetup setup;
  setup.argv = std::move(command);
  setup.argv.insert(setup.argv.end(), {"--check-build=" + key, "--json"});
  return capability_of(run_program(setup));
}

}  // namespace

TEST_CASE("capabilities that every build has work here, and each unavailable one has a reason") {
  const ProgramRun run = run_ddlrun({"--check-build", "--json"});
  REQUIRE(run.exit_code == 0);
  const json parsed = json::parse(run.out);
  for (const json& one : parsed["boxes"]) {
    const std::string key = one["key"];
    CAPTURE(key, one.dump());
    if (!one["available"]) CHECK_FALSE(std::string(one["detail"]).empty());
    for (const char* needed :
         {"libddl", "pmix-server", "pmi-server", "host", "local", "pmix", "pmi", "singleton", "shared-memory",
          "hwloc", "hwloc-files", "sites", "slurm-templates", "memfd", "pidfd"}) {
      if (key == needed) CHECK(one["available"]);
    }
  }
  const ProgramRun text = run_ddlrun({"-cb"});
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, Catch::Contains("Available Frameworks:\n    [X] C and C++\n") &&
                           Catch::Contains("] Python\n    [ ] TensorFlow\n") &&
                           Catch::Contains("Available Controllers:\n    [X] PMIx\n") &&
                           Catch::Contains("Available Tensor Operations:\n    [X] Host\n"));
}

TEST_CASE("--check-build=NAME checks one capability, and the exit code is its result") {
  const ProgramRun works = run_ddlrun({"--check-build=pidfd"});
  CHECK(works.exit_code == 0);
  CHECK_THAT(works.out, Catch::StartsWith("pidfd: built yes, works here yes"));
  const ProgramRun not_built = run_ddlrun({"-cb=nccl"});
  CHECK(not_built.exit_code == 1);
  CHECK(run_ddlrun({"--check-build="}).exit_code == 2);
  const ProgramRun unknown = run_ddlrun({"--check-build=ncll"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err,
             Catch::Contains("there is no capability 'ncll'") && Catch::Contains("did you mean nccl?"));
  // A missing "=" must not run all probes and exit with 0.
  CHECK(run_ddlrun({"--check-build", "nccl"}).exit_code == 2);
}

TEST_CASE("too few descriptors for the probes are one error, not one for each capability") {
  ProgramSetup setup;
  setup.argv = {"/bin/sh", "-c", "ulimit -n 10; exec \"$0\" --check-build", DDLRUN_PATH};
  const ProgramRun run = run_program(setup);
  CHECK(run.exit_code == 122);
  CHECK(run.out.empty());
  // Not the whole text: without a free descriptor a sanitizer cannot make its own checks, and reports that before.
  CHECK_THAT(run.err, Catch::EndsWith("ddlrun: the probes cannot be started: pipe2: Too many open files\n"
                                      "hint: raise the limit: ulimit -n 256\n"));
  CHECK(run.err.find("Too many open files") == run.err.rfind("Too many open files"));
}

TEST_CASE("a command that exists but fails is reported with its failure") {
  const Folder folder;
  folder.command("ssh", "echo 'bad configuration' >&2; exit 255");
  folder.command("srun", "kill -SEGV $$");
  folder.command("mpirun", "exit 0");
  folder.command("sbatch", "echo 'no cluster'; exit 1");
  folder.command("python3", "exit 1");
  const ReportedCapability ssh = probe("ssh", folder);
  CHECK(ssh.exit_code == 1);
  CHECK_THAT(ssh.text("detail"), Catch::Contains("/ssh -V exits with 255: bad configuration"));
  CHECK_THAT(probe("slurm", folder).text("detail"), Catch::Contains("/srun --version was killed by SIGSEGV"));
  CHECK_THAT(probe("srun", folder).text("detail"), Catch::Contains("was killed by SIGSEGV"));
  CHECK_THAT(probe("mpirun", folder).text("detail"), Catch::Contains("/mpirun: it is neither Open MPI's"));
  CHECK_THAT(probe("sbatch", folder).text("detail"), Catch::Contains("exits with 1: no cluster"));
  CHECK_THAT(probe("torch", folder).text("detail"), Catch::Contains("/python3 has no torch"));
  CHECK_FALSE(probe("tensorflow-package", folder).works());
  const Folder garbage;
  garbage.garbage("libgloo.so.0");
  CHECK_THAT(probe("gloo", garbage).text("detail"), Catch::Contains("libgloo.so.0"));
}

TEST_CASE("packages are not looked for in the working directory, and nothing there is run") {
  if (!fs::exists("/usr/bin/python3")) DDL_SKIP("there is no /usr/bin/python3");
  const Folder folder;
  // importlib.metadata imports csv.
  for (const char* const name : {"torch.py", "csv.py"})
    std::ofstream(folder / name) << "open('" << folder.path() << "/was-run', 'w')\n";
  ProgramSetup setup;
  setup.argv = {DDLRUN_PATH, "--check-build=torch", "--json"};
  setup.directory = folder.path();
  setup.environment = {"PATH=/usr/bin:/bin", "PYTHONPATH="};
  CHECK_THAT(capability_of(run_program(setup)).fields.dump(), !Catch::Contains(folder.path()));
  CHECK_FALSE(fs::exists(folder.path() + "/was-run"));
}

TEST_CASE("a package is found where python3 finds it, and a mere folder of its name is none") {
  if (!fs::exists("/usr/bin/python3")) DDL_SKIP("there is no /usr/bin/python3");
  const Folder folder;
  folder.command("python3", "PYTHONPATH=" + folder.path() + " exec /usr/bin/python3 -S \"$@\"");
  const auto package = [&](const std::string& name) { std::ofstream(folder / (name + "/__init__.py")); };
  fs::create_directories(folder / "ddl");
  CHECK_THAT(probe("python-package", folder).text("detail"), Catch::Contains("/python3 has no ddl"));
  package("ddl");
  CHECK_THAT(probe("python-package", folder).text("version"), Catch::Equals("ddl of unknown version"));
  fs::create_directories(folder / "ddlrun-0.2.7.dist-info");
  std::ofstream(folder / "ddlrun-0.2.7.dist-info/METADATA") << "Name: ddlrun\nVersion: 0.2.7\n";
  CHECK_THAT(probe("python-package", folder).text("version"), Catch::Equals("ddl 0.2.7"));
  // Its module for PyTorch needs both.
  CHECK_THAT(probe("pytorch-package", folder).text("detail"), Catch::Contains("/python3 has no torch"));
  fs::create_directories(folder / "torch");
  fs::create_directories(folder / "torch-1.13.dist-info");
  std::ofstream(folder / "torch-1.13.dist-info/METADATA") << "Name: torch\nVersion: 1.13\n";
  package("torch");
  const ReportedCapability torch = probe("pytorch-package", folder);
  CHECK(torch.exit_code == 0);
  CHECK(torch.text("version") == "PyTorch 1.13");
  CHECK_THAT(torch.text("detail"), Catch::Contains("import ddl.torch as hvd"));
}

TEST_CASE("an srun without a PMI type that libddl supports is not available for ranks") {
  const Folder folder;
  folder.command(
      "srun",
      R"sh(if [ "$1" = --version ]; then echo slurm 22.05; else echo "MPI plugin types are..."; echo "	none"; echo "	openmpi"; fi)sh");
  CHECK(probe("slurm", folder).works());
  CHECK_THAT(probe("slurm", folder).text("detail"), Catch::Contains("ddlrun is not in one here"));
  const ReportedCapability in_job =
      capability_of(run_ddlrun({"--launcher", "local", "--check-build=slurm", "--json"},
                               {"PATH=" + folder.path() + ":/usr/bin:/bin", "SLURM_JOB_ID=7",
                                "SLURM_JOB_NODELIST=n1", "SLURM_JOB_CPUS_PER_NODE=2"}));
  CHECK_THAT(in_job.text("detail"), Catch::Contains("inside Slurm job 7"));
  const ReportedCapability ranks = probe("srun", folder);
  CHECK_FALSE(ranks.works());
  CHECK_THAT(ranks.text("detail"), Catch::Contains("none, openmpi; libddl needs pmix or pmi2"));
}

TEST_CASE("NCCL and RCCL are tried by a sum on a GPU, here over the stand-ins for the vendors' libraries") {
  for (const auto& [key, version] : {std::pair{"nccl", "NCCL 2.28.9"}, {"rccl", "RCCL 2.28.9"}}) {
    CAPTURE(key);
    const ReportedCapability found = capability_of(run_ddlrun(
        {std::string("--check-build=") + key, "--json"}, {std::string("LD_LIBRARY_PATH=") + DDL_STAND_INS}));
    CHECK(found.exit_code == 0);
    CHECK(found.works());
    CHECK(found.text("version") == version);
    CHECK(found.text("detail") == "one rank added on a GPU with it");
  }
}

TEST_CASE(
    "the real NCCL is reported with its version, and with the reason why it cannot be used without a GPU") {
#ifdef DDL_NCCL_FILE
  const std::string folder = fs::path(DDL_NCCL_FILE).parent_path();
  const ReportedCapability found =
      capability_of(run_ddlrun({"--check-build=nccl", "--json"}, {"LD_LIBRARY_PATH=" + folder}));
  CHECK_THAT(found.text("version"), Catch::StartsWith("NCCL 2."));
  CHECK_THAT(found.text("file"), Catch::Contains("libnccl.so.2"));
  if (found.works()) DDL_SKIP("this host has a GPU");
  CHECK(found.exit_code == 1);
  CHECK_THAT(found.text("detail"), Catch::StartsWith("one rank cannot add on a GPU with it: "));
  CHECK_THAT(found.text("detail"), Catch::Contains("libcuda.so.1") || Catch::Contains("cuInit"));
#else
  DDL_SKIP("NCCL is not installed, or a sanitizer is there");
#endif
}

TEST_CASE("a vendor's library that works is reported with its version, even if this build cannot use it") {
  const Folder folder;
  for (const char* name :
       {"libnccl.so.2", "librccl.so.1", "libcuda.so.1", "libamdhip64.so.6", "libmpi.so.40", "libmpich.so.12"})
    folder.library(name);
  const ReportedCapability nccl = probe("nccl", folder);
  // There is no GPU for it.
  CHECK(nccl.exit_code == 1);
  CHECK_FALSE(nccl.works());
  CHECK_THAT(nccl.text("detail"), Catch::StartsWith("one rank cannot add on a GPU with it: "));
  CHECK(nccl.text("version") == "NCCL 2.18.5");
  CHECK(nccl.text("file") == folder.path() + "/libnccl.so.2");
  CHECK(probe("rccl", folder).text("version") == "RCCL 2.18.5");
  CHECK(probe("cuda", folder).text("version") == "CUDA 12.4");
  CHECK(probe("hip", folder).works());
  const ReportedCapability mpi = probe("open-mpi", folder);
  CHECK(mpi.exit_code == 0);
  CHECK(mpi.text("version") == "Stand-in MPI v1.0");
  CHECK(probe("mpich", folder).works());
}

TEST_CASE("a vendor's library that fails, crashes, exits or is not a library is reported as the reason") {
  const Folder folder;
  const Folder garbage;
  for (const char* name : {"libnccl.so.2", "librccl.so.1", "libcuda.so.1", "libamdhip64.so.6", "libmpi.so.40",
                           "libmpich.so.12"}) {
    folder.library(name);
    garbage.garbage(name);
  }
  for (const char* key : {"nccl", "rccl", "cuda", "hip", "open-mpi", "mpich"}) {
    CAPTURE(key);
    const ReportedCapability error = probe(key, folder, "error");
    CHECK_FALSE(error.works());
    CHECK_THAT(error.text("detail"), Catch::Contains("fails with 3"));
    CHECK_THAT(probe(key, folder, "crash").text("detail"), Catch::Contains("it crashed: SIGKILL"));
    CHECK_THAT(probe(key, folder, "leave").text("detail"), Catch::Contains("it ended without an answer"));
    CHECK_THAT(probe(key, garbage).text("detail"), Catch::Contains(".so"));
    CHECK_FALSE(probe(key, garbage).works());
  }
}

TEST_CASE("a probe-rank that fails is reported in every capability that it tests") {
  for (const auto& [script, message] :
       {std::pair{"echo 'cannot' >&2; exit 4", "cannot"},
        std::pair{"echo singleton ddl 1 0 libddl 0.0.1", "libddl"}, std::pair{"kill -SEGV $$", ""}}) {
    const Folder folder;
    const std::string own = folder.ddlrun_with_helpers(script);
    for (const char* key : {"libddl", "singleton", "host", "shared-memory", "pmix", "pmi", "pmix-server",
                            "pmi-server", "mpi", "local", "slurm-probe"}) {
      CAPTURE(script, key);
      const ReportedCapability found = capability_by({own}, key);
      CHECK(found.exit_code == 1);
      CHECK_FALSE(found.works());
      CHECK_FALSE(found.text("detail").empty());
      if (key != std::string("slurm-probe")) CHECK_THAT(found.text("detail"), Catch::Contains(message));
    }
  }
}

TEST_CASE("what is not built is told from what does not work here") {
  const Folder folder;
  const std::string own = folder.ddlrun_with_helpers("exit 4");
  fs::remove_all(folder.path() + "/libexec");
  for (const auto& [key, remedy] : {std::pair{"libddl", "--target product"},
                                    {"pmix-server", "--target product"},
                                    {"local", "--target product"},
                                    {"slurm-probe", "libslurm-dev"}}) {
    CAPTURE(key);
    const ReportedCapability found = capability_by({own}, key);
    CHECK(found.exit_code == 1);
    CHECK_FALSE(found.fields["built"]);
    CHECK_THAT(found.text("detail"),
               Catch::Contains("not tried, because this build has no " + folder.path()));
    CHECK_THAT(found.text("remedy"), Catch::Contains(remedy));
  }
}

TEST_CASE("a libpmix whose server does not start is reported") {
  // ddlrun is linked to libpmix: with a file that is not a library ddlrun itself would not start.
  for (const char* key : {"pmix-server", "pmix"}) {
    CAPTURE(key);
    const ReportedCapability found =
        capability_of(run_ddlrun({"--check-build=" + std::string(key), "--json"}, {"PMIX_MCA_gds=nonsense"}));
    CHECK(found.exit_code == 1);
    CHECK_FALSE(found.works());
    CHECK_THAT(found.text("detail"), Catch::Contains("probe-rank exits with 122: "));
    CHECK_THAT(found.text("detail"), !Catch::Contains("-----"));
  }
}

TEST_CASE("a module for an MPI that cannot be loaded is reported") {
  const Folder folder;
  for (const std::string mpi : {"abi", "mpich", "openmpi"}) {
    fs::create_directories(folder.path() + "/" + mpi);
    folder.garbage(mpi + "/libddl_mpi.so");
  }
  // The module for PMIx must be the real one.
  fs::create_symlink(fs::path(DDLRUN_PATH).parent_path() / "../lib/ddl/libddl_pmix.so",
                     folder.path() + "/libddl_pmix.so");
  for (const auto& [key, first] : {std::pair{"mpi", "openmpi"}, {"mpi-abi", "abi"}}) {
    const ReportedCapability found = capability_of(
        run_ddlrun({"--check-build=" + std::string(key), "--json"}, {"DDL_MODULE_DIR=" + folder.path()}));
    CHECK(found.exit_code == 1);
    CHECK_THAT(found.text("detail"),
               Catch::Contains("no module for MPI can be loaded (" + std::string(first) + ": "));
  }
}

TEST_CASE("a GPU management library that fails, crashes or is not a library is reported as the reason") {
  const Folder folder;
  const Folder garbage;
  for (const char* name : {"libnvidia-ml.so.1", "librocm_smi64.so"}) {
    folder.library(name);
    garbage.garbage(name);
  }
  for (const char* key : {"nvml", "rocm-smi"}) {
    CAPTURE(key);
    CHECK_THAT(probe(key, folder, "error").text("detail"), Catch::Contains("fails with 3"));
    for (const char* way : {"crash", "leave"}) {
      CAPTURE(way);
      const ReportedCapability found = probe(key, folder, way);
      CHECK(found.exit_code == 1);
      CHECK_FALSE(found.works());
      CHECK_FALSE(found.text("detail").empty());
    }
    CHECK_THAT(probe(key, garbage).text("detail"), Catch::Contains(".so"));
  }
}

TEST_CASE("an invalid file of the user and a topology that cannot be read are reported") {
  const Folder folder;
  fs::create_directories(folder.path() + "/ddlrun/sites");
  fs::create_directories(folder.path() + "/ddlrun/slurm");
  std::ofstream(folder.path() + "/ddlrun/sites/ours.yaml") << "name: [";
  std::ofstream(folder.path() + "/ddlrun/slurm/directives.mustache") << "{{#never-ended}}";
  const std::tuple<const char*, std::string, const char*> broken[] = {
      {"sites", "XDG_CONFIG_HOME=" + folder.path(), "ours.yaml:"},
      {"slurm-templates", "XDG_CONFIG_HOME=" + folder.path(), "directives.mustache"},
      {"hwloc", "HWLOC_COMPONENTS=stop", "topology: "}};
  for (const auto& [key, variable, message] : broken) {
    CAPTURE(key);
    const ReportedCapability found =
        capability_of(run_ddlrun({"--check-build=" + std::string(key), "--json"}, {variable}));
    CHECK(found.exit_code == 1);
    CHECK_FALSE(found.works());
    CHECK_THAT(found.text("detail"), Catch::Contains(message));
  }
}

TEST_CASE("a system call that a container's filter forbids is reported with the kernel's error") {
  const std::pair<const char*, const char*> refused[] = {{"memfd", "memfd_create"},
                                                         {"pidfd", "pidfd_open"},
                                                         {"memory-policy", "set_mempolicy"},
                                                         {"cma", "process_vm_readv"},
                                                         {"io-uring", "io_uring_setup"}};
  for (const auto& [key, call] : refused) {
    CAPTURE(key);
    const ReportedCapability found = capability_by({DDL_WITHOUT_SYSCALLS, call, DDLRUN_PATH}, key);
    CHECK(found.exit_code == 1);
    CHECK_FALSE(found.works());
    CHECK_THAT(found.text("detail"), Catch::Contains("Operation not permitted"));
  }
  // The reason may also be that cgroup v2 is not mounted.
  const ReportedCapability cgroup = capability_by({DDL_WITHOUT_SYSCALLS, "mkdir", DDLRUN_PATH}, "cgroup");
  CHECK(cgroup.exit_code == 1);
  CHECK_FALSE(cgroup.text("detail").empty());
  const ReportedCapability tcp = capability_by({DDL_WITHOUT_SYSCALLS, "socket", DDLRUN_PATH}, "tcp");
  CHECK(tcp.exit_code == 1);
  CHECK_THAT(tcp.text("detail"), Catch::Contains("no network interface"));
  const ReportedCapability limits =
      capability_by({"/bin/sh", "-c", "ulimit -n 200; exec \"$@\"", "sh", DDLRUN_PATH}, "limits");
  CHECK(limits.exit_code == 1);
  CHECK_THAT(limits.text("detail"), Catch::Contains("open files 200"));
}

TEST_CASE("a plugin of hwloc that cannot be loaded is reported") {
  const Folder folder;
  folder.garbage("hwloc_cuda.so");
  const ProgramRun run = run_ddlrun({"--check-build=hwloc-plugins"}, {"HWLOC_PLUGINS_PATH=" + folder.path()});
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.out, Catch::Contains("works here no") && Catch::Contains(folder.path() + "/hwloc_cuda.so"));
}

TEST_CASE("with -H every host is checked, and the exit code covers all of them") {
  const ProgramRun run = run_ddlrun({"-H", "localhost", "--check-build", "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const json parsed = json::parse(run.out);
  CHECK(parsed["kind"] == "check_build_hosts");
  REQUIRE(parsed["hosts"].size() == 1);
  CHECK(parsed["hosts"][0]["host"] == "localhost");
  CHECK(parsed["hosts"][0]["boxes"].size() > 30);
  CHECK(run_ddlrun({"-H", "localhost", "--check-build=pidfd"}).exit_code == 0);
  CHECK(run_ddlrun({"-H", "localhost", "--check-build=nccl"}).exit_code == 1);
}

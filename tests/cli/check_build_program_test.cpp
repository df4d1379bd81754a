// ddlrun --check-build on this machine, and beside stand-ins of what it looks at: a file that exists and does not work is told.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/program_run.h"
#include "support/catch.h"

using ddl::test::ProgramRun;
using ddl::test::ProgramSetup;
using ddl::test::run_program;
using nlohmann::json;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

ProgramRun ddlrun(Words words, Words environment = {}) {
  ProgramSetup setup;
  setup.argv = std::move(words);
  setup.argv.insert(setup.argv.begin(), DDLRUN_PATH);
  setup.environment = std::move(environment);
  return run_program(setup);
}

/// A folder with stand-ins.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "ddl-check-build-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void command(const std::string& name, const std::string& script) const {
    std::ofstream(path_ + "/" + name) << "#!/bin/sh\n" << script << "\n";
    REQUIRE(::chmod((path_ + "/" + name).c_str(), 0755) == 0);
  }
  void library(const std::string& name) const {
    fs::create_symlink(DDL_STAND_IN_LIBRARY, path_ + "/" + name);
  }
  void garbage(const std::string& name) const { std::ofstream(path_ + "/" + name) << "no library"; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Box {
  json fields;
  int exit_code = -1;
  bool works() const { return fields["works"]; }
  std::string text(const char* field) const { return fields[field]; }
};

Box box(const std::string& key, const Folder& folder, const std::string& stand_in = "ok") {
  const char* path = std::getenv("PATH");
  const ProgramRun run = ddlrun({"--check-build=" + key, "--json"},
                                {"PATH=" + folder.path() + ":" + (path != nullptr ? path : "/usr/bin:/bin"),
                                 "LD_LIBRARY_PATH=" + folder.path(), "DDL_STAND_IN=" + stand_in});
  INFO(run.err);
  REQUIRE((run.exit_code == 0 || run.exit_code == 1));
  const json parsed = json::parse(run.out);
  REQUIRE(parsed["boxes"].size() == 1);
  return {parsed["boxes"][0], run.exit_code};
}

}  // namespace

TEST_CASE("what the build itself needs works here, and every empty box has its reason") {
  const ProgramRun run = ddlrun({"--check-build", "--json"});
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
  const ProgramRun text = ddlrun({"-cb"});
  CHECK(text.exit_code == 0);
  CHECK_THAT(
      text.out,
      Catch::Contains("Available Frameworks:\n    [X] C and C++\n    [ ] TensorFlow\n    [ ] PyTorch\n") &&
          Catch::Contains("Available Controllers:\n    [X] PMIx\n") &&
          Catch::Contains("Available Tensor Operations:\n    [X] Host\n"));
}

TEST_CASE("one box is asked by its name, and the exit code tells") {
  const ProgramRun works = ddlrun({"--check-build=pidfd"});
  CHECK(works.exit_code == 0);
  CHECK_THAT(works.out, Catch::StartsWith("pidfd: built yes, works here yes"));
  const ProgramRun not_built = ddlrun({"-cb=nccl"});
  CHECK(not_built.exit_code == 1);
  CHECK(ddlrun({"--check-build="}).exit_code == 2);
  const ProgramRun unknown = ddlrun({"--check-build=ncll"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, Catch::Contains("knows no 'ncll'") && Catch::Contains("nccl"));
}

TEST_CASE("a command that is there and fails is told with what it did") {
  const Folder folder;
  folder.command("ssh", "echo 'bad configuration' >&2; exit 255");
  folder.command("srun", "kill -SEGV $$");
  folder.command("mpirun", "exit 0");
  folder.command("sbatch", "echo 'no cluster'; exit 1");
  folder.command("python3", "exit 1");
  const Box ssh = box("ssh", folder);
  CHECK(ssh.exit_code == 1);
  CHECK_THAT(ssh.text("detail"), Catch::Contains("/ssh -V exits with 255: bad configuration"));
  CHECK_THAT(box("slurm", folder).text("detail"), Catch::Contains("/srun --version was killed by SIGSEGV"));
  CHECK_THAT(box("srun", folder).text("detail"), Catch::Contains("was killed by SIGSEGV"));
  CHECK_THAT(box("mpirun", folder).text("detail"), Catch::Contains("/mpirun: it is neither Open MPI's"));
  CHECK_THAT(box("sbatch", folder).text("detail"), Catch::Contains("exits with 1: no cluster"));
  CHECK_THAT(box("torch", folder).text("detail"), Catch::Contains("/python3 has no torch"));
}

TEST_CASE("an srun without a PMI that libddl knows does not start its ranks") {
  const Folder folder;
  folder.command(
      "srun",
      R"sh(if [ "$1" = --version ]; then echo slurm 22.05; else echo "MPI plugin types are..."; echo "	none"; echo "	openmpi"; fi)sh");
  CHECK(box("slurm", folder).works());
  const Box ranks = box("srun", folder);
  CHECK_FALSE(ranks.works());
  CHECK_THAT(ranks.text("detail"), Catch::Contains("none, openmpi; libddl needs pmix or pmi2"));
}

TEST_CASE("a vendor's library that answers is told with its version, though this build makes no use of it") {
  const Folder folder;
  for (const char* name :
       {"libnccl.so.2", "librccl.so.1", "libcuda.so.1", "libamdhip64.so.6", "libmpi.so.40", "libmpich.so.12"})
    folder.library(name);
  const Box nccl = box("nccl", folder);
  CHECK(nccl.exit_code == 1);
  CHECK(nccl.works());
  CHECK(nccl.text("version") == "NCCL 2.18.5");
  CHECK(nccl.text("file") == folder.path() + "/libnccl.so.2");
  CHECK(box("rccl", folder).text("version") == "RCCL 2.18.5");
  CHECK(box("cuda", folder).text("version") == "CUDA 12.4");
  CHECK(box("hip", folder).works());
  const Box mpi = box("open-mpi", folder);
  CHECK(mpi.exit_code == 0);
  CHECK(mpi.text("version") == "Stand-in MPI v1.0");
  CHECK(box("mpich", folder).works());
}

TEST_CASE("a vendor's library that fails, crashes, leaves or is none is a reason") {
  const Folder folder;
  const Folder garbage;
  for (const char* name : {"libnccl.so.2", "librccl.so.1", "libcuda.so.1", "libamdhip64.so.6", "libmpi.so.40",
                           "libmpich.so.12"}) {
    folder.library(name);
    garbage.garbage(name);
  }
  for (const char* key : {"nccl", "rccl", "cuda", "hip", "open-mpi", "mpich"}) {
    CAPTURE(key);
    const Box error = box(key, folder, "error");
    CHECK_FALSE(error.works());
    CHECK_THAT(error.text("detail"), Catch::Contains("fails with 3"));
    CHECK_THAT(box(key, folder, "crash").text("detail"), Catch::Contains("it crashed: SIGKILL"));
    CHECK_THAT(box(key, folder, "leave").text("detail"), Catch::Contains("it ended without an answer"));
    CHECK_THAT(box(key, garbage).text("detail"), Catch::Contains(".so"));
    CHECK_FALSE(box(key, garbage).works());
  }
}

TEST_CASE("a plugin of hwloc's that cannot be loaded is told") {
  const Folder folder;
  folder.garbage("hwloc_cuda.so");
  const ProgramRun run = ddlrun({"--check-build=hwloc-plugins"}, {"HWLOC_PLUGINS_PATH=" + folder.path()});
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.out, Catch::Contains("works here no") && Catch::Contains(folder.path() + "/hwloc_cuda.so"));
}

TEST_CASE("on hosts each of them is asked, and what they share is one answer") {
  const ProgramRun run = ddlrun({"-H", "localhost", "--check-build", "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const json parsed = json::parse(run.out);
  CHECK(parsed["kind"] == "check_build_hosts");
  REQUIRE(parsed["hosts"].size() == 1);
  CHECK(parsed["hosts"][0]["host"] == "localhost");
  CHECK(parsed["hosts"][0]["boxes"].size() > 30);
  CHECK(ddlrun({"-H", "localhost", "--check-build=pidfd"}).exit_code == 0);
  CHECK(ddlrun({"-H", "localhost", "--check-build=nccl"}).exit_code == 1);
}

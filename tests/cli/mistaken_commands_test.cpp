// Commands, files and folders that are not what was meant, given to the real program: exit code, sentences, and that
// nothing is written.
#include <elf.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "cli/program_run.h"
#include "cli/reports/start_advice.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

namespace {

struct WrongCommand {
  Words words;
  int exit_code;
  std::string message;
  std::string next;                      ///< the hint, or what to do next; "" if the message says it
  std::vector<std::string> variables{};  ///< "NAME=VALUE"
};

// clang-format off
const std::vector<WrongCommand> kWrongCommands = {
    // The command.
    {{}, 2, "no command was given", "hint: for example: ddlrun -np "},
    {{"-np", "1", "no-such-program"}, 127, "command not found: no-such-program (no such program in PATH)", ""},
    {{"-np", "1", "./no-such-program"}, 127, "no such file: ", ""},
    {{"-np", "1", "program"}, 127, "command not found: program (no such program in PATH; write ./program", ""},
    {{"-np", "1", "trian.py"}, 127, "command not found: trian.py (no such program in PATH; ", ""},
    {{"-np", "1", "./trian.py"}, 127, "has train.py", ""},
    {{"-np", "1", "python"}, 127, "command not found: python (no such program in PATH; python3 is there: write python3)", "", {"PATH=pythons"}},
    {{"-H", "data.txt", "true"}, 2, "-H takes names of hosts, and data.txt is a file", "hint: write --hostfile data.txt"},
    {{"-np", "1", "./folder"}, 126, "folder: it is a directory; name the program in it", ""},
    {{"-np", "1", "./program/"}, 127, "cannot execute ./program/: Not a directory", ""},
    {{"-np", "1", "train.py"}, 127, "command not found: train.py", "next: start it with its interpreter: python3 train.py"},
    {{"-np", "1", "./train.py"}, 126, "cannot execute ./train.py: Permission denied", "next: make it executable (chmod +x), or start it"},
    {{"-np", "1", "./run.sh"}, 126, "cannot execute ./run.sh: Permission denied", "interpreter: bash ./run.sh"},
    {{"-np", "1", "./main.c"}, 126, "cannot execute ./main.c: Permission denied", "next: it looks like source code: compile it"},
    {{"-np", "1", "./data"}, 126, "cannot execute ./data: Permission denied", "as in python3 ./data"},
    {{"-np", "1", "./no-interpreter"}, 127, "its first line names the interpreter /no/such/interpreter", ""},
    {{"-np", "1", "./windows.sh"}, 127, "its first line ends with a carriage return (\\r)", ""},
    {{"-np", "1", "./other-machine"}, 126, "it was built for another kind of machine", ""},
    {{"-np", "1", "python3 train.py"}, 127, "command not found: python3 train.py", "next: the command is a single word: omit the quotes"},
    {{"-np", "1", "true | wc"}, 127, "command not found: true | wc", "sh -c 'true | wc'"},
    {{"-np", "1", "A=1", "true"}, 127, "command not found: A=1", "next: to set a variable for the ranks: -x A=1"},
    {{"-np", "1", "A=1 true"}, 127, "command not found: A=1 true", "-x A=1\n"},
    {{"-np", "1", "cd", "/tmp"}, 127, "command not found: cd", "next: it is a word of the shell"},
    {{"-np", "1", "~/program"}, 127, "/~/program", "next: no shell has replaced ~"},
    {{"-np", "1", "$HOME/program"}, 127, "/$HOME/program", "next: no shell has replaced the variable"},
    {{"-np", "1", "true\n"}, 127, "command not found: true^J", "next: the command is a single word"},
    {{"-np", "1", "."}, 127, "command not found: .", ""},
    {{"-np", "4\n", "true"}, 2, "'4^J' is not a whole number of ranks", "hint: -np N"},
    {{"-np", "100000", "true"}, 2, "100000 ranks asked for, and this machine has", ""},
    {{"-np", "100000", "--dry-run", "true"}, 2, "100000 ranks asked for", ""},
    {{"-np", "1", "-x", "PATH=", "true"}, 127, "command not found: true", ""},
    // Folders and files.
    {{"-np", "1", "--workdir", "missing", "true"}, 127, "/missing does not exist", "hint: create it"},
    {{"-np", "1", "--workdir", "data", "true"}, 126, "/data is not a directory", "hint: give a directory with --workdir"},
    {{"-np", "1", "--dry-run", "--workdir", "missing", "true"}, 127, "/missing does not exist", "hint: create it"},
    {{"-np", "1", "--output-filename", "data/logs", "true"}, 2, "data/logs cannot be created", "hint: give another directory"},
    {{"-np", "1", "--timeline-filename", "folder", "true"}, 2, "folder: it is not a regular file; choose another name", ""},
    {{"-np", "1", "--timeline-filename", "missing/t", "true"}, 2, "missing/t: create a file beside it: No such file", ""},
    {{"-np", "1", "true"}, 122, "(TMPDIR chooses where)", "", {"TMPDIR=/no/such/folder"}},
    {{"-np", "1", "-i", "missing", "-H", "node9", "true"}, 2, "/missing cannot be read: No such file", "hint: name your key with -i"},
    {{"-np", "1", "--site", "lumig", "true"}, 2, "no profile of a site 'lumig'; did you mean lumi-g?", "--list-sites"},
    {{"-np", "1", "--site", "./missing.yaml", "true"}, 2, "missing.yaml: No such file", "--list-sites"},
    {{"--show-site", "./other-machine"}, 2, "other-machine:1: ", "--list-sites"},
    {{"--slurm", "-np", "1", "--template", "missing", "true"}, 2, "the template cannot be read: open missing", "hint:"},
    {{"--slurm", "-np", "1", "-o", "folder", "true"}, 2, "folder is a directory", "hint: name a file with -o, as in -o folder/job.sh"},
    {{"--slurm", "-np", "1", "-o", "folder", "--force", "true"}, 2, "folder is a directory", "hint: name a file"},
    {{"--slurm", "-np", "1", "-o", "run.sh", "true"}, 2, "run.sh: File exists", "hint: --force replaces it"},
    {{"--slurm", "-np", "1", "-o", "missing/job.sh", "true"}, 2, "missing/job.sh: No such file", "hint: name another file"},
    {{"--slurm", "true"}, 2, "the number of ranks is unknown: -np N", "hint:"},
    {{"--show-bind", "-np", "1", "--topology", "missing.xml"}, 2, "--topology: open missing.xml: No such file", "hint:"},
    {{"--show-bind", "-np", "1", "--topology", "data"}, 2, "data is not a topology that hwloc has written", "hint:"},
    {{"--show-bind", "-np", "1", "--topology", "pack:0"}, 2, "\"pack:0\" is neither a file nor a synthetic topology", "hint:"},
    {{"--show-bind", "-np", "1", "--topology-text", "missing"}, 2, "--topology-text: open missing", "hint:"},
    {{"--lint", "missing"}, 127, "open missing: No such file", "hint: name a script that exists"},
    {{"--lint", "folder"}, 2, "folder is a directory", "hint: name a job script in it"},
    // What is asked, and of whom.
    {{"--check-box", "NCCL"}, 2, "there is no capability 'NCCL'", "hint: did you mean nccl?"},
    {{"--timeline-view", "folder"}, 2, "folder: it is not a regular file", "give a file that --timeline-filename"},
    {{"--timeline-view", "missing"}, 2, "missing: open: No such file", "give a file that --timeline-filename"},
    {{"--timeline-view", "folder", "--report", "missing/v.html"}, 2, "missing/v.html", "create the folder"},
    {{"-np", "1", "--mpi", "--mpirun", "./data", "true"}, 122, "data: it cannot be started: Permission denied", "hint: name another with --mpirun"},
    {{"-np", "1", "--launch-agent", "no-such-agent %h", "-H", "node9", "true"}, 122, "node9: starting no-such-agent: No such file", ""},
    {{"-np", "1", "--launcher", "srun", "true"}, 2, "ddlrun does not run in one", "hint: start one with salloc first"},
};
// clang-format on

void write_file(const std::string& path, const std::string& text, bool executable = false) {
  std::ofstream(path) << text;
  if (executable) fs::permissions(path, fs::perms::owner_all);
}

/// An ELF header of a machine that exists nowhere.
std::string program_of_other_machine() {
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, reinterpret_cast<char*>(header.e_ident));
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_NONE;
  header.e_version = EV_CURRENT;
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

std::set<std::string> all_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) names.insert(entry.path().string());
  return names;
}

}  // namespace

TEST_CASE(
    "a command or a file that is not what was meant gives its exit code and says what to do, and writes "
    "nothing") {
  const ddl::test::TemporaryDirectory folder;
  fs::create_directory(folder / "folder");
  write_file(folder / "program", "#!/bin/sh\n", true);
  write_file(folder / "train.py", "print(1)\n");
  write_file(folder / "run.sh", "echo\n");
  write_file(folder / "main.c", "int main() {}\n");
  write_file(folder / "data", "1 2 3\n");
  write_file(folder / "data.txt", "node1\n");
  fs::create_directory(folder / "pythons");
  write_file(folder / "pythons/python3", "#!/bin/sh\n", true);
  write_file(folder / "no-interpreter", "#!/no/such/interpreter\n", true);
  write_file(folder / "windows.sh", "#!/bin/sh\r\n", true);
  write_file(folder / "other-machine", program_of_other_machine(), true);
  const auto before = all_in(folder.path());
  for (const WrongCommand& wrong : kWrongCommands) {
    INFO("ddlrun " << ddl::join(wrong.words, " "));
    ddl::test::ProgramSetup setup;
    setup.argv = wrong.words;
    setup.argv.insert(setup.argv.begin(), DDLRUN_PATH);
    setup.directory = folder.path();
    setup.environment = wrong.variables;
    const ddl::test::ProgramRun run = ddl::test::run_program(setup);
    CHECK(run.exit_code == wrong.exit_code);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, Catch::StartsWith("ddlrun: ") && Catch::Contains(wrong.message));
    CHECK_THAT(run.err, Catch::Contains(wrong.next));
    CHECK(ddl::split(ddl::trim(run.err), '\n').size() <= 3);
    CHECK((all_in(folder.path()) == before));
  }
}

TEST_CASE("what to do next depends on the name of the command that could not be started") {
  const auto missing = [](const Words& command) {
    return ddl::cli::start_advice("command not found: " + command.front() + " (...)", command);
  };
  const auto here = [](const std::string& file) {
    return ddl::cli::start_advice("command not found: " + file + " (...; write ./" + file + " ...)", {file});
  };
  CHECK_THAT(missing({"module", "load", "x"}), Catch::Contains("load what the ranks need before ddlrun"));
  CHECK_THAT(missing({"conda", "activate"}), Catch::Contains("a function of the shell"));
  CHECK_THAT(missing({"export", "A=1"}), Catch::Contains("a word of the shell, not a program"));
  CHECK_THAT(here("sim.jl"), Catch::Contains("julia sim.jl"));
  CHECK_THAT(here("fit.R"), Catch::Contains("Rscript fit.R"));
  CHECK_THAT(here("kernel.cu"), Catch::Contains("compile it"));
  CHECK(missing({"sim.jl"}).empty());
  CHECK(missing({"train"}).empty());
  CHECK(missing({"bin/train.py"}).empty());  // there is no such file at all
  CHECK(missing({".py"}).empty());
  CHECK(missing({"=1"}).empty());
  CHECK(missing({"2a=1"}).empty());
  CHECK_THAT(ddl::cli::start_advice("cannot execute ./f.F90: Exec format error", {"./f.F90"}),
             Catch::Contains("compile it"));
  CHECK(ddl::cli::start_advice("fork: Resource temporarily unavailable", {"./a b"}).empty());
}

TEST_CASE("an option of ddlrun behind the program is named when the program complains") {
  const auto advice = [](const Words& command, const std::string& line) {
    return ddl::cli::misplaced_option_advice(command, {"usage: train [-h]", line});
  };
  CHECK(advice({"python3", "train.py", "-np", "4"}, "train.py: error: unrecognized arguments: -np 4") ==
        "-np stands behind python3 and belongs to it: options of ddlrun come before the command");
  CHECK(advice({"hostname", "--hostfile=x"}, "hostname: unrecognized option '--hostfile=x'")
            .starts_with("--hostfile=x "));
  CHECK(advice({"./train", "-np", "4"}, "loss is not finite").empty());
  CHECK(advice({"./train", "--epochs", "4"}, "unrecognized arguments: --epochs 4").empty());
}

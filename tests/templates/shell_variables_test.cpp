// The values of a script's variables, where they are certain, and what it costs to find them.
#include "templates/lint/shell_variables.h"

#include "support/catch.h"
#include "templates/lint/script_text.h"
#include "templates/lint/started_programs.h"

using namespace ddl::templates;

namespace {

/// The words of the script's last command.
std::vector<std::string> last_words(const std::string& script) {
  return texts_of(read_script("#!/bin/bash\n" + script).commands.back().words);
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("variables and arrays in words are replaced and split as by a shell") {
  CHECK(last_words("A='b c'\na $A \"$A\" '$B'") == Lines{"a", "b", "c", "b c", "$B"});
  CHECK(last_words("A=(b 'c d'\n  --e=$F)\nA+=(g)\n\"${A[@]}\" h") == Lines{"b", "c d", "--e=$F", "g", "h"});
  CHECK(last_words("A=\na $A b") == Lines{"a", "b"});
  CHECK(last_words("A=x:$(b c d)\na $A $(e f)") == Lines{"a", "x:$(b c d)", "$(e f)"});
  CHECK(last_words("C=\"srun -n 2\"\neval \"$C app 'b c'\"") == Lines{"srun", "-n", "2", "app", "b c"});
  // Not certain: what is set at two places, and what a variable had where another one was set.
  CHECK(last_words("if a; then A=b; else A=c; fi\nd $A") == Lines{"d", "$A"});
  CHECK(last_words("F=a\nM=m:$F\nF=b\nc $M") == Lines{"c", "m:${F:-}"});
  CHECK(last_words("A=b\nread A\nc ${A:-d}") == Lines{"c", "${A:-d}"});
}

TEST_CASE("an srun in a variable or an array is a step") {
  const ScriptText script = read_script(
      "#!/bin/bash\nRUN=\"srun -n 8 --mpi=pmix\"\nARGS=(srun --cpu-bind=none)\n$RUN ./a\n\"${ARGS[@]}\" "
      "./b\n");
  REQUIRE(script.steps.size() == 2);
  CHECK(script.steps[0].line == 4);
  CHECK(script.steps[0].options.front().value == "8");
  CHECK(script.steps[0].program == Lines{"./a"});
  CHECK(script.steps[1].options.front().value == "none");
}

TEST_CASE("a chain of variables that append costs what its values are long, up to a limit") {
  const auto work = [](int count, bool one_name) {
    std::string script = "#!/bin/bash\n";
    for (int i = 1; i <= count; ++i) {
      const std::string name = one_name ? "A" : "A" + std::to_string(i);
      const std::string before = one_name ? "A" : "A" + std::to_string(i - 1);
      script += "export " + name + "=\"$" + before + ",x\"\necho $" + name + "\n";
    }
    return read_script(script).variables.work();
  };
  for (const bool one_name : {false, true}) {
    const std::size_t half = work(1000, one_name);
    CHECK(work(2000, one_name) <= 2 * half + half / 4);
  }
  std::string doubling = "#!/bin/bash\nA=x\n";
  for (int i = 0; i < 3000; ++i) doubling += "B" + std::to_string(i) + "=$A$A\nA=$A$A\necho $A $A\n";
  CHECK(read_script(doubling).variables.work() <= std::size_t{1} << 23);
}

TEST_CASE("what a command line starts in the end") {
  const auto started = [](const Lines& words) {
    std::string names;
    for (const auto& program : started_programs(words)) names += program.front() + " ";
    return names;
  };
  CHECK(started({"env", "-u", "A", "B=1", "nice", "-n", "5", "timeout", "-k", "5", "10", "a", "b"}) == "a ");
  CHECK(started({"conda", "run", "-n", "e", "python", "a.py"}) == "conda python ");
  CHECK(started({"apptainer", "exec", "--nv", "-B", "/a", "i.sif", "python"}) == "apptainer python ");
  CHECK(started({"bash", "-c", "cd x; exec torchrun a.py"}) == "cd torchrun ");
  CHECK(started({"command", "-v", "srun"}) == "command ");
  CHECK(node_launcher(Lines{"python3", "-m", "torch.distributed.run", "a.py"}) == NodeLauncher::kTorchrun);
  CHECK(node_launcher(Lines{"python3", "-u", "-X", "dev", "-bm", "accelerate.commands.launch"}) ==
        NodeLauncher::kAccelerate);
  CHECK(node_launcher(Lines{"python3", "-u", "a.py", "-m", "torch.distributed.run"}) == NodeLauncher::kNone);
  CHECK(node_launcher(Lines{"python3", "-W"}) == NodeLauncher::kNone);
  CHECK(node_launcher(Lines{"accelerate", "launch"}) == NodeLauncher::kAccelerate);
  CHECK(node_launcher(Lines{"python", "train.py", "torchrun"}) == NodeLauncher::kNone);
}

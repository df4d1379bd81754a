// Directives, commands and steps of a job script.
#include "templates/lint/script_text.h"

#include "support/catch.h"
#include "templates/script/batch_system.h"
#include "templates/script/script_renderer.h"

using namespace ddl::templates;

namespace {

using Lines = std::vector<std::string>;

Lines texts_of(const std::vector<SlurmOption>& options) {
  Lines result;
  for (const SlurmOption& option : options)
    result.push_back(std::to_string(option.line) + ": " + option.name + " " + option.value);
  return result;
}

Lines directives_of(const std::string& line) {
  return texts_of(read_script("#!/bin/bash\n#SBATCH " + line + "\n").directives);
}

}  // namespace

TEST_CASE("directives in all their spellings") {
  CHECK(directives_of("--mem=5G --time 1:00") == Lines{"2: --mem 5G", "2: --time 1:00"});
  CHECK(directives_of("-A a -p b -N2 -n 3 -c4 -t 5 -J j -o o -e e") ==
        Lines{"2: --account a", "2: --partition b", "2: --nodes 2", "2: --ntasks 3", "2: --cpus-per-task 4",
              "2: --time 5", "2: --job-name j", "2: --output o", "2: --error e"});
  CHECK(directives_of("-q q -C c -d d -a 1-2 -G 8 -x n1") == Lines{"2: --qos q", "2: --constraint c",
                                                                   "2: --dependency d", "2: --array 1-2",
                                                                   "2: --gpus 8", "2: --exclude n1"});
  CHECK(directives_of("--exclusive --requeue -Hv -W -n 2") == Lines{"2: --exclusive ", "2: --requeue ",
                                                                    "2: --hold ", "2: --verbose ",
                                                                    "2: --wait ", "2: --ntasks 2"});
  CHECK(directives_of("--comment=\"a b\" --constraint='x y' # --time=5") ==
        Lines{"2: --comment a b", "2: --constraint x y"});
  // As sbatch does: a backslash goes, and a # ends the line in the middle of a word.
  CHECK(directives_of("\\--mem=5 --job-name=a#b --time=5") == Lines{"2: --mem 5", "2: --job-name a"});
}

TEST_CASE("sbatch's input variables do not replace what the script says") {
  const ddl::Environment own = {{"PATH", "/usr/bin"},      {"SBATCH_ACCOUNT", "theirs"},
                                {"SBATCH_TIMELIMIT", "1"}, {"SBATCH_PARTITION", "p"},
                                {"SBATCH_WAIT", "1"},      {"SBATCH_ARRAY_INX", "1-9"},
                                {"SBATCH_QOS", "high"}};
  CHECK(ddl::templates::sbatch().submit_environment(own,
                                                    "#!/bin/bash\n#SBATCH --account=mine\n#SBATCH "
                                                    "--time=30:00\n#SBATCH --array=0-3\n./train --qos\n") ==
        ddl::Environment{{"PATH", "/usr/bin"}, {"SBATCH_PARTITION", "p"}, {"SBATCH_QOS", "high"}});
}

TEST_CASE("sbatch reads directives up to the first command") {
  const ScriptText script = read_script(
      "#!/bin/bash -e\r\n#SBATCH -n 1\r\n\r\n  # text\n#SBATCH\t-c 2\n# SBATCH -t 3\n #SBATCH -t 3\nmodule "
      "purge\n"
      "#SBATCH -t 5\n");
  CHECK(script.shebang == "/bin/bash -e");
  CHECK(texts_of(script.directives) == Lines{"2: --ntasks 1", "5: --cpus-per-task 2"});
  CHECK(script.first_command_line == 8);
  CHECK(read_script("#!/bin/bash\n").first_command_line == 0);
}

TEST_CASE("directives of several components, and words that are not options") {
  const ScriptText script = read_script("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH mem=5 -n2\n");
  CHECK(script.components == 2);
  CHECK(texts_of(script.directives) == Lines{"2: --ntasks 1", "4: --ntasks 2"});
  REQUIRE(script.directive_lines.size() == 3);
  CHECK(script.directive_lines[1].not_options.empty());
  CHECK(script.directive_lines[2].not_options == Lines{"mem=5"});
}

TEST_CASE("every srun is a step") {
  const ScriptText script = read_script(R"(#!/bin/bash
srun -n 4 --mpi=pmix \
     ./app --ntasks 7
A=1 exec srun --exclusive -l ./app
if true; then env B=2 /usr/bin/srun --cpu_bind=cores "$MY APP"; fi
for i in 1 2; do time srun -W 5 -K1 app & done
echo srun -n 4
# srun -n 4
cat <<EOF
srun -n 4
EOF
)");
  REQUIRE(script.steps.size() == 4);
  CHECK(texts_of(script.steps[0].options) == Lines{"2: --ntasks 4", "2: --mpi pmix"});
  CHECK(script.steps[0].program == Lines{"./app", "--ntasks", "7"});
  CHECK(texts_of(script.steps[1].options) == Lines{"4: --exclusive ", "4: --label "});
  CHECK(script.steps[1].environment.front().name == "A");
  CHECK(texts_of(script.steps[2].options) == Lines{"5: --cpu-bind cores"});
  CHECK(script.steps[2].program == Lines{"$MY APP"});
  CHECK(script.steps[2].environment.front().value == "2");
  CHECK(texts_of(script.steps[3].options) == Lines{"6: --wait 5", "6: --kill-on-bad-exit 1"});
}

TEST_CASE("assignments of the script and of those that it writes") {
  const ScriptText script = read_script(R"(#!/bin/bash
#SBATCH --export=ALL,A=1
export B=2 C
D=3 srun --export=E=4 app
cat > wrapper <<'EOF'
#!/bin/bash
export F=$SLURM_LOCALID
EOF
cat > config.txt <<'EOF'
G=6
EOF
)");
  Lines names;
  for (const ShellAssignment& one : script.variables.all())
    names.push_back(std::to_string(one.line) + ": " + one.name + "=" + one.value);
  CHECK(names == Lines{"2: A=1", "3: B=2", "4: D=3", "7: F=$SLURM_LOCALID", "4: E=4"});
  REQUIRE(script.written_commands.size() == 1);
  CHECK(script.written_commands[0].line == 7);
}

// A shell script's commands are found, and other text is ignored.
#include "templates/lint/shell_commands.h"

#include "support/catch.h"

using namespace ddl::templates;

namespace {

/// Each command as "line: word|word", with assignments in front and outputs behind.
std::vector<std::string> commands_of(std::string_view text) {
  std::vector<std::string> result;
  for (const ShellCommand& command : read_shell(text).commands) {
    std::string line = std::to_string(command.line) + ":";
    for (const ShellAssignment& one : command.assignments) line += " " + one.name + "=" + one.value;
    for (const ShellWord& word : command.words) line += "|" + word.text;
    for (const std::string& file : command.outputs) line += ">" + file;
    result.push_back(line);
  }
  return result;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("words are split as by a shell") {
  CHECK(commands_of("a 'b c' \"d \\\"e\\\"\" f\\ g") == Lines{"1:|a|b c|d \"e\"|f g"});
  CHECK(commands_of("a x\\\n  b\nc") == Lines{"1:|a|x|b", "3:|c"});
  CHECK(commands_of("a $(b ')' \"c)\" $(d)) ${E:-f g} `h i`") ==
        Lines{"1:|a|$(b ')' \"c)\" $(d))|${E:-f g}|`h i`"});
  CHECK(commands_of("a \"$(dirname \"$0\")/b\"") == Lines{"1:|a|$(dirname \"$0\")/b"});
  CHECK(commands_of("a 'b\nc'\nd") == Lines{"1:|a|b\nc", "3:|d"});
  const auto words = read_shell("exec \"$@\" $@").commands.front().words;
  REQUIRE(words.size() == 3);
  CHECK(words[1].quoted);
  CHECK_FALSE(words[2].quoted);
}

TEST_CASE("commands end at operators, and keywords are not commands") {
  CHECK(commands_of("if a; then b && c; fi; for i in 1 2; do d & done | e") ==
        Lines{"1:|a", "1:|b", "1:|c", "1:|fi", "1:|for|i|in|1|2", "1:|d", "1:|done", "1:|e"});
  CHECK(commands_of("f() {\n  a\n}") == Lines{"1:|f", "2:|a", "3:|}"});
  CHECK(commands_of("((i << 2))\na $((1 << 2)) b") == Lines{"2:|a|$((1 << 2))|b"});
}

TEST_CASE("assignments stand in front of commands") {
  CHECK(commands_of("A=1 B='2 3' c D=4\nE=(x y) F+=5") == Lines{"1: A=1 B=2 3|c|D=4", "2: E=(x y) F=5"});
  CHECK(commands_of("'A'=1 2=3") == Lines{"1:|A=1|2=3"});
}

TEST_CASE("redirections are not words") {
  CHECK(commands_of("a > b 2>&1 < c >> d 2> e &> f <<< g h") == Lines{"1:|a|h>b>d>e>f"});
  CHECK(commands_of("a <(b c) d") == Lines{"1:|a|<(b c)|d"});
}

TEST_CASE("the body of a here-document is kept with its command") {
  const ShellText text = read_shell("cat << EOF > f | b\n#!/bin/sh\nexec \\$* it's\nEOF\nc\n");
  REQUIRE(text.commands.size() == 3);
  CHECK(text.commands[0].here_document == "#!/bin/sh\nexec $* it's\n");
  CHECK(text.commands[0].here_document_line == 2);
  CHECK(text.commands[0].outputs == Lines{"f"});
  CHECK(text.commands[2].line == 5);
  CHECK(read_shell("a <<'E'\n\\$x\nE\n").commands[0].here_document == "\\$x\n");
  CHECK(read_shell("a <<-E\n\tx\n\tE\n").commands[0].here_document == "x\n");
  // Nothing ends it: it extends over the rest.
  CHECK(read_shell("a <<E\nx\ny").commands[0].here_document == "x\ny\n");
}

TEST_CASE("a single & puts a command into the background") {
  std::vector<bool> background;
  for (const ShellCommand& one : read_shell("a & b && c || d |& e; f 2>&1 >&2 &> g\nh &\ni").commands)
    background.push_back(one.in_background);
  CHECK(background == std::vector<bool>{true, false, false, false, false, false, true, false});
}

TEST_CASE("variables that the shell replaces, in words and in here-documents") {
  const auto expands = [](std::string_view text) { return read_shell(text).commands[0].words[1].expands; };
  CHECK(expands("a $B") == Lines{"B"});
  CHECK(expands("a x${B}y\"z$C\"") == Lines{"B", "C"});
  CHECK(expands("a '$B'\\$C\"\\$D\"$1$(E)${#}").empty());
  const ShellText text = read_shell("a <<E\n$B\n\\$C ${D:-1}\nE\n");
  REQUIRE(text.commands[0].here_expansions.size() == 2);
  CHECK(text.commands[0].here_expansions[0].name == "B");
  CHECK(text.commands[0].here_expansions[0].line == 2);
  CHECK(text.commands[0].here_expansions[1].name == "D");
  CHECK(text.commands[0].here_expansions[1].line == 3);
  CHECK(read_shell("a <<'E'\n$B\nE\n").commands[0].here_expansions.empty());
}

TEST_CASE("variables without $ in arithmetic are replaced, too") {
  const auto expands = [](std::string_view text) { return read_shell(text).commands[0].words[1].expands; };
  CHECK(expands("a $((3-B))") == Lines{"B"});
  CHECK(expands("a \"x$(( (1 + B) * C % 0x1F ))y\"") == Lines{"B", "C"});
  CHECK(expands("a \"$(($B+${C}))\"") == Lines{"B", "C"});
  CHECK(expands("a '$((3-B))'").empty());
  CHECK(expands("a \"\\$((3-B))\"").empty());
  CHECK(expands("a $((b) | c)").empty());
  const auto here = read_shell("a <<E\nx=$((3-B)) \\$((3-C))\nE\n").commands[0].here_expansions;
  REQUIRE(here.size() == 1);
  CHECK(here[0].name == "B");
  CHECK(here[0].is_arithmetic);
  CHECK(here[0].line == 2);
}

TEST_CASE("commands that run exactly once, and those of functions") {
  const auto once = [](std::string_view text) {
    std::string names;
    for (const ShellCommand& one : read_shell(text).commands) {
      if (one.runs_once && !one.words.empty()) names += one.words.front().text;
    }
    return names;
  };
  CHECK(once("a; b && c; d || e\nf | g\nh &\ni") == "abdi");
  CHECK(once("if a; then b; fi; c") == "fic");
  CHECK(once("for a in b; do c; done\nwhile d; do e; done < f\ng") == "donedoneg");
  CHECK(once("case a in b) c;; (d) e;; *) f;; esac\ng") == "esacg");
  CHECK(once("{ a; }; (b; c); d") == "}d");
  CHECK(once("a() {\n b\n}\nfunction c {\n d\n}\ne") == "a}function}e");
  CHECK(once("a &&\n b\nc") == "ac");
  CHECK(once("if a; then b\nc").empty());
  const ShellText text = read_shell("a() { b; }\nc() (\nd\n)\nfunction e { f; }\n{ g; }\n(h)\n");
  std::string names;
  for (const ShellCommand& one : text.commands) {
    if (one.in_function) names += one.words.front().text;
  }
  CHECK(names == "bdf");
}

TEST_CASE("comments that have a line to themselves") {
  const ShellText text = read_shell("#!/bin/sh\n  # a\nb # c\nd#e\ncat <<E\n# f\nE\n# g", 10);
  REQUIRE(text.comments.size() == 3);
  CHECK(text.comments[0].line == 10);
  CHECK(text.comments[1].text == "# a");
  CHECK(text.comments[1].indented);
  CHECK(text.comments[2].line == 17);
  CHECK(text.commands[1].words[0].text == "d#e");
}

TEST_CASE("a quote or parenthesis that nothing closes ends with its line") {
  CHECK(commands_of("A=$(b\nsrun c") == Lines{"1: A=$(b", "2:|srun|c"});
  CHECK(commands_of("a \"b\nsrun c") == Lines{"1:|a|b", "2:|srun|c"});
  CHECK(commands_of("a ${b\nsrun 'c") == Lines{"1:|a|${b", "2:|srun|c"});
}

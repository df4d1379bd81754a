// The arguments and the environment that a started program gets, byte for byte.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

/// A program that prints the arguments and the environment that the kernel got from execve, each with a '\0' at its
/// end. Short texts are stored in a std::string itself, long ones on the heap: both detect memory that is freed too
/// early.
struct StartedProgram {
  std::vector<std::string> words = {"sh",
                                    "-c",
                                    "cat /proc/$$/cmdline /proc/$$/environ; :",
                                    "name",
                                    "",
                                    "two words",
                                    "\xff*'\"$HOME",
                                    std::string(5000, 'w')};
  /// Sorted by name, as Environment is.
  std::vector<std::string> environment = {"BYTES=\xff\n'", "EMPTY=", "LONG=" + std::string(5000, 'v'),
                                          "PATH=/usr/local/bin:/usr/bin:/bin",
                                          "SLURM_CONF=/an/absolute/path/that/is/longer/than/a/short/string"};

  /// Its output if it was started with these entries.
  std::string output(const std::vector<std::string>& entries) const {
    std::string text;
    for (const auto* list : {&words, &entries}) {
      for (const std::string& entry : *list) text += entry + '\0';
    }
    return text;
  }
  std::string output() const { return output(environment); }

  /// Sets a variable of this process, for a program that inherits its environment. Returns the entry.
  static std::string own_entry() {
    ::setenv("DDL_TEST_OF_STARTED_PROGRAMS", std::string(5000, 'o').c_str(), 1);
    return "DDL_TEST_OF_STARTED_PROGRAMS=" + std::string(5000, 'o');
  }
  /// Whether its output contains its words and that entry. Not all of environ is compared: valgrind removes its own
  /// variables.
  bool has_own_entry(const std::string& printed) const {
    return printed.starts_with(output({})) && printed.find('\0' + own_entry() + '\0') != std::string::npos;
  }
};

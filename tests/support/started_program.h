// What a started program finds as its arguments and its environment, byte for byte.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

/// A program that says what the kernel was given for it, each with a '\0' behind it. Short texts lie inside a std::string, long ones
/// in memory of their own: memory that is freed too early shows in both.
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

  /// What it says when it was started with these entries.
  std::string output(const std::vector<std::string>& entries) const {
    std::string text;
    for (const auto* list : {&words, &entries}) {
      for (const std::string& entry : *list) text += entry + '\0';
    }
    return text;
  }
  std::string output() const { return output(environment); }

  /// Sets a variable of this process, for a program that is started with this process's environment, and gives its entry.
  static std::string own_entry() {
    ::setenv("DDL_TEST_OF_STARTED_PROGRAMS", std::string(5000, 'o').c_str(), 1);
    return "DDL_TEST_OF_STARTED_PROGRAMS=" + std::string(5000, 'o');
  }
  /// Whether it says that it has its words and that entry. Not all of environ is compared: valgrind takes its own variables away.
  bool has_own_entry(const std::string& said) const {
    return said.starts_with(output({})) && said.find('\0' + own_entry() + '\0') != std::string::npos;
  }
};

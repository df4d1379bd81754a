// The machine on which figures were measured, and its load by other programs.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ddl::bench {

struct Machine {
  std::string cpu_model;
  int cpus = 0;
  std::string system;      ///< "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;      ///< "6.1.0"
  std::string date;        ///< UTC, "2025-01-31"
  std::string build_type;  ///< of ddl-bench and its contenders: "Release", "Release with fault injection"
  std::string version;     ///< of this project
  std::string open_mpi;    ///< "4.1.4", "" if there is none
};

/// mpirun: its path, or "" if there is none.
Machine describe_machine(const std::string& mpirun);

/// Measures which share of the machine other programs use from its construction on.
class LoadWatch {
 public:
  /// also_own: CPU seconds so far that daemons and other processes use for the benchmark; may be empty.
  explicit LoadWatch(std::function<double()> also_own = {});
  /// Share of all CPU time since construction, 0..1, that neither was idle nor went to this process, its reaped
  /// children, or what also_own counts. Zero where /proc/stat cannot be read.
  double other_load() const;

 private:
  struct Sample {
    double total = 0;
    double busy = 0;
    double own = 0;
  };
  Sample sample() const;
  std::function<double()> also_own_;
  Sample start_;
};

}  // namespace ddl::bench
